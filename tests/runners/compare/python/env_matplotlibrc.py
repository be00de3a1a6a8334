# env: MATPLOTLIBRC=/data/settings
# file: settings/matplotlibrc
#| figure.figsize: 3, 2
# ways: all
# new: started preloaded preloading
import matplotlib

print(matplotlib.rcParams["figure.figsize"])
