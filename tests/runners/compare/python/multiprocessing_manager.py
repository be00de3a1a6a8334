import multiprocessing


def work(shared, n):
    shared[n] = n * 2


if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        children = [multiprocessing.Process(target=work, args=(shared, n)) for n in range(3)]
        for p in children:
            p.start()
        for p in children:
            p.join()
        print(sorted(shared.items()))
