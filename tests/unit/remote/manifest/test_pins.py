"""Readers that retention waits for."""

import json

import pytest
from archive_fakes import AppliesLate, CountingIds, FixedClock, KeepsNoTime, LosesAnswer, MemoryStore, Nth
from made_manifests import PATH, entry, paged

from local_log.errors import Corrupt, Invalid, Unknown
from remote.manifest.model import CLOCK_DIFFERENCE_MS_MAX
from remote.manifest.pins import PIN_MS_MAX, Pin, Pins, covered_by_pin, create, pins_of, release, renew
from remote.manifest.stamped_json import stamped
from remote.store.api import ObjectStore

NOW = FixedClock().now_ms()
HOUR = 3_600_000


def pinned(store: ObjectStore, start: int = 10, end: int = 20, lasts_ms: int = HOUR, clock: FixedClock | None = None) -> Pin:
    return create(store, PATH, "reader", 3, start, end, lasts_ms, clock or FixedClock(), CountingIds("b"))


def change(store: MemoryStore, key: str, **fields: object) -> None:
    value = {**json.loads(store.objects[key]), **fields}
    del value["~crc32c"]
    store.objects[key] = stamped(value)


def test_a_pin_is_an_object_that_says_whose_it_is_what_it_covers_and_for_how_long() -> None:
    store = MemoryStore()
    pin = pinned(store)
    assert pin == Pin(CountingIds("b").new_id(), "reader", 3, 10, 20, NOW, NOW + HOUR)
    assert pins_of(store, PATH, NOW) == Pins(live=(pin,))
    assert json.loads(store.objects[PATH.pin(pin.id)])["owner"] == "reader"


def test_an_entry_or_page_that_a_live_pin_overlaps_is_covered() -> None:
    pins = Pins(live=(Pin("b" * 32, "reader", 3, 10, 20, NOW, NOW + HOUR),))
    for base, end, covered in ((0, 10, False), (0, 11, True), (12, 13, True), (19, 30, True), (20, 30, False)):
        assert covered_by_pin(pins, entry(base, end)) == covered
        assert covered_by_pin(pins, paged(entry(base, end))) == covered
    assert not covered_by_pin(Pins(expired=pins.live), entry(10, 20))


def test_a_pin_is_obeyed_past_its_expiry_by_what_clocks_may_differ() -> None:
    store = MemoryStore()
    pin = pinned(store)
    last = pin.expires_at_ms + CLOCK_DIFFERENCE_MS_MAX
    assert pins_of(store, PATH, last - 1).live == (pin,)
    assert pins_of(store, PATH, last) == Pins(expired=(pin,))


@pytest.mark.parametrize("off_ms", [-14 * HOUR, 400 * 24 * HOUR])
def test_a_pin_lasts_from_when_the_store_made_its_object_whatever_its_readers_clock_says(off_ms: int) -> None:
    store = MemoryStore()
    pin = pinned(store, clock=FixedClock(NOW + off_ms))
    last = NOW + HOUR + CLOCK_DIFFERENCE_MS_MAX
    assert pins_of(store, PATH, last - 1).live == (pin,)
    assert pins_of(store, PATH, last).expired == (pin,)


def test_where_the_store_tells_no_times_a_pin_lasts_by_its_readers_clock() -> None:
    store = MemoryStore()
    pin = pinned(store, clock=FixedClock(NOW + 5))
    last = NOW + 5 + HOUR + CLOCK_DIFFERENCE_MS_MAX
    assert pins_of(KeepsNoTime(store), PATH, last - 1).live == (pin,)
    assert pins_of(KeepsNoTime(store), PATH, last).expired == (pin,)


def test_a_pin_that_claims_to_last_for_ever_is_obeyed_no_longer_than_a_pin_may_last() -> None:
    store = MemoryStore()
    pin = pinned(store)
    change(store, PATH.pin(pin.id), expires_at_ms=10**18)
    last = NOW + PIN_MS_MAX + CLOCK_DIFFERENCE_MS_MAX
    assert len(pins_of(store, PATH, last - 1).live) == 1
    assert len(pins_of(store, PATH, last).expired) == 1


@pytest.mark.parametrize(("start", "end", "lasts_ms"), [(10, 10, 1), (-1, 5, 1), (0, 5, 0), (0, 5, PIN_MS_MAX + 1)])
def test_a_pin_of_nothing_or_for_too_long_is_refused(start: int, end: int, lasts_ms: int) -> None:
    store = MemoryStore()
    with pytest.raises(Invalid, match="topic-0: a pin of"):
        pinned(store, start, end, lasts_ms)
    assert store.objects == {}


def test_a_pin_that_is_renewed_has_a_new_object_before_the_old_one_goes() -> None:
    store = MemoryStore()
    pin = pinned(store)
    store.calls.clear()
    renewed = renew(store, PATH, pin, HOUR, FixedClock(NOW + 5), CountingIds("c"))
    assert [c[:2] for c in store.calls if c[0] != "get"] == [
        ("put_if_absent", PATH.pin(renewed.id)),
        ("delete", PATH.pin(pin.id)),
    ]
    assert pins_of(store, PATH, NOW) == Pins(live=(renewed,))
    assert (renewed.start, renewed.end, renewed.expires_at_ms) == (10, 20, NOW + 5 + HOUR)


def test_a_pin_that_is_released_is_gone_also_when_it_is_released_again() -> None:
    store = MemoryStore()
    pin = pinned(store)
    release(store, PATH, pin)
    release(store, PATH, pin)
    assert pins_of(store, PATH, NOW) == Pins()


def test_a_pin_whose_answer_was_lost_is_made_and_one_that_is_not_there_is_not_relied_upon() -> None:
    store = MemoryStore()
    pin = pinned(LosesAnswer(store, Nth("put_if_absent")))
    assert pins_of(store, PATH, NOW).live == (pin,)
    late = AppliesLate(MemoryStore(), Nth("put_if_absent"))
    with pytest.raises(Unknown):
        pinned(late)


def test_a_pin_cut_or_changed_anywhere_covers_everything_and_is_named() -> None:
    store = MemoryStore()
    key = PATH.pin(pinned(store).id)
    sound = store.objects[key]
    changed = (sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :] for at in range(len(sound) - 1))
    for body in (*(sound[:end] for end in range(len(sound))), *changed):
        store.objects[key] = body
        pins = pins_of(store, PATH, NOW + 10 * PIN_MS_MAX)
        (damaged,) = pins.damaged
        assert isinstance(damaged, Corrupt | Invalid)
        assert key in str(damaged)
        assert covered_by_pin(pins, entry(500, 510))


@pytest.mark.parametrize(
    "fields", [{"end": "20"}, {"start": True}, {"owner": None}, {"id": "c" * 32}, {"format": {"major": 9, "minor": 0}}], ids=repr
)
def test_a_pin_that_nobody_understands_covers_everything(fields: dict[str, object]) -> None:
    store = MemoryStore()
    key = PATH.pin(pinned(store).id)
    change(store, key, **fields)
    pins = pins_of(store, PATH, NOW)
    assert (pins.live, len(pins.damaged)) == ((), 1)
    assert key in str(pins.damaged[0])


def test_foreign_keys_among_the_pins_are_passed_over() -> None:
    store = MemoryStore()
    for name in ("README", "a.json", f"{'a' * 32}.json.tmp", f"below/{'a' * 32}.json"):
        store.put_if_absent(f"{PATH.pins}{name}", b"foreign")
    assert pins_of(store, PATH, NOW) == Pins()
