# env: PYTHONWARNINGS=error
# ways: started preloading
# new: started preloaded
import sys
import warnings

print(sys.warnoptions)
warnings.warn("becomes an error")
