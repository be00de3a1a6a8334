import atexit

atexit.register(print, "at exit")
raise KeyError("gone")
