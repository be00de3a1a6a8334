import threading
import time

print(threading.enumerate() == [threading.main_thread()], threading.main_thread().name)
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
print("main ends")
