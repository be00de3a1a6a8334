import multiprocessing
from multiprocessing import shared_memory


def add(value, array):
    with value.get_lock():
        value.value += 1
    array[0] = 9


value = multiprocessing.Value("i", 0)
array = multiprocessing.Array("i", 3)
children = [multiprocessing.Process(target=add, args=(value, array)) for _ in range(3)]
for p in children:
    p.start()
for p in children:
    p.join()
print(value.value, list(array))
memory = shared_memory.SharedMemory(create=True, size=100)
memory.buf[:5] = b"hello"
again = shared_memory.SharedMemory(memory.name)
print(bytes(again.buf[:5]))
again.close()
memory.close()
memory.unlink()
