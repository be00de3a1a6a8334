# env: MATPLOTLIBRC=/data/settings
# file: settings/matplotlibrc
#| figure.figsize: 3, 2
# ways: all
# anew: light full mid
import matplotlib

print(matplotlib.rcParams["figure.figsize"])
