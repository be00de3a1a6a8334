# ways: started preloading
print("never")
def broken(:
    pass
