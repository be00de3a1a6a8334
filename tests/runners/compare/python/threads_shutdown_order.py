import atexit
import threading
import time

atexit.register(print, "atexit")
threading._register_atexit(print, "threading atexit")
threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
print("main")
