# ways: all
import matplotlib.pyplot as plt

for n in range(3):
    plt.figure()
    plt.plot([1, n, 2])
plt.savefig("mine.png")
print(plt.get_fignums())
raise ValueError("boom")
