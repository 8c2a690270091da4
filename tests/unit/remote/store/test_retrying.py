"""Calls that failed without a trace are made again, a put whose outcome nobody knows is not; through faults all promises hold."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from archive_fakes import AppliesLate, Door, FailsBefore, LosesAnswer, MemoryStore, Nth, SleptClock, verbs
from crc32c import crc32c
from s3_servers import SometimesBusy, serving
from store_promises import MIB, ObjectStoreConformance, upload

from local_log.errors import AlreadyExists, Conflict, Fenced, Invalid, LogError, NotFound, Unavailable, Unknown, Unreachable
from remote.store.api import ObjectMeta, ObjectStore
from remote.store.open import open_backend
from remote.store.retrying import Backoff, Retrying
from remote.store.store_time import store_time_ms

BUSY = Unavailable("409 busy")


def half() -> float:
    return 0.5


class BusyDoor(Door):
    """Fails before two calls of every three."""

    def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
        if len(self.calls) % 3:
            raise Unavailable(f"{verb} {key}: busy")
        return call()


def patient(inner: ObjectStore, **backoff: Any) -> tuple[Retrying, SleptClock]:
    clock = SleptClock()
    return Retrying(inner, clock, half, Backoff(**backoff)), clock


class TestRetryingOverAStoreThatIsOftenBusy(ObjectStoreConformance):
    @pytest.fixture
    def memory(self) -> MemoryStore:
        return MemoryStore()

    @pytest.fixture
    def store(self, memory: MemoryStore) -> ObjectStore:
        return Retrying(BusyDoor(memory), SleptClock(), half, Backoff(attempts_max=1_000, deadline_s=1e9))


class TestRetryingOverAFolderThatIsOftenBusy(ObjectStoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Any) -> ObjectStore:
        busy = BusyDoor(open_backend(str(tmp_path / "archive")))
        return Retrying(busy, SleptClock(), half, Backoff(attempts_max=1_000, deadline_s=1e9))


@pytest.fixture(scope="module")
def busy_server(s3_server: str) -> Iterator[str]:
    with serving(SometimesBusy) as url:
        yield url


class TestRetryingOverAnS3ServerThatIsOftenBusy(ObjectStoreConformance):
    """Uploads in parts too: their inner requests are the SDK's to repeat, a refused completion is an upload to repeat."""

    race_rounds = uploaders = 2

    @pytest.fixture
    def store(self, busy_server: str, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        monkeypatch.setenv("AWS_ENDPOINT_URL", busy_server)
        monkeypatch.setattr("botocore.endpoint.time", SleptClock())  # the server is as busy however long the SDK waits
        backend = open_backend(f"s3://{s3_bucket}/prefix")
        return Retrying(backend, SleptClock(), half, Backoff(attempts_max=50, deadline_s=1e9))

    def test_what_was_uploaded_or_refused_leaves_no_upload_behind(self, store: ObjectStore) -> None:
        """But for one whose abort was refused five times, too: a sweep finds and frees it."""
        upload(store, "a/key", bytes(5 * MIB), b"end")
        with pytest.raises(AlreadyExists):
            upload(store, "a/key", bytes(5 * MIB), b"end")
        later_ms = store_time_ms(store, "probe") + 60_000
        for left in store.abandoned_uploads("", later_ms):
            store.abort_upload(left)
        assert list(store.abandoned_uploads("", later_ms)) == []
        assert store.get("a/key") == bytes(5 * MIB) + b"end"


READS: dict[str, Callable[[ObjectStore], Any]] = {
    "get": lambda store: store.get("a/key"),
    "get_range": lambda store: store.get_range("a/key", 1, 3),
    "head": lambda store: store.head("a/key"),
    "list": lambda store: list(store.list("a/")),
    "list_folders": lambda store: list(store.list_folders("")),
    "abandoned_uploads": lambda store: list(store.abandoned_uploads("", 1)),
}
REPEATABLE: dict[str, Callable[[ObjectStore], Any]] = {
    **READS,
    "put_if_absent": lambda store: store.put_if_absent("new", b"body"),
    "upload": lambda store: store.upload("new", [b"bo", b"dy"], size=4, crc32c=crc32c(b"body")),
    "delete": lambda store: store.delete("a/key"),
}


@pytest.fixture
def memory() -> MemoryStore:
    store = MemoryStore()
    store.put_if_absent("a/key", b"body")
    store.calls.clear()
    return store


@pytest.mark.parametrize("verb", REPEATABLE)
def test_what_was_unavailable_is_asked_again_with_growing_waits(memory: MemoryStore, verb: str) -> None:
    store, clock = patient(FailsBefore(memory, BUSY, Nth(verb, 1, 2, 3)))
    undisturbed = MemoryStore()
    undisturbed.put_if_absent("a/key", b"body")
    assert REPEATABLE[verb](store) == REPEATABLE[verb](undisturbed)
    assert memory.objects == undisturbed.objects
    assert clock.slept == pytest.approx([0.075, 0.15, 0.3])


@pytest.mark.parametrize("verb", REPEATABLE)
def test_what_stays_unavailable_says_how_often_it_was_asked(memory: MemoryStore, verb: str) -> None:
    door = FailsBefore(memory, BUSY, Nth(verb))
    store, clock = patient(door, attempts_max=4)
    with pytest.raises(Unavailable, match=r"409 busy; tried 4 times in 0\.5 s"):
        REPEATABLE[verb](store)
    assert verbs(door.calls) == [verb] * 4
    assert len(clock.slept) == 3


@pytest.mark.parametrize("verb", REPEATABLE)
@pytest.mark.parametrize("error", [NotFound("x"), Invalid("x"), AlreadyExists("x"), Conflict("x"), Fenced("x")], ids=repr)
def test_what_another_try_cannot_mend_is_asked_once(memory: MemoryStore, verb: str, error: LogError) -> None:
    door = FailsBefore(memory, error, Nth(verb))
    store, clock = patient(door)
    with pytest.raises(type(error)) as raised:
        REPEATABLE[verb](store)
    assert raised.value is error
    assert verbs(door.calls) == [verb]
    assert clock.slept == []


def test_no_try_starts_after_the_deadline(memory: MemoryStore) -> None:
    class Slow(Door):
        def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
            clock.now += 40_000
            raise Unavailable("timed out")

    door = Slow(memory)
    clock = SleptClock()
    with pytest.raises(Unavailable, match="tried 3 times in 120"):
        Retrying(door, clock, half, Backoff(deadline_s=100)).get("a/key")
    assert len(door.calls) == 3


def test_a_store_that_was_never_reached_is_given_up_after_seconds_and_one_that_was_is_not(memory: MemoryStore) -> None:
    door = FailsBefore(memory, Unreachable("refused"), lambda verb, key: verb == "get")
    store, clock = patient(door)
    with pytest.raises(Unreachable, match="refused; tried 6 times in"):
        store.get("a/key")
    assert sum(clock.slept) <= Backoff().unreached_s
    assert [meta.key for meta in store.list("a/")] == ["a/key"]
    with pytest.raises(Unreachable, match="refused; tried 7 times in"):
        store.get("a/key")


def test_waits_have_a_limit_and_half_of_each_is_left_to_chance() -> None:
    backoff = Backoff(first_wait_s=1, wait_max_s=5)
    assert [backoff.wait_s(n, 0) for n in (1, 2, 3, 4, 10_000)] == [0.5, 1, 2, 2.5, 2.5]
    assert [backoff.wait_s(n, 1) for n in (1, 2, 3, 4)] == [1, 2, 4, 5]


# puts


def test_a_put_of_unknown_outcome_is_the_callers_to_judge(memory: MemoryStore) -> None:
    for door in (LosesAnswer(memory, Nth("put_if_absent")), AppliesLate(memory, Nth("put_if_absent"))):
        store, clock = patient(door)
        with pytest.raises(Unknown):
            store.put_if_absent(f"key of {type(door).__name__}", b"body")
        assert verbs(door.calls) == ["put_if_absent"]
        assert clock.slept == []
    assert "key of LosesAnswer" in memory.objects


def test_a_put_that_was_refused_and_then_finds_its_key_taken_has_lost(memory: MemoryStore) -> None:
    store, _ = patient(FailsBefore(memory, BUSY, Nth("put_if_absent", 1)))
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a/key", b"body")


def test_a_put_that_was_refused_and_then_is_unknown_is_unknown(memory: MemoryStore) -> None:
    lost = LosesAnswer(FailsBefore(memory, BUSY, Nth("put_if_absent", 1)), Nth("put_if_absent", 2))
    store, _ = patient(lost)
    with pytest.raises(Unknown):
        store.put_if_absent("new", b"body")
    assert memory.objects["new"] == b"body"


# uploads


def test_an_upload_whose_answer_was_lost_is_made_again_and_finds_its_own(memory: MemoryStore) -> None:
    door = LosesAnswer(memory, Nth("upload", 1))
    store, _ = patient(door)
    store.upload("new", [b"bo", b"dy"], size=4, crc32c=crc32c(b"body"))
    assert verbs(door.calls) == ["upload", "upload", "head"]
    assert memory.objects["new"] == b"body"


def test_an_upload_whose_first_try_lands_late_finds_its_own(memory: MemoryStore) -> None:
    door = AppliesLate(memory, Nth("upload", 1))
    store = Retrying(door, LandingClock(door), half)
    store.upload("new", [b"body"], size=4, crc32c=crc32c(b"body"))
    assert memory.objects["new"] == b"body"


class LandingClock(SleptClock):
    """What is on its way lands while somebody waits."""

    def __init__(self, door: AppliesLate) -> None:
        super().__init__()
        self.door = door

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.door.land()


def test_an_upload_that_never_got_an_answer_is_unknown_whatever_came_last(memory: MemoryStore) -> None:
    door = FailsBefore(AppliesLate(memory, Nth("upload", 1)), BUSY, NotFirst())
    store, _ = patient(door, attempts_max=3)
    with pytest.raises(Unknown, match="tried 3 times"):
        store.upload("new", [b"body"], size=4, crc32c=crc32c(b"body"))


class NotFirst:
    """Every call but the first."""

    def __init__(self) -> None:
        self.calls = itertools.count()

    def __call__(self, verb: str, key: str) -> bool:
        return next(self.calls) > 0


@pytest.mark.parametrize("other", [b"other", b"ydob", b""])
def test_an_upload_never_takes_anothers_object_for_its_own(memory: MemoryStore, other: bytes) -> None:
    class TakenMeanwhile(AppliesLate):
        def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
            try:
                return super().around(verb, key, call)
            except Unknown:
                memory.objects["new"] = other
                raise

    store, _ = patient(TakenMeanwhile(memory, Nth("upload", 1)))
    with pytest.raises(AlreadyExists):
        store.upload("new", [b"body"], size=4, crc32c=crc32c(b"body"))
    assert memory.objects["new"] == other


def test_an_upload_that_a_sweep_has_deleted_before_its_answer_came_is_unknown(memory: MemoryStore) -> None:
    class Swept(LosesAnswer):
        def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
            if verb == "head":
                memory.delete(key)
            return super().around(verb, key, call)

    store, _ = patient(Swept(memory, Nth("upload", 1)))
    with pytest.raises(Unknown):
        store.upload("new", [b"body"], size=4, crc32c=crc32c(b"body"))


def test_an_upload_of_a_taken_key_is_refused_at_once(memory: MemoryStore) -> None:
    door = Door(memory)
    store, _ = patient(door)
    with pytest.raises(AlreadyExists):
        store.upload("a/key", [b"body"], size=4, crc32c=crc32c(b"body"))
    assert verbs(door.calls) == ["upload"]


@pytest.mark.parametrize("error", [BUSY, Unknown("lost")], ids=repr)
def test_an_upload_whose_parts_can_be_read_once_is_made_once(memory: MemoryStore, error: LogError) -> None:
    door = FailsBefore(memory, error, Nth("upload"))
    store, _ = patient(door)
    with pytest.raises(type(error)):
        store.upload("new", iter([b"body"]), size=4, crc32c=crc32c(b"body"))
    assert verbs(door.calls) == ["upload"]


# listings


class BreaksOff(Door):
    """A listing that breaks off behind each so many items. `given` counts those that were asked of the store."""

    def __init__(self, inner: ObjectStore, items: int) -> None:
        super().__init__(inner)
        self.items = items
        self.given = 0

    def list(self, prefix: str, **range_: Any) -> Any:
        self.calls.append(("list", prefix))
        return self.broken(self.inner.list(prefix, **range_))

    def list_folders(self, prefix: str) -> Any:
        self.items += 1
        return self.broken(self.inner.list_folders(prefix))

    def broken(self, found: Any) -> Any:
        for number, item in enumerate(found):
            if number == self.items:
                raise Unavailable("the listing broke off")
            self.given += 1
            yield item


@pytest.mark.parametrize(("limit", "items"), [(None, 1), (None, 3), (7, 2), (6, 3), (100, 5)])
def test_a_listing_that_breaks_off_goes_on_where_it_was(limit: int | None, items: int) -> None:
    memory = MemoryStore()
    keys = [f"a/{n:02}" for n in range(20)]
    for key in keys:
        memory.put_if_absent(key, b"")
    door = BreaksOff(memory, items)
    store, clock = patient(door, attempts_max=2)
    assert list(store.list("a/", limit=limit)) == [ObjectMeta(key, 0, None, memory.clock.now_ms()) for key in keys[:limit]]
    assert door.given == len(keys[:limit])  # none was asked for twice
    assert len(clock.slept) == (door.given - 1) // items


def test_a_listing_of_folders_that_breaks_off_gives_each_once() -> None:
    memory = MemoryStore()
    for name in ("a", "a-b", "a.c", "b", "c", "d"):
        memory.put_if_absent(f"{name}/key", b"")
    store, _ = patient(BreaksOff(memory, 0), attempts_max=2)
    assert list(store.list_folders("")) == list(memory.list_folders(""))


def test_a_listing_that_gives_nothing_before_it_breaks_off_is_given_up() -> None:
    store, clock = patient(BreaksOff(MemoryStore(), 0), attempts_max=3)
    store.put_if_absent("a", b"")
    with pytest.raises(Unavailable, match="tried 3 times"):
        list(store.list(""))
    assert len(clock.slept) == 2
