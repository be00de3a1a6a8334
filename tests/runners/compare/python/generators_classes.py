class Meta(type):
    def __new__(mcls, name, bases, space, **kw):
        return super().__new__(mcls, name, bases, space | {"made_by": mcls.__name__}, **kw)


class Thing(metaclass=Meta):
    __slots__ = ("x",)

    def __init_subclass__(cls, **kw):
        print("subclass", cls.__name__, kw)


class Child(Thing, option=1):
    pass


def numbers():
    got = yield 1
    print("got", got)
    yield from range(2)


g = numbers()
print(next(g), g.send("x"), list(g), Child.made_by, Child.__mro__)
