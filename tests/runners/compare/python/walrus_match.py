def kind(x):
    match x:
        case {"type": "a", "n": int(n)} if n > 0:
            return f"a {n}"
        case [first, *rest]:
            return f"list {first} {rest}"
        case str() | bytes():
            return "text"
        case _:
            return "else"


print([kind(x) for x in ({"type": "a", "n": 1}, [1, 2, 3], "s", 5)], (y := 3) + y)
