print(sorted(vars()))
print(sorted(globals()) == sorted(vars()), __name__, __builtins__)
