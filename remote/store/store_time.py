"""The store's own clock, by which everything that destroys goes: machines' clocks may be off, and jump."""

from dataclasses import dataclass, field

from local_log.errors import Invalid
from remote.clock import Clock, Ids
from remote.keys import PROBE_PREFIX
from remote.store.api import ObjectStore

DIFFERENCE_MAX_MS = 15 * 60_000
"""How far the store's clock and a machine's may be apart: beyond this S3 no longer takes a request's signature."""


@dataclass(frozen=True, slots=True)
class At:
    """A clock that stands still at a time which the store gave, and sleeps by another clock."""

    at_ms: int
    clock: Clock

    def now_ms(self) -> int:
        """That moment."""
        return self.at_ms

    def sleep(self, seconds: float) -> None:
        """Waits by the other clock."""
        self.clock.sleep(seconds)


@dataclass(slots=True)
class StoreRun:
    """One run over many partitions of a store, and its clock: the machine's clock, then the store's time once that was read.

    The store's time is read before the first deletion, so a run that deletes nothing costs no request. This time is never later
    than the store's clock, however long the run lasts, so what is old enough by it is old enough. Later plans use the same time,
    so nothing becomes older if the machine's clock is set forward during the run.
    """

    store: ObjectStore
    clock: Clock
    ids: Ids
    _agreed: At | None = field(default=None, init=False)

    def now_ms(self) -> int:
        """The current time for plans."""
        return self.clock.now_ms() if self._agreed is None else self._agreed.now_ms()

    def sleep(self, seconds: float) -> None:
        """Waits by the machine's clock."""
        self.clock.sleep(seconds)

    def agreed(self) -> At:
        """The store's time, on which the machine's clock agreed when it was asked. Raises as `agreed_now_ms`."""
        if self._agreed is None:
            self._agreed = At(agreed_now_ms(self.store, self.clock, self.ids), self.clock)
        return self._agreed


def store_time_ms(store: ObjectStore, key: str) -> int:
    """The time now by the clock that `ObjectMeta.modified_ms` is of, from an object at `key`, a fresh one, deleted afterwards.

    Whole seconds on S3. Raises Invalid where the store tells no times, and what its verbs raise.
    """
    store.put_if_absent(key, b"")
    try:
        modified_ms = store.head(key).modified_ms
    finally:
        store.delete(key)
    if modified_ms is None:
        raise Invalid(f"{store.url} does not tell when an object was made; nothing can be swept by age there")
    return modified_ms


def store_now_ms(store: ObjectStore, ids: Ids) -> int:
    """The time now by the store's clock, from an object that is made and deleted again.

    Raises Invalid where the store tells no times, Unknown, Unavailable.
    """
    return store_time_ms(store, f"{PROBE_PREFIX}{ids.new_id()}")


def agreed_now_ms(store: ObjectStore, clock: Clock, ids: Ids) -> int:
    """The same, where the machine's clock agrees with it. Raises Invalid where the two are too far apart, too."""
    before_ms = clock.now_ms()
    theirs_ms = store_now_ms(store, ids)
    off_ms = max(before_ms - theirs_ms, theirs_ms - clock.now_ms(), 0)
    if off_ms > DIFFERENCE_MAX_MS:
        raise Invalid(
            f"{store.url}: its clock and this machine's are {off_ms // 1000} s apart, so ages are unknown, "
            "and nothing was deleted: set this machine's clock (NTP), then run the same command again"
        )
    return theirs_ms


def refuse_later(planned_ms: int, now_ms: int, what: str) -> None:
    """Raises Invalid for what was planned by a time that has not come yet: by the store's clock it is `now_ms`."""
    if planned_ms > now_ms + DIFFERENCE_MAX_MS:
        raise Invalid(
            f"{what} was planned {(planned_ms - now_ms) // 1000} s after the store's time now, so this machine's clock has been "
            "set back since, and what was planned may not be old enough; nothing was deleted: run the same command again"
        )
