# file: usercustomize.py
#| print("my usercustomize")
# ways: started preloading
# either: started preloaded
print("main")
