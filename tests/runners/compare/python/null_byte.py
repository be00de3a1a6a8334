import ast

try:
    ast.parse("x = 1\0")
except (ValueError, SyntaxError) as e:
    print(type(e).__name__, e)
compile("a\0b", "<file>", "exec")
