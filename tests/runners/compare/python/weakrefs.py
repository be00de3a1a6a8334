# differs: 0x[0-9a-f]+
import gc
import weakref


class C:
    pass


c = C()
r = weakref.ref(c, lambda _: print("gone"))
weakref.finalize(c, print, "finalized")
print(r() is c, r)
del c
gc.collect()
print(r())
