import functools
import itertools
import operator


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(80), fib.cache_info(), functools.reduce(operator.mul, range(1, 10)), list(itertools.accumulate([1, 2, 3])))
