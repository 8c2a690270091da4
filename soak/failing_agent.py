"""`tiering`, with a store that fails one call in twenty, before it is made or after it, when nobody hears of it."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from local_log.errors import AlreadyExists, NotFound, Unavailable, Unknown
from remote.store import open as stores
from remote.store.api import Body, ObjectStore
from tiering.cli import main

T = TypeVar("T")
EVERY = int(os.environ.get("SOAK_FAILS_EVERY", "20"))
MUTATES = ("put_if_absent", "upload")


class Failing:
    """`inner`, which is not always there."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner
        self.url = inner.url
        self._calls = itertools.count(1)
        self.made = 0

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._inner, verb)
        if verb in ("list", "list_folders", "abandoned_uploads"):
            return lambda *args, **kwargs: self._listed(verb, lambda: method(*args, **kwargs))
        return lambda *args, **kwargs: self._called(verb, lambda: method(*args, **kwargs))

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        self._called("upload", lambda: self._inner.upload(key, parts, size=size, crc32c=crc32c))

    def _listed(self, verb: str, call: Callable[[], Iterable[T]]) -> Iterator[T]:
        yield from self._called(verb, lambda: [*call()])

    def _called(self, verb: str, call: Callable[[], T]) -> T:
        number = self.made = next(self._calls)
        if number % EVERY:
            return call()
        if verb in MUTATES and number // EVERY % 2:
            with suppress(AlreadyExists, NotFound, Unavailable):
                call()
            raise Unknown(f"{self.url}: the answer to {verb} was lost (call {number})")
        raise Unavailable(f"{self.url}: no answer to {verb} (call {number})")


if __name__ == "__main__":
    opened = stores.open_backend
    stores.open_backend = lambda url: Failing(opened(url))  # type: ignore[assignment,return-value]
    main()
