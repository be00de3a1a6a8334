# file: sitecustomize.py
#| print("my sitecustomize")
# ways: started preloaded
# new: started preloaded
import sitecustomize

print(sitecustomize.__file__)
