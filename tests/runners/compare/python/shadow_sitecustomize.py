# file: sitecustomize.py
#| print("my sitecustomize")
# ways: light full
# anew: light full
import sitecustomize

print(sitecustomize.__file__)
