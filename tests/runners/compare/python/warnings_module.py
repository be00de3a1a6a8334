# file: helper.py
#| import warnings
#|
#| warnings.warn("from the module", DeprecationWarning)
#| warnings.warn("user's", UserWarning, stacklevel=2)
import helper
import warnings

warnings.simplefilter("error")
try:
    warnings.warn("an error now")
except UserWarning as e:
    print("caught", e)
