# ways: started preloaded
import matplotlib.pyplot as plt

fig = plt.figure()
print(fig.number, plt.gcf() is fig, len(fig.axes), plt.gca().get_xlim(), fig.get_size_inches(), fig.dpi)
plt.show()
print(plt.get_fignums())
