"""What is written first works: the tables of first/, at /mcp with a server's defaults."""
import importlib
import os

from first_tries import attempt_all
from harness import test

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "first")

for _name in sorted(name.removesuffix(".py") for name in os.listdir(FOLDER) if name.endswith(".py")):
    _table = importlib.import_module(f"first.{_name}")
    test(f"first tries, {_table.__doc__.strip().rstrip('.')}: {len(_table.ROWS)} rows", timeout=600, core=True)(
        lambda rows=_table.ROWS: attempt_all(rows))
