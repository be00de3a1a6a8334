# ways: all
import os
import threading

print(threading.active_count(), threading.get_ident() == threading.main_thread().ident)
print(threading.get_native_id() == os.getpid(), len(os.listdir("/proc/self/task")))
print(threading.current_thread() is threading.main_thread(), threading.main_thread().native_id == os.getpid())
