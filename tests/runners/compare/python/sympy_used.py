import sympy

x = sympy.symbols("x")
print(sympy.integrate(sympy.sin(x) ** 2, x), sympy.solve(x ** 2 - 2, x))
