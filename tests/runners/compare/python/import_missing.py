# ways: started preloading
try:
    import no_such_module
except ModuleNotFoundError as e:
    print(e, e.name, e.path)
from os import no_such_name
