# differs: 0x[0-9a-f]+
class Thing:
    def __del__(self):
        raise ValueError("in del")


Thing()
keep = Thing()
print("end")
