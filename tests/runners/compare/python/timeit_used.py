import timeit

print(timeit.timeit("x = 1", number=10) < 5, timeit.default_timer.__name__)
