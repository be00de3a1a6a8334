def numbers():
    try:
        yield 1
        yield 2
    finally:
        print("generator closed")


g = numbers()
print(next(g))
