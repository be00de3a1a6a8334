# ways: all
import sys

print(sys.path)
print(sorted(p for p in sys.path_importer_cache if p.startswith(("/data", "/tmp"))))
print([f.__name__ if hasattr(f, "__name__") else type(f).__name__ for f in sys.meta_path], len(sys.path_hooks))
