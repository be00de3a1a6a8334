print("äöü 日本語 😀")
print("\udcff")
