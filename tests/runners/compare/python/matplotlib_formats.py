# ways: started preloaded
import matplotlib

matplotlib.rcParams["svg.hashsalt"] = "fixed"
import matplotlib.pyplot as plt

plt.plot([1, 2], [3, 1])
plt.savefig("chart.svg", metadata={"Date": None})
plt.savefig("chart.pdf", metadata={"CreationDate": None})
