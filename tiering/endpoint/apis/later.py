"""What is made of an answer that may come later."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def then(found: "T | Future[T]", change: Callable[[T], U]) -> "U | Future[U]":
    """What `change` makes of it, at once or when it is there."""
    return later(found, change) if isinstance(found, Future) else change(found)


def later(found: "Future[T]", change: Callable[[T], U]) -> "Future[U]":
    """What `change` makes of it when it is there."""
    changed: Future[U] = Future()

    def take(of: "Future[T]") -> None:
        try:
            changed.set_result(change(of.result()))
        except Exception as e:  # whoever waits for it is told
            changed.set_exception(e)

    found.add_done_callback(take)
    return changed
