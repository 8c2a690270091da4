"""Readers that retention waits for: an object a reader, with the offsets that it reads and the time when it has surely ended.

A reader pins first and opens the manifest then: what that manifest names stays. Whoever deletes asks for the pins after it has
committed what it deletes, and leaves what a pin covers.

A pin lasts from when the store says that its object was made: readers' clocks may be off by any time, and only how long it is
to last is theirs to say. Where a store tells no times, the reader's own is taken.
"""

from dataclasses import dataclass, fields

from local_log.errors import Corrupt, Invalid, Newer, NotFound
from remote.clock import Clock, Ids
from remote.keys import PartitionPath, parse_pin_name
from remote.manifest import codec, stamped_json
from remote.manifest.model import CLOCK_DIFFERENCE_MS_MAX, Item
from remote.manifest.own_objects import put_own
from remote.store.api import ObjectReader, ObjectStore, ReadableStore

PIN_MS_MAX = 7 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Pin:
    """Offsets `[start, end)` that `owner` reads, and the manifest version that was the newest when it began."""

    id: str
    owner: str
    version: int
    start: int
    end: int
    created_at_ms: int
    expires_at_ms: int

    def obeyed_until_ms(self, made_ms: int | None) -> int:
        """The end of its time, which is never longer than a pin may last, and as much more as two clocks may differ by.

        `made_ms` is when its object was made, by the store's clock, None where the store does not tell.
        """
        lasts_ms = min(self.expires_at_ms - self.created_at_ms, PIN_MS_MAX)
        return (self.created_at_ms if made_ms is None else made_ms) + lasts_ms + CLOCK_DIFFERENCE_MS_MAX


@dataclass(frozen=True, slots=True)
class Pins:
    """The pins of a partition: those in force, those that have expired, and those that cannot be read.

    The offsets and the expiry of a damaged pin are unknown, so it protects all offsets until its object is deleted.
    """

    live: tuple[Pin, ...] = ()
    expired: tuple[Pin, ...] = ()
    damaged: tuple[Corrupt | Newer, ...] = ()


# Creating, reading and deleting pins.
def create(
    store: ObjectStore, path: PartitionPath, owner: str, version: int, start: int, end: int, lasts_ms: int, clock: Clock, ids: Ids
) -> Pin:
    """Pins `[start, end)` for `lasts_ms`. Raises Invalid, Unknown (do not rely on it), Unavailable."""
    if not 0 < lasts_ms <= PIN_MS_MAX or not 0 <= start < end:
        raise Invalid(f"{path}: a pin of [{start}, {end}) for {lasts_ms} ms; it may last up to {PIN_MS_MAX} ms, renew it then")
    now_ms = clock.now_ms()
    pin = Pin(ids.new_id(), owner, version, start, end, now_ms, now_ms + lasts_ms)
    put_own(store, clock, path.pin(pin.id), _encode(pin))
    return pin


def renew(store: ObjectStore, path: PartitionPath, pin: Pin, lasts_ms: int, clock: Clock, ids: Ids) -> Pin:
    """The same pin for `lasts_ms` from now on, under a new id; the old one is then released."""
    renewed = create(store, path, pin.owner, pin.version, pin.start, pin.end, lasts_ms, clock, ids)
    release(store, path, pin)
    return renewed


def release(store: ObjectStore, path: PartitionPath, pin: Pin) -> None:
    """Ends a pin; one that is over already is no error. Raises Unavailable."""
    store.delete(path.pin(pin.id))


def pins_of(store: ReadableStore, path: PartitionPath, now_ms: int) -> Pins:
    """The pins of a partition at `now_ms` of the store. Foreign keys are passed over. Raises Unavailable."""
    live: list[Pin] = []
    expired: list[Pin] = []
    damaged: list[Corrupt | Newer] = []
    for meta in store.list(path.pins):
        pin_id = parse_pin_name(meta.key.removeprefix(path.pins))
        if pin_id is None:
            continue
        try:
            pin = _read(store, path, pin_id)
        except NotFound:
            continue  # released meanwhile
        except (Corrupt, Newer) as e:
            damaged.append(e)
        else:
            (live if now_ms < pin.obeyed_until_ms(meta.modified_ms) else expired).append(pin)
    return Pins(tuple(live), tuple(expired), tuple(damaged))


def covered_by_pin(pins: Pins, item: Item) -> bool:
    """Whether somebody may still be reading offsets of an entry, or of any entry below a page."""
    return bool(pins.damaged) or any(p.start < item.end_offset and p.end > item.base_offset for p in pins.live)


def _encode(pin: Pin) -> bytes:
    value = {f.name: getattr(pin, f.name) for f in fields(Pin)} | {
        "format": {"major": stamped_json.MAJOR, "minor": stamped_json.MINOR}
    }
    return stamped_json.stamped(value)


def _read(store: ObjectReader, path: PartitionPath, pin_id: str) -> Pin:
    key = path.pin(pin_id)
    value = stamped_json.read_stamped(store.get(key), key)
    try:
        pin = Pin(**codec.read_plain(Pin, value))
    except (KeyError, TypeError, ValueError) as e:
        raise Corrupt(f"not a pin: {e!r}; delete it when nobody reads the partition any more", file=key) from e
    if pin.id != pin_id:
        raise Corrupt(f"pin {pin.id} lies under another's key; delete it when nobody reads the partition any more", file=key)
    return pin
