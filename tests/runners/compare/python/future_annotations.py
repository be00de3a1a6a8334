from __future__ import annotations

import typing


def f(x: Undefined) -> None:
    pass


print(f.__annotations__, annotations.compiler_flag > 0)
typing.get_type_hints(f)
