import threading


def fail():
    raise ValueError("in the thread")


t = threading.Thread(target=fail, name="worker")
t.start()
t.join()
print("main goes on")
