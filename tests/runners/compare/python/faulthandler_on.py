# differs: 0x[0-9a-f]+
# differs: \nExtension modules: .*
import faulthandler
import os

print(faulthandler.is_enabled())
faulthandler.enable()


def f():
    os.kill(os.getpid(), 6)


f()
