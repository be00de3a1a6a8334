# ways: started preloaded
import gc

print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.garbage, len(gc.callbacks))


class Node:
    def __del__(self):
        print("collected")


a = Node()
a.self = a
del a
gc.collect()
print("end")
