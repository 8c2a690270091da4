"""A store with metrics by method: calls, failures, bytes and seconds. It also reports when the store does not respond."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, Final, TypeVar

from local_log.errors import FILE_ERRORS, AlreadyExists, BadRange, LogError, NoSuchFile, NotFound, Unavailable, Unknown
from remote.clock import Stopwatch
from remote.store.api import AbandonedUpload, Body, ObjectMeta, ObjectStore

T = TypeVar("T")

FAILING_S_MAX: Final = 5.0
"""A store that has only failed for longer is in trouble; a shorter time is a retry's to bridge."""
SILENT_S_MAX: Final = 15.0
"""A call that has heard nothing for longer hangs. A part of an upload takes so long at 560 KB/s."""
WAITING_S_MIN: Final = 1.0
"""Of a store that has never answered a shorter time says nothing: the first call makes a connection."""
_DELETIONS: Final = ("delete", "abort_upload", "abandoned_uploads")
"""Where these are refused, the store is well: a writer may have been given no right to them, on purpose."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What has been asked of a store by one verb. `bytes` are those of objects; a failed call counts those that it had moved.

    A call is one of the protocol's: an upload counts once, whatever its parts, and a listing once, whatever its pages.
    `failures` are calls that ended with an error; NotFound and AlreadyExists are answers and count as none.
    """

    calls: int = 0
    failures: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def plus(self, more: "Counted") -> "Counted":
        """With what has been asked elsewhere, too."""
        return Counted(
            self.calls + more.calls, self.failures + more.failures, self.bytes + more.bytes, self.seconds + more.seconds
        )


@dataclass(frozen=True, slots=True)
class Trouble:
    """A store that has not responded for `seconds`; `problem` is the first call's error, or says that it got no answer."""

    seconds: float
    problem: str


class _Call:
    """A call in progress: the bytes that it has transferred, and `away_s`, the seconds in which it did not wait for the store.

    `heard_s` is when the store last responded to it, infinite while it does not wait for the store.
    """

    __slots__ = ("away_s", "bytes", "heard_s", "verb")

    def __init__(self, verb: str, now_s: float) -> None:
        self.verb = verb
        self.heard_s = now_s
        self.bytes = 0
        self.away_s = 0.0


class Meter:
    """Adds up, for any number of stores and threads. A copy in another process starts at nothing."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._counted: dict[str, Counted] = {}
        self._under_way: set[_Call] = set()
        self._failed: tuple[float, str] | None = None
        """When the first of those calls failed after which none was answered, and its error."""
        self._has_answered = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Meter, ()

    def begin(self, verb: str, now_s: float) -> _Call:
        """A call that begins; `end` counts it."""
        call = _Call(verb, now_s)
        with self._turn:
            self._under_way.add(call)
        return call

    def end(self, call: _Call, seconds: float, now_s: float, error: Exception | None) -> None:
        """Counts one call that has ended, and with which error."""
        is_answer = error is None or (isinstance(error, NotFound | AlreadyExists) and not isinstance(error, NoSuchFile))
        self.add(call.verb, call.bytes, seconds, failed=not is_answer)
        with self._turn:
            self._under_way.discard(call)
            self._has_answered = self._has_answered or is_answer or not isinstance(error, Unavailable | Unknown)
            if is_answer:
                self._failed = None
            elif self._failed is None and _is_of_the_store(error, call.verb):
                self._failed = now_s, str(error)

    def add(self, verb: str, size: int, seconds: float, *, failed: bool) -> None:
        """Counts one call."""
        with self._turn:
            was = self._counted.get(verb, Counted())
            self._counted[verb] = Counted(was.calls + 1, was.failures + failed, was.bytes + size, was.seconds + seconds)

    def trouble(self, now_s: float, failing_s_max: float = FAILING_S_MAX) -> Trouble | None:
        """The problem if the store does not respond, else None. Returns at once; safe to call from any thread.

        Failures count after `failing_s_max` seconds, the time of the retries; 0 is for callers that ask when these have ended.
        """
        with self._turn:
            failed, under_way = self._failed, tuple(self._under_way)
        problems: list[Trouble] = []
        if failed is not None and now_s - failed[0] > failing_s_max:
            problems.append(Trouble(now_s - failed[0], failed[1]))
        for call in under_way:
            if (silent_s := now_s - call.heard_s) > SILENT_S_MAX:
                problems.append(Trouble(silent_s, f"the store does not respond to {call.verb}; check the store and the network"))
        return max(problems, key=lambda one: one.seconds, default=None)

    def unanswered(self, now_s: float) -> Trouble | None:
        """The problem of a store that has not answered any call up to now, not even by refusing it; else None."""
        with self._turn:
            failed, waiting = self._failed, min(self._under_way, key=lambda call: call.heard_s, default=None)
            has_answered = self._has_answered
        if has_answered:
            return None
        if failed is not None:
            trouble = Trouble(now_s - failed[0], failed[1])
        elif waiting is not None:
            trouble = Trouble(now_s - waiting.heard_s, f"no answer to {waiting.verb}; check the address and the network")
        else:
            return None
        return trouble if trouble.seconds >= WAITING_S_MIN else None

    def snapshot(self) -> dict[str, Counted]:
        """What has been counted up to now, by verb, in the verbs' order."""
        with self._turn:
            return dict(sorted(self._counted.items()))


