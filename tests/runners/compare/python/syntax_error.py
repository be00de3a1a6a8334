# ways: light mid
print("never")
def broken(:
    pass
