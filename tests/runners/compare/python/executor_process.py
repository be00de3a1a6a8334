import concurrent.futures


def square(n):
    return n * n


if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(10))))
