# ways: started preloaded
# file: keeper.py
#| import sys
#|
#|
#| class Keeper:
#|     def __del__(self):
#|         print("keeper", sys is not None, type(self).__name__)
#|
#|
#| kept = Keeper()
import weakref

import keeper

weakref.finalize(keeper.kept, print, "finalizer")
print("end")
