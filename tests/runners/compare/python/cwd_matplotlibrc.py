# file: matplotlibrc
#| figure.figsize: 3, 2
# ways: all
# anew: full
# either: mid
import matplotlib

print(matplotlib.rcParams["figure.figsize"])
