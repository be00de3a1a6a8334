# ways: started preloaded
import time

print(abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 5, time.process_time() < 5, time.thread_time() < 5)
print(time.perf_counter() >= 0, time.tzname, time.get_clock_info("monotonic").implementation)
a = time.monotonic()
time.sleep(0.05)
print(0.04 < time.monotonic() - a < 10)
