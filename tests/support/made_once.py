"""To pytest a session fixture that several conftests import is one for each of them: this makes its value once a process."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def made_once(make: Callable[P, T]) -> Callable[P, T]:
    """`make`, whose first value is that of every further call, whatever it is given. For what nobody writes to."""
    made: list[T] = []

    @wraps(make)
    def value(*args: P.args, **kwargs: P.kwargs) -> T:
        if not made:
            made.append(make(*args, **kwargs))
        return made[0]

    return value
