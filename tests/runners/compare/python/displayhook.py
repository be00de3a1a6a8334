import sys

sys.displayhook(5)
import builtins

print(builtins._, hasattr(builtins, "_"))
exec(compile("'shown'", "<x>", "single"))
