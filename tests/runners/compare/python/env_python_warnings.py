# env: PYTHONWARNINGS=error
# ways: light mid
# anew: light full
import sys
import warnings

print(sys.warnoptions)
warnings.warn("becomes an error")
