# ways: started preloaded
import sys
import threading

print(sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile())
events = []
sys.settrace(lambda frame, event, arg: events.append((event, frame.f_code.co_name)))


def f():
    return 1


f()
sys.settrace(None)
print(events)
