# ways: started preloaded
import inspect
import sys
import traceback

print(len(inspect.stack()), sys._getframe().f_back, sys._getframe().f_code.co_name, sys._getframe().f_lineno)
traceback.print_stack()
print(len(sys._current_frames()))
