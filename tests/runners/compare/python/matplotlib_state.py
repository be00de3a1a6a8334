# ways: all
import matplotlib
import matplotlib.pyplot as plt

print(matplotlib.get_backend(), plt.get_fignums(), matplotlib.is_interactive(), plt.isinteractive())
print([(k, v) for k, v in matplotlib.rcParams.items() if k != "backend_fallback"])
print(matplotlib.rcParams == matplotlib.rcParamsOrig if hasattr(matplotlib, "rcParamsOrig") else "")
print(matplotlib.get_configdir(), matplotlib.get_cachedir(), matplotlib.matplotlib_fname(), plt.style.available[:3])
