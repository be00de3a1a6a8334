import dataclasses
import enum
import typing


@dataclasses.dataclass(order=True)
class Item:
    name: str
    price: "typing.Optional[float]" = None
    tags: list = dataclasses.field(default_factory=list)


class Color(enum.Enum):
    RED = enum.auto()
    BLUE = "blue"


print(Item("a", 1.5), dataclasses.asdict(Item("b")), typing.get_type_hints(Item), list(Color), Color("blue"))
T = typing.NamedTuple("T", [("x", int)])
print(T(1), T.__module__, typing.List[int], Item.__annotations__, __annotations__)
number: int = 5
print(__annotations__)
