# file: usercustomize.py
#| print("my usercustomize")
# ways: all
# anew: light full
print("main")
