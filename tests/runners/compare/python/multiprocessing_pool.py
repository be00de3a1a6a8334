# ways: started preloaded
import multiprocessing


def work(n):
    if n == 5:
        raise ValueError("five")
    return n * n


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(work, range(5)))
        print(sorted(pool.imap_unordered(work, range(3))))
        try:
            pool.map(work, range(4, 7))
        except ValueError as e:
            print("caught", e)
