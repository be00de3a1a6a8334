# file: usercustomize.py
#| print("my usercustomize")
# ways: light mid
# either: light full
print("main")
