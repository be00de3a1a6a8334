# ways: started preloaded
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

print(matplotlib.get_backend(), plt.get_backend())
matplotlib.use("TkAgg")
