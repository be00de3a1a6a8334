# env: PYTHONWARNINGS=error
# ways: all
# anew: light full
import sys
import warnings

print(sys.warnoptions)
warnings.warn("becomes an error")
