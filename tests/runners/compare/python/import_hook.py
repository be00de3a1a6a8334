# differs: 0x[0-9a-f]+
import importlib.abc
import importlib.machinery
import sys


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name.startswith("virtual") else None

    def exec_module(self, module):
        module.value = module.__name__.upper()


sys.meta_path.insert(0, Finder())
import virtual_thing

print(virtual_thing.value, virtual_thing)
