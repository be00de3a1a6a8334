# file: sitecustomize.py
#| print("my sitecustomize")
# ways: all
# anew: light full
import sitecustomize

print(sitecustomize.__file__)
