import inspect
import linecache

with open(__file__) as f:
    text = f.read()
with open(__file__, "w") as f:
    f.write(text.replace("secret", "public"))
linecache.checkcache()


def f():
    return "secret"


print(inspect.getsource(f), f())
