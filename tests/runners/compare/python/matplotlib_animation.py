import matplotlib.animation
import matplotlib.pyplot as plt

fig, axis = plt.subplots()
line, = axis.plot([0, 1])
animation = matplotlib.animation.FuncAnimation(fig, lambda n: line.set_ydata([n, 1]), frames=3)
animation.save("a.gif", writer="pillow")
