# ways: started preloaded
import sys

print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.getdefaultencoding(), sys.getfilesystemencoding(),
      sys.getfilesystemencodeerrors(), sys.gettrace(), sys.getprofile(), sys.get_asyncgen_hooks(),
      sys.get_coroutine_origin_tracking_depth(), sys.get_int_max_str_digits(), sys.getdlopenflags())
print(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__,
      sys.unraisablehook is sys.__unraisablehook__, sys.breakpointhook is sys.__breakpointhook__)
print(hasattr(sys, "last_type"), hasattr(sys, "ps1"), hasattr(sys, "tracebacklimit"), sys.exc_info())
