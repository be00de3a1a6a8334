import multiprocessing


def child(queue):
    queue.put(__name__)


if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    queue = context.Queue()
    p = context.Process(target=child, args=(queue,))
    p.start()
    print(queue.get())
    p.join()
    print(p.exitcode)
