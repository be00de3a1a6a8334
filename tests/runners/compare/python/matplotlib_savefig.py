# ways: all
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 10, 200)
fig, axes = plt.subplots(2, 2, figsize=(6, 4))
axes[0, 0].plot(x, np.sin(x), label="sin")
axes[0, 0].legend()
axes[0, 1].scatter(x[::10], np.cos(x[::10]), c=x[::10], cmap="viridis")
axes[1, 0].bar(["a", "b"], [3, 5])
axes[1, 1].hist(np.sin(x), bins=12)
axes[1, 1].set_title(r"$\alpha_i^2 + \frac{1}{2}$")
fig.tight_layout()
fig.savefig("chart.png", metadata={"Software": None})
print(plt.get_fignums(), fig.number)
