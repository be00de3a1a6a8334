import atexit


def handler():
    print("handler")


atexit.register(handler)
atexit.unregister(handler)
atexit._clear()
print("nothing else")
