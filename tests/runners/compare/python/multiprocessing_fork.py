# ways: started preloaded
import multiprocessing
import os

value = 5


def child(queue):
    queue.put((__name__, value, os.getppid() == parent, multiprocessing.current_process().name))


parent = os.getpid()
queue = multiprocessing.Queue()
p = multiprocessing.Process(target=child, args=(queue,))
p.start()
print(queue.get())
p.join()
print(p.exitcode, multiprocessing.active_children(), multiprocessing.get_start_method())
