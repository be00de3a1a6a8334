# unlisted: chart\.svg
# env: MPLBACKEND=svg
# ways: started preloaded
# either: started preloaded
import matplotlib
import matplotlib.pyplot as plt

print(matplotlib.get_backend())
plt.plot([1, 2])
plt.savefig("chart")
import os

print(os.listdir("."))
