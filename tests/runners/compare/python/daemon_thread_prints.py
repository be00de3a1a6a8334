import threading
import time


def work():
    while True:
        time.sleep(0.001)


threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
print("end")
