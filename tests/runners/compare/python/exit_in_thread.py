import sys
import threading

t = threading.Thread(target=sys.exit, args=(5,))
t.start()
t.join()
print("main goes on")
