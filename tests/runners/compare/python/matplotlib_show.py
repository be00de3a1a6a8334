# ways: all
import matplotlib.pyplot as plt

plt.plot([1, 2])
plt.show()
print(plt.get_fignums())
plt.plot([2, 1])
plt.show()
plt.savefig("shown.png")
plt.plot([1, 1])
plt.show(block=False)
print(plt.get_fignums())
