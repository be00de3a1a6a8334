# ways: started preloaded
import tracemalloc

print(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit())
tracemalloc.start()
x = [bytes(100) for _ in range(1000)]
print(len(tracemalloc.take_snapshot().statistics("lineno")) > 0, tracemalloc.get_traced_memory()[0] > 100000)
