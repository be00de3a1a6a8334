import threading
import time


def work():
    time.sleep(0.2)
    print("the thread goes on")


threading.Thread(target=work).start()
raise ValueError("main fails")
