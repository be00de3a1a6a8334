# ways: started preloaded
import multiprocessing

import numpy as np
import pandas as pd


def work(n):
    return float(pd.DataFrame({"a": np.arange(n)}).a.sum())


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(work, (3, 5)))
