# differs: 0x[0-9a-f]+
# ways: started preloaded
import atexit

for n in range(4):
    atexit.register(print, "handler", n)
atexit.register(lambda: 1 / 0)
print("end of main")
