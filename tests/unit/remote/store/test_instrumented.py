"""What is asked of a store is counted: calls, failures, bytes, seconds."""

import itertools
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from archive_fakes import FailsBefore, MemoryStore, Nth
from crc32c import crc32c
from store_promises import ObjectStoreConformance, race

from local_log.errors import AlreadyExists, Invalid, NotFound, Unavailable, Unknown
from remote.clock import stopwatch
from remote.store.api import AbandonedUpload, ObjectStore
from remote.store.instrumented import FAILING_S_MAX, SILENT_S_MAX, Counted, Instrumented, Meter, Trouble
from remote.store.open import open_store


class TestInstrumented(ObjectStoreConformance):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return Instrumented(MemoryStore(), Meter(), stopwatch)


class Ticks:
    """A stopwatch that goes on by what it is told, and by 1 s at each look."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def store(meter: Meter, ticks: Ticks) -> Instrumented:
    return Instrumented(MemoryStore(), meter, ticks)


def test_every_verb_is_counted_with_the_bytes_of_its_objects(store: Instrumented, meter: Meter) -> None:
    store.put_if_absent("a/put", memoryview(b"12345678").cast("I"))
    store.upload("a/upload", [b"123", b"45"], size=5, crc32c=crc32c(b"12345"))
    store.get("a/put")
    store.get_range("a/upload", 1, 4)
    store.head("a/put")
    list(store.list(""))
    list(store.list_folders(""))
    list(store.abandoned_uploads("", 0))
    store.abort_upload(AbandonedUpload("a/b", "", 0))
    store.delete("a/put")
    counted = meter.snapshot()
    assert list(counted) == sorted(counted)
    assert {verb: (c.calls, c.failures, c.bytes) for verb, c in counted.items()} == {
        "put_if_absent": (1, 0, 8),
        "upload": (1, 0, 5),
        "get": (1, 0, 8),
        "get_range": (1, 0, 3),
        **dict.fromkeys(("head", "list", "list_folders", "abandoned_uploads", "abort_upload", "delete"), (1, 0, 0)),
    }
    assert all(c.seconds == 1 for verb, c in counted.items() if not verb.startswith(("list", "upload")))


def test_an_answer_that_is_no_object_counts_as_a_call_and_a_failure_as_both(meter: Meter) -> None:
    memory = MemoryStore()
    memory.put_if_absent("key", b"body")
    for error in (Unavailable("x"), Unknown("x"), Invalid("x")):
        with pytest.raises(type(error)):
            Instrumented(FailsBefore(memory, error, Nth("put_if_absent")), meter, stopwatch).put_if_absent("key", b"body")
    store = Instrumented(memory, meter, stopwatch)
    with pytest.raises(AlreadyExists):
        store.put_if_absent("key", b"body")
    with pytest.raises(NotFound):
        store.get("missing")
    assert (meter.snapshot()["put_if_absent"].calls, meter.snapshot()["put_if_absent"].failures) == (4, 3)
    assert (meter.snapshot()["get"].calls, meter.snapshot()["get"].failures) == (1, 0)
    assert meter.snapshot()["put_if_absent"].bytes == 0


def test_a_listing_is_counted_when_it_ends_or_is_given_up_without_its_readers_time(
    store: Instrumented, meter: Meter, ticks: Ticks
) -> None:
    for key in ("a", "b", "c"):
        store.put_if_absent(key, b"")
    found = store.list("")
    next(found)
    assert "list" not in meter.snapshot()
    ticks.seconds += 1_000_000
    found.close()
    assert (meter.snapshot()["list"].calls, meter.snapshot()["list"].failures) == (1, 0)
    for _ in store.list(""):
        ticks.seconds += 1_000_000
    assert meter.snapshot()["list"].calls == 2
    assert meter.snapshot()["list"].seconds < 100


def test_a_listing_that_breaks_off_is_a_failure(meter: Meter) -> None:
    store = Instrumented(FailsBefore(MemoryStore(), Unavailable("x"), Nth("list")), meter, stopwatch)
    with pytest.raises(Unavailable):
        list(store.list(""))
    assert meter.snapshot()["list"].failures == 1


def test_an_upload_is_counted_without_the_time_in_which_its_parts_are_read(
    store: Instrumented, meter: Meter, ticks: Ticks
) -> None:
    def parts() -> Any:
        for _ in range(3):
            ticks.seconds += 1_000_000
            yield b"x"

    store.upload("key", parts(), size=3, crc32c=crc32c(b"xxx"))
    assert meter.snapshot()["upload"].seconds < 100


def test_an_upload_that_breaks_off_counts_the_bytes_that_it_had_sent(store: Instrumented, meter: Meter) -> None:
    def parts() -> Any:
        yield b"1234"
        yield b"5678"
        raise OSError("the disk broke")

    with pytest.raises(OSError, match="the disk broke"):
        store.upload("key", parts(), size=12, crc32c=0)
    counted = meter.snapshot()["upload"]
    assert (counted.calls, counted.failures, counted.bytes) == (1, 1, 8)


def test_nothing_is_lost_between_threads_and_stores(meter: Meter) -> None:
    stores = [Instrumented(MemoryStore(), meter, stopwatch) for _ in range(2)]

    def work(number: int) -> None:
        for n in range(50):
            stores[number % 2].put_if_absent(f"{number}/{n}", b"12")

    race(16, work)
    counted = meter.snapshot()["put_if_absent"]
    assert (counted.calls, counted.bytes, counted.failures) == (800, 1_600, 0)


def test_a_snapshot_does_not_change(store: Instrumented, meter: Meter) -> None:
    before = meter.snapshot()
    store.put_if_absent("key", b"")
    assert before == {}
    assert meter.snapshot() != {}


def test_a_copy_in_another_process_starts_at_nothing(store: Instrumented, meter: Meter) -> None:
    meter.add("get", 1, 1.0, failed=False)
    assert pickle.loads(pickle.dumps(meter)).snapshot() == {}
    assert meter.snapshot() == {"get": Counted(1, 0, 1, 1.0)}


def test_a_store_that_is_opened_tells_its_meter_of_every_try(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, tries = Meter(), itertools.count(1)
    store = open_store(str(tmp_path), meter=meter)

    def busy_twice(*_: object) -> bytes:
        if next(tries) <= 2:
            raise Unavailable("busy")
        return b"body"

    monkeypatch.setattr("remote.store.folder.store.FolderStore.get", busy_twice)
    assert store.get("key") == b"body"
    assert (meter.snapshot()["get"].calls, meter.snapshot()["get"].failures) == (3, 2)


def at(ticks: Ticks, seconds: float) -> float:
    ticks.seconds = seconds
    return seconds


def failing(meter: Meter, ticks: Ticks, error: Exception, verb: str) -> None:
    """One call that fails."""
    store = Instrumented(FailsBefore(MemoryStore(), error, lambda *_: True), meter, ticks)
    with pytest.raises(type(error)):
        store.delete("key") if verb == "delete" else store.get("key")


def test_a_store_that_has_only_failed_for_a_while_is_in_trouble_until_it_answers(
    store: Instrumented, meter: Meter, ticks: Ticks
) -> None:
    assert meter.trouble(at(ticks, 10)) is None
    failing(meter, ticks, Unavailable("refused"), "get")
    assert meter.trouble(at(ticks, 12 + FAILING_S_MAX)) is None, "a retry may yet mend it"
    failing(meter, ticks, Unavailable("another"), "get")
    assert meter.trouble(at(ticks, 100)) == Trouble(88, "refused"), "since the first"
    with pytest.raises(NotFound):
        store.get("key")
    assert meter.trouble(at(ticks, 1000)) is None, "it has answered"


def test_credentials_that_are_refused_are_trouble_and_the_right_to_delete_is_none(meter: Meter, ticks: Ticks) -> None:
    failing(meter, ticks, Invalid("AccessDenied"), "delete")
    assert meter.trouble(at(ticks, 100)) is None
    failing(meter, ticks, Invalid("ExpiredToken"), "get")
    assert meter.trouble(at(ticks, 200)) is not None
    failing(meter, ticks, Unavailable("refused"), "delete")
    assert meter.trouble(at(ticks, 300)) is not None


def test_a_call_that_hears_nothing_is_trouble_and_one_whose_caller_takes_its_time_is_none(
    store: Instrumented, meter: Meter, ticks: Ticks
) -> None:
    store.put_if_absent("key", b"body")
    store.put_if_absent("other", b"body")
    listing = store.list("")
    next(listing)
    assert meter.trouble(at(ticks, 1000)) is None, "who reads the listing is busy elsewhere"
    list(listing)

    def parts() -> Iterator[bytes]:
        at(ticks, 2000)
        assert meter.trouble(2000) is None, "the disk is read"
        yield b"123"

    store.upload("a/upload", parts(), size=3, crc32c=crc32c(b"123"))
    told: list[Trouble | None] = []

    class Hangs(MemoryStore):
        def get(self, key: str) -> bytes:
            told.append(meter.trouble(ticks.seconds + SILENT_S_MAX))
            told.append(meter.trouble(ticks.seconds + SILENT_S_MAX + 1))
            return b""

    Instrumented(Hangs(), meter, ticks).get("key")
    assert told[0] is None
    assert told[1] is not None
    assert "does not respond to get" in told[1].problem
