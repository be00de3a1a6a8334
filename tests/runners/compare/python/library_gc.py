# ways: started preloaded
import gc

import numpy as np


class Cycle:
    def __init__(self):
        self.array = np.zeros(10)
        self.me = self

    def __del__(self):
        print("cycle collected")


Cycle()
print(gc.collect() >= 1, gc.isenabled(), gc.get_threshold(), gc.garbage)
print(any(o is Cycle for o in gc.get_objects()), gc.is_tracked(globals()), len(gc.get_referrers(Cycle)) > 0)
