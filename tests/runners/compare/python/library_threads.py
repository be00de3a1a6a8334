# ways: started preloaded
import threading

import numpy as np
import pandas as pd

results = []


def work(n):
    with np.errstate(divide="ignore"):
        results.append((n, float(pd.Series(range(n)).mean()), str(np.geterr()["divide"])))


threads = [threading.Thread(target=work, args=(n,)) for n in (3, 5, 7)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(results), np.geterr()["divide"])
