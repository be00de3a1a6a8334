# ways: all
print(sorted(vars()))
print(sorted(globals()) == sorted(vars()), __name__, __builtins__)
print(__annotations__ if "__annotations__" in globals() else "no annotations", __cached__)
