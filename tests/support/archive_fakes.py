"""Stand-ins for the archive's doors: a store in memory, wrappers that fail as real stores do, a clock, ids.

Every wrapper is an `ObjectStore` around another one, so they stack. A listing is read whole when it is asked for: what a
test does between two calls cannot change it.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from crc32c import crc32c

from local_log.errors import AlreadyExists, BadRange, NotFound, Unknown
from remote.store.api import AbandonedUpload, Body, ObjectMeta, ObjectStore
from remote.store.shared import check_folder, check_key, check_prefix, checked

T = TypeVar("T")
Call = tuple[Any, ...]
"""A call as transcripts have it: the verb, the key or prefix, and for a range its start and end."""

When = Callable[[str, str], bool]
"""Whether a wrapper acts on a call, by its verb and key. Asked once a call, in order, so it may count."""

WRITES = {"put_if_absent", "upload", "delete"}

_stores: WeakValueDictionary[int, "MemoryStore"] = WeakValueDictionary()


class MemoryStore:
    """Objects in a dict. `calls` is the transcript. Its pickle is a handle on the same objects, in this process.

    `modified` has the time of each object, by `clock`; `uploads` is what failed ones have left behind, for a test to fill.
    """

    def __init__(self, clock: "FixedClock | None" = None) -> None:
        _stores[id(self)] = self
        self.url = "memory://store"
        self.clock = clock or FixedClock()
        self.objects: dict[str, bytes] = {}
        self.modified: dict[str, int] = {}
        self.uploads: list[AbandonedUpload] = []
        self.calls: list[Call] = []
        self.turn = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _handle, (id(self),)

    def get(self, key: str) -> bytes:
        self.calls.append(("get", key))
        return self._body(key)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        self.calls.append(("get_range", key, start, end))
        body = self._body(key)
        if not 0 <= start <= end <= len(body):
            raise BadRange(f"{key} has {len(body)} bytes, not [{start}, {end})")
        return body[start:end]

    def head(self, key: str) -> ObjectMeta:
        self.calls.append(("head", key))
        body = self._body(key)
        return ObjectMeta(key, len(body), crc32c(body), self._modified_ms(key))

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        self.calls.append(("list", prefix))
        check_prefix(prefix)
        found = [key for key in list(self.objects) if key.startswith(prefix) and key > start_after]
        keys = sorted(found, key=str.encode)[:limit]
        return iter([ObjectMeta(key, len(self.objects[key]), None, self._modified_ms(key)) for key in keys])

    def list_folders(self, prefix: str) -> Iterator[str]:
        self.calls.append(("list_folders", prefix))
        check_folder(prefix)
        below = (key[len(prefix) :] for key in list(self.objects) if key.startswith(prefix))
        return iter([name[:-1] for name in sorted({rest.partition("/")[0] + "/" for rest in below if "/" in rest})])

    def put_if_absent(self, key: str, body: Body) -> None:
        self.calls.append(("put_if_absent", key))
        self._create(key, bytes(body))

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        self.calls.append(("upload", key))
        self._create(key, b"".join(checked(key, parts, size, crc32c)))

    def delete(self, key: str) -> None:
        self.calls.append(("delete", key))
        check_key(key)
        self.objects.pop(key, None)

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        self.calls.append(("abandoned_uploads", prefix))
        check_prefix(prefix)
        return iter([u for u in self.uploads if u.key.startswith(prefix) and u.started_ms < before_ms])

    def abort_upload(self, upload: AbandonedUpload) -> None:
        self.calls.append(("abort_upload", upload.key))
        self.uploads = [u for u in self.uploads if u != upload]

    def _modified_ms(self, key: str) -> int:
        return self.modified.get(key, self.clock.now_ms())

    def _body(self, key: str) -> bytes:
        check_key(key)
        if key not in self.objects:
            raise NotFound(f"{self.url}: no object {key}")
        return self.objects[key]

    def _create(self, key: str, body: bytes) -> None:
        check_key(key)
        with self.turn:
            if key in self.objects:
                raise AlreadyExists(key)
            self.objects[key] = body
            self.modified[key] = self.clock.now_ms()


def _handle(number: int) -> MemoryStore:
    return _stores[number]


class Door:
    """A wrapper that lets everything through. `calls` is the transcript of what was asked of it."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.url = inner.url
        self.calls: list[Call] = []

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        """What becomes of a call."""
        return call()

    def get(self, key: str) -> bytes:
        self.calls.append(("get", key))
        return self.around("get", key, lambda: self.inner.get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        self.calls.append(("get_range", key, start, end))
        return self.around("get_range", key, lambda: self.inner.get_range(key, start, end))

    def head(self, key: str) -> ObjectMeta:
        self.calls.append(("head", key))
        return self.around("head", key, lambda: self.inner.head(key))

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        self.calls.append(("list", prefix))
        return iter(self.around("list", prefix, lambda: [*self.inner.list(prefix, limit=limit, start_after=start_after)]))

    def list_folders(self, prefix: str) -> Iterator[str]:
        self.calls.append(("list_folders", prefix))
        return iter(self.around("list_folders", prefix, lambda: [*self.inner.list_folders(prefix)]))

    def put_if_absent(self, key: str, body: Body) -> None:
        self.calls.append(("put_if_absent", key))
        self.around("put_if_absent", key, lambda: self.inner.put_if_absent(key, body))

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        self.calls.append(("upload", key))
        self.around("upload", key, lambda: self.inner.upload(key, parts, size=size, crc32c=crc32c))

    def delete(self, key: str) -> None:
        self.calls.append(("delete", key))
        self.around("delete", key, lambda: self.inner.delete(key))

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        self.calls.append(("abandoned_uploads", prefix))
        return iter(self.around("abandoned_uploads", prefix, lambda: [*self.inner.abandoned_uploads(prefix, before_ms)]))

    def abort_upload(self, upload: AbandonedUpload) -> None:
        self.calls.append(("abort_upload", upload.key))
        self.around("abort_upload", upload.key, lambda: self.inner.abort_upload(upload))


def verbs(calls: Iterable[Call]) -> list[str]:
    """A transcript without keys."""
    return [call[0] for call in calls]


class Nth:
    """Picks the calls of a verb by number, 1 and up; all of them where no number is given."""

    def __init__(self, verb: str, *numbers: int) -> None:
        self.verb = verb
        self.numbers = numbers
        self.seen = 0

    def __call__(self, verb: str, key: str) -> bool:
        if verb != self.verb:
            return False
        self.seen += 1
        return not self.numbers or self.seen in self.numbers


class CallNumber:
    """Picks the call of that number, 1 and up, whatever its verb; with `on` those after it, too."""

    def __init__(self, number: int, *, on: bool = False) -> None:
        self.number = number
        self.on = on
        self.seen = 0

    def __call__(self, verb: str, key: str) -> bool:
        self.seen += 1
        return self.seen == self.number or (self.on and self.seen > self.number)


class FailsBefore(Door):
    """Raises `error` instead of making the call."""

    def __init__(self, inner: ObjectStore, error: Exception, when: When) -> None:
        super().__init__(inner)
        self.error = error
        self.when = when

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if self.when(verb, key):
            raise self.error
        return call()


class LosesAnswer(Door):
    """Makes the call, and raises Unknown whatever came of it."""

    def __init__(self, inner: ObjectStore, when: When) -> None:
        super().__init__(inner)
        self.when = when

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if not self.when(verb, key):
            return call()
        with suppress(AlreadyExists):
            call()
        raise Unknown(f"{self.url}: the answer to {verb} {key} was lost")


class AppliesLate(Door):
    """Raises Unknown and makes the call only at `land`."""

    def __init__(self, inner: ObjectStore, when: When) -> None:
        super().__init__(inner)
        self.when = when
        self.late: list[Callable[[], Any]] = []

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if not self.when(verb, key):
            return call()
        self.late.append(call)
        raise Unknown(f"{self.url}: no answer to {verb} {key}")

    def land(self) -> None:
        """Makes the calls that are still on their way; nobody hears what comes of them."""
        for call in self.late:
            with suppress(AlreadyExists):
                call()
        self.late.clear()


class IgnoresCondition(Door):
    """Lets every put through, over whatever is there."""

    def put_if_absent(self, key: str, body: Body) -> None:
        self.inner.delete(key)
        super().put_if_absent(key, body)


class ListsStale(Door):
    """After `freeze` so many listings show what was there then, also what has been deleted since."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.left = 0
        self.seen: list[ObjectMeta] = []

    def freeze(self, listings: int) -> None:
        self.seen = [*self.inner.list("")]
        self.left = listings

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        if not self.left:
            return super().list(prefix, limit=limit, start_after=start_after)
        self.left -= 1
        self.calls.append(("list", prefix))
        return itertools.islice((m for m in self.seen if m.key.startswith(prefix) and m.key > start_after), limit)


class Corrupts(Door):
    """Stores other bytes than it was given, without a word: `damage` of what was uploaded."""

    def __init__(self, inner: MemoryStore, when: When, damage: Callable[[bytes], bytes]) -> None:
        super().__init__(inner)
        self.objects = inner.objects
        self.when = when
        self.damage = damage

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        answer = call()
        if self.when(verb, key):
            self.objects[key] = self.damage(self.objects[key])
        return answer


class KeepsNoChecksum(Door):
    """Knows sizes alone, as a folder does."""

    def head(self, key: str) -> ObjectMeta:
        return replace(super().head(key), crc32c=None)


class KeepsNoTime(Door):
    """Does not say when an object was made, as some of fsspec's file systems do not."""

    def head(self, key: str) -> ObjectMeta:
        return replace(super().head(key), modified_ms=None)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        return (replace(meta, modified_ms=None) for meta in super().list(prefix, limit=limit, start_after=start_after))


class RunsBetween(Door):
    """Runs something just before the call of that number, 1 and up."""

    def __init__(self, inner: ObjectStore, actions: Mapping[int, Callable[[], object]]) -> None:
        super().__init__(inner)
        self.actions = dict(actions)

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if (action := self.actions.pop(len(self.calls), None)) is not None:
            action()
        return call()


class Crash(BaseException):
    """The process ends here. Nothing in the product knows this error, or catches it with all others."""


class CrashesAt(Door):
    """Ends the process just before the call of that number, 1 and up, or just after the store has done it."""

    def __init__(self, inner: ObjectStore, number: int, *, after: bool) -> None:
        super().__init__(inner)
        self.number = number
        self.after = after

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if len(self.calls) < self.number:
            return call()
        if self.after:
            call()
        raise Crash


class FixedClock:
    """Stands still; `slept` are the seconds that somebody wanted to wait, and the wall clock was set by `set_by_ms`."""

    set_by_ms = 0

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now = now_ms
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self.now + self.set_by_ms

    def hi_res_clock_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class SleptClock(FixedClock):
    """Moves only by what somebody waits."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.now += round(seconds * 1000)


class CountingIds:
    """Ids that count up; sources with another `prefix` (hexadecimal digits) never share one."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.numbers = itertools.count(1)

    def new_id(self) -> str:
        return self.prefix + f"{next(self.numbers):0{32 - len(self.prefix)}x}"
