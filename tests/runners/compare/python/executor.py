# ways: started preloading
import concurrent.futures
import threading

with concurrent.futures.ThreadPoolExecutor(3, thread_name_prefix="pool") as pool:
    print(sum(pool.map(lambda n: n * n, range(100))))
    print(pool.submit(lambda: threading.current_thread().name[:4]).result())
    future = pool.submit(int, "x")
try:
    future.result()
except ValueError as e:
    print(e)
print(threading.active_count())
