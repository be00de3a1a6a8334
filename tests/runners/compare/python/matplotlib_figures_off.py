# ways: all
# env: SANDBOX_FIGURES=0
import matplotlib.pyplot as plt

plt.plot([1, 2])
plt.show()
print(plt.get_fignums())
