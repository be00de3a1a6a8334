import threading

local = threading.local()
local.x = 1
seen = []
threads = [threading.Thread(target=lambda n=n: seen.append((n, hasattr(local, "x")))) for n in range(4)]
for t in threads:
    t.start()
    t.join()
print(seen, vars(local))
