# ways: all
import sys

print(sys.path)
print(sorted(p for p in sys.path_importer_cache if p.startswith(("/data", "/tmp"))))
print([f.__name__ for f in sys.meta_path[:3]], len(sys.path_hooks))
