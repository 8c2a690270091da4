"""The store's own clock, by which everything that destroys goes: machines' clocks may be off, and jump."""

from dataclasses import dataclass

from remote.clock import Clock, Ids
from remote.errors import Invalid
from remote.keys import PROBE_PREFIX
from remote.store.api import ObjectStore
from remote.store.open import store_time_ms
from tiering.doctor.checks import DIFFERENCE_MAX_MS


@dataclass(frozen=True, slots=True)
class At:
    """A clock that shows one moment, as the store told it, and waits as another one does."""

    at_ms: int
    clock: Clock

    def now_ms(self) -> int:
        """That moment."""
        return self.at_ms

    def sleep(self, seconds: float) -> None:
        """Waits."""
        self.clock.sleep(seconds)


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
            f"{store.url}: its clock and this machine's are {off_ms // 1000} s apart, so nobody can tell what is old enough to "
            "be deleted; nothing was: set this machine's clock (NTP), then run the same command again"
        )
    return theirs_ms


def refuse_later(planned_ms: int, now_ms: int, what: str) -> None:
    """Raises Invalid for what was planned by a time that has not come yet: by the store's clock it is `now_ms`."""
    if planned_ms > now_ms + DIFFERENCE_MAX_MS:
        raise Invalid(
            f"{what} was planned {(planned_ms - now_ms) // 1000} s after the store's time now, so this machine's clock has been "
            "set back since, and what was planned may not be old enough; nothing was deleted: run the same command again"
        )
