

# Each of these takes half a second.
def __getattr__(name):
    import importlib

    places = {"Application": ".core.application", "embed": ".terminal.embed", "InteractiveShell": ".core.interactiveshell",
              "sys_info": ".utils.sysinfo"}
    if name not in places:
        raise AttributeError(f"module 'IPython' has no attribute {name!r}")
    return getattr(importlib.import_module(places[name], __name__), name)
