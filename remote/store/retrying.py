"""A store that retries calls which have certainly changed nothing, and calls that may safely be repeated.

    Unavailable     nothing was changed (409, 429, a refused connection; for reads and deletions 5xx and time-outs too):
                    the call is retried with a growing delay, until attempts or time run out
    Unknown         put_if_absent: raised, since only the caller can distinguish its own object from another writer's
                    upload, whose key no other writer uses: retried; if the key is then taken by an object of this size and
                    checksum, the first try has written it
    other errors    raised: a retry does not help

S3Store and the committer rely on this being the only layer that retries; `remote.store.api` has the list of who repeats what.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from local_log.errors import AlreadyExists, LogError, NotFound, Unavailable, Unknown, Unreachable
from remote.clock import Clock, Jitter
from remote.store.api import AbandonedUpload, Body, ObjectMeta, ObjectStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """When a call is made again: half the growing wait for certain, the other half by chance; none after the deadline.

    A store that has never been reached is not reached after `unreached_s` either: its address is wrong.
    """

    attempts_max: int = 7
    first_wait_s: float = 0.1
    wait_max_s: float = 10.0
    deadline_s: float = 120.0
    unreached_s: float = 3.0

    def wait_s(self, attempt: int, chance: float) -> float:
        """Seconds to wait after the attempt of that number, 1 and up."""
        return min(self.wait_max_s, self.first_wait_s * 2.0 ** min(attempt - 1, 100)) * (0.5 + chance / 2)


class Retrying:
    """The store `inner`, with retries. A listing that fails is continued after the last object that it returned."""

    def __init__(self, inner: ObjectStore, clock: Clock, chance: Jitter, backoff: Backoff | None = None) -> None:
        self.inner = inner
        self.url = inner.url
        self._clock = clock
        self._chance = chance
        self._backoff = backoff or Backoff()
        self._was_reached = False

    def get(self, key: str) -> bytes:
        return self._repeated(lambda: self.inner.get(key))

    def get_range(self, key: str, start: int, end: int) -> Body:
        return self._repeated(lambda: self.inner.get_range(key, start, end))

    def head(self, key: str) -> ObjectMeta:
        return self._repeated(lambda: self.inner.head(key))

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """Each object that comes is a new start for patience."""
        tries = self._tries()
        while True:
            try:
                for meta in self.inner.list(prefix, limit=limit, start_after=start_after):
                    self._was_reached = True
                    start_after, tries = meta.key, self._tries()
                    limit = None if limit is None else limit - 1
                    yield meta
            except Unavailable as error:
                tries.wait_or_raise(error)
            else:
                self._was_reached = True
                return

    def list_folders(self, prefix: str) -> Iterator[str]:
        """One that breaks off starts again, and passes over what it has given."""
        tries, last = self._tries(), ""
        while True:
            try:
                for name in self.inner.list_folders(prefix):
                    self._was_reached = True
                    if f"{name}/" > last:
                        last, tries = f"{name}/", self._tries()
                        yield name
            except Unavailable as error:
                tries.wait_or_raise(error)
            else:
                self._was_reached = True
                return

    def put_if_absent(self, key: str, body: Body) -> None:
        """An Unknown is not repeated."""
        self._repeated(lambda: self.inner.put_if_absent(key, body))

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """Made once where `parts` cannot be read again."""
        if iter(parts) is parts:
            self.inner.upload(key, parts, size=size, crc32c=crc32c)
            return
        tries = self._tries()
        unknown: Unknown | None = None
        while True:
            try:
                self.inner.upload(key, parts, size=size, crc32c=crc32c)
            except Unknown as error:
                unknown = error
                tries.wait_or_raise(error)
            except Unavailable as error:
                tries.wait_or_raise(unknown or error)
            except AlreadyExists:
                if unknown is None:
                    raise
                try:
                    found = self.head(key)
                except NotFound:
                    raise unknown from None  # it was there, and a sweep has taken it for abandoned since
                if found.size != size or found.crc32c not in (None, crc32c):
                    raise
                return
            else:
                return

    def delete(self, key: str) -> None:
        self._repeated(lambda: self.inner.delete(key))

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        """All of them at once."""
        return iter(self._repeated(lambda: [*self.inner.abandoned_uploads(prefix, before_ms)]))

    def abort_upload(self, upload: AbandonedUpload) -> None:
        self._repeated(lambda: self.inner.abort_upload(upload))

    def _repeated(self, call: Callable[[], T]) -> T:
        tries = self._tries()
        while True:
            try:
                found = call()
            except Unavailable as error:
                tries.wait_or_raise(error)
            except LogError as error:
                self._was_reached = self._was_reached or not isinstance(error, Unknown)
                raise
            else:
                self._was_reached = True
                return found

    def _tries(self) -> "_Tries":
        return _Tries(self._backoff, self._clock, self._chance, lambda: self._was_reached)


class _Tries:
    """The tries of one call."""

    def __init__(self, backoff: Backoff, clock: Clock, chance: Jitter, was_reached: Callable[[], bool]) -> None:
        self._backoff = backoff
        self._was_reached = was_reached
        self._clock = clock
        self._chance = chance
        self._started_ms = clock.now_ms()
        self._failed = 0

    def wait_or_raise(self, error: Unavailable | Unknown) -> None:
        """Waits for the next one. Raises an error of the same kind when this was the last."""
        self._failed += 1
        wait_s = self._backoff.wait_s(self._failed, self._chance())
        taken_s = (self._clock.now_ms() - self._started_ms) / 1000
        is_nowhere = isinstance(error, Unreachable) and not self._was_reached()
        deadline_s = self._backoff.unreached_s if is_nowhere else self._backoff.deadline_s
        if self._failed >= self._backoff.attempts_max or taken_s + wait_s > deadline_s:
            raise type(error)(f"{error}; tried {self._failed} times in {taken_s:.1f} s") from error
        self._clock.sleep(wait_s)
