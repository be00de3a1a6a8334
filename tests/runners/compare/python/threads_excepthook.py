import threading

threading.excepthook = lambda args: print("hook", args.exc_type.__name__, args.exc_value, args.thread.name)
t = threading.Thread(target=int, args=("x",), name="worker")
t.start()
t.join()
