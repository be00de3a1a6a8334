import sys
import threading
import time

threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
sys.exit(6)
