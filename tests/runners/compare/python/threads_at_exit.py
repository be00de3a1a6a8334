# ways: started preloading
import threading
import time


def late():
    time.sleep(0.2)
    print("thread ends after main")


t = threading.Thread(target=late)
t.start()
print("main ends", threading.active_count())
