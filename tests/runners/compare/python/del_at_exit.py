# ways: all
class Thing:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("del", self.name, print is not None)


a = Thing("a")
b = Thing("b")
b.self = b
del a
print("end")
