x = 5
if x is 5:
    print("is")
print("\d")
assert (x, "always true")
