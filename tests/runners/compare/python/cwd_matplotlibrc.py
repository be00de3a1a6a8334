# file: matplotlibrc
#| figure.figsize: 3, 2
# ways: all
# new: preloaded
# either: preloading
import matplotlib

print(matplotlib.rcParams["figure.figsize"])
