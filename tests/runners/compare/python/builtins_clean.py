# ways: started preloaded
import builtins

print(sorted(vars(builtins)))
print(type(builtins.__import__), type(builtins.open), type(builtins.print), type(builtins.input))
