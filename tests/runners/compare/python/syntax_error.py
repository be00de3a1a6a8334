# ways: all
print("never")
def broken(:
    pass
