# file: usercustomize.py
#| print("my usercustomize")
# ways: all
# either: light full
print("main")
