# ways: all
import multiprocessing

print("module runs as", __name__, __file__)


def child(n):
    print("child", n, __name__, multiprocessing.current_process().name, flush=True)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    p = multiprocessing.Process(target=child, args=(7,))
    p.start()
    p.join()
    print(p.exitcode)
