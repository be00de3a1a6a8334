# file: pkg/__init__.py
#| from .sub import value
#| __all__ = ["value", "other"]
# file: pkg/sub.py
#| from . import other
#| value = other.number + 1
# file: pkg/other.py
#| number = 41
# file: pkg/deep/leaf.py
#| from ..sub import value as up
# ways: all
from pkg import *
import pkg.deep.leaf

print(value, other.number, pkg.deep.leaf.up, pkg.__path__, pkg.deep.__path__, pkg.deep.__file__)