def _is_of_the_store(error: Exception | None, verb: str) -> bool:
    """Whether an error says that the store fails, rather than something about the object, the caller or the caller's rights."""
    if isinstance(error, Unavailable | Unknown):
        return True
    return isinstance(error, LogError) and not isinstance(error, (*FILE_ERRORS, BadRange)) and verb not in _DELETIONS


class Instrumented:
    """The store `inner`, with its calls counted by `meter`."""

    def __init__(self, inner: ObjectStore, meter: Meter, stopwatch: Stopwatch) -> None:
        self.inner = inner
        self.url = inner.url
        self.meter = meter
        self._stopwatch = stopwatch

    def get(self, key: str) -> bytes:
        with self._counted("get") as call:
            body = self.inner.get(key)
            call.bytes = len(body)
            return body

    def get_range(self, key: str, start: int, end: int) -> Body:
        with self._counted("get_range") as call:
            body = self.inner.get_range(key, start, end)
            call.bytes = len(body)
            return body

    def head(self, key: str) -> ObjectMeta:
        with self._counted("head"):
            return self.inner.head(key)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """Counted when it ends or is given up, without the time that its reader takes."""
        return self._items("list", lambda: self.inner.list(prefix, limit=limit, start_after=start_after))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Counted as `list` is."""
        return self._items("list_folders", lambda: self.inner.list_folders(prefix))

    def put_if_absent(self, key: str, body: Body) -> None:
        with self._counted("put_if_absent") as call:
            self.inner.put_if_absent(key, body)
            call.bytes = memoryview(body).nbytes

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """Counted without the time in which its parts are read."""
        with self._counted("upload") as call:
            self.inner.upload(key, self._read(parts, call), size=size, crc32c=crc32c)

    def delete(self, key: str) -> None:
        with self._counted("delete"):
            self.inner.delete(key)

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        """Counted as `list` is."""
        return self._items("abandoned_uploads", lambda: self.inner.abandoned_uploads(prefix, before_ms))

    def abort_upload(self, upload: AbandonedUpload) -> None:
        with self._counted("abort_upload"):
            self.inner.abort_upload(upload)

    def _read(self, parts: Iterable[Body], call: _Call) -> Iterator[Body]:
        rest = iter(parts)
        while True:
            with self._away(call):
                part = next(rest, None)
            if part is None:
                return
            yield part
            call.bytes += memoryview(part).nbytes

    def _items(self, verb: str, ask: Callable[[], Iterator[T]]) -> Iterator[T]:
        with self._counted(verb) as call:
            for item in ask():
                with self._away(call):
                    yield item

    @contextmanager
    def _away(self, call: _Call) -> Iterator[None]:
        """It is the caller for whom is waited."""
        started_s, call.heard_s = self._stopwatch(), inf
        try:
            yield
        finally:
            call.heard_s = self._stopwatch()
            call.away_s += call.heard_s - started_s

    @contextmanager
    def _counted(self, verb: str) -> Iterator[_Call]:
        started_s = self._stopwatch()
        call, failure = self.meter.begin(verb, started_s), None
        try:
            yield call
        except Exception as error:
            failure = error
            raise
        finally:
            now_s = self._stopwatch()
            self.meter.end(call, now_s - started_s - call.away_s, now_s, failure)
