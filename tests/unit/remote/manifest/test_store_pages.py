"""The commit with pages: written before the manifest that names them, in the same order of events whatever fails."""

from contextlib import suppress
from dataclasses import replace

import pytest
from archive_fakes import (
    AppliesLate,
    CountingIds,
    Crash,
    CrashesAt,
    Door,
    FailsBefore,
    FixedClock,
    LosesAnswer,
    MemoryStore,
    Nth,
    RunsBetween,
    verbs,
)
from made_manifests import PATH, assert_sound_chain, entry
from manifest_writers import FIRST

from local_log.errors import Corrupt, Fenced, Unavailable, Unknown
from local_log.formats.checkpoints import EpochEntry
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter, claim, load_newest, load_version, of_newest
from remote.manifest.transitions import retained, segment_copied
from remote.store.api import ObjectStore

LIMITS = Limits(inline_max=4, page_entries=3, fan_out=2, deleting_max=20)
FULL = 4


def writer(store: ObjectStore, name: str = "a", epoch: int = 0) -> ManifestWriter:
    return ManifestWriter(store, PATH, FixedClock(), CountingIds(name), name, epoch, LIMITS)


def copy(store: ObjectStore, *numbers: int, name: str = "a") -> Manifest:
    for number in numbers:
        one = entry(10 * number, 10 * number + 10)
        done = writer(store, f"{name}{number:x}").commit(
            FIRST, lambda m, one=one: segment_copied(m, one, (EpochEntry(0, 0),), "", 7)
        )
    return done


def held(store: ObjectStore) -> list[int]:
    return [e.base_offset // 10 for e in Entries.of(store, assert_sound_chain(store))]


@pytest.fixture
def store() -> MemoryStore:
    """As many entries inline as there may be: the next commit writes a page."""
    store = MemoryStore()
    copy(store, *range(FULL))
    store.calls.clear()
    return store


def test_a_page_is_written_and_read_back_before_the_manifest_that_names_it(store: MemoryStore) -> None:
    done = copy(store, FULL)
    (page,) = done.pages
    writes = [call[:2] for call in store.calls if call[1] == PATH.page(page.name) or call[0] == "put_if_absent"]
    key = PATH.page(page.name)
    assert writes == [("put_if_absent", key), ("get", key), ("put_if_absent", PATH.manifest(5))]
    assert (page.count, page.level, len(done.entries)) == (3, 0, 2)
    assert held(store) == [0, 1, 2, 3, 4]


def test_a_commit_that_needs_no_page_touches_none(store: MemoryStore) -> None:
    copy(store, FULL)
    store.calls.clear()
    copy(store, FULL + 1)
    assert verbs(store.calls) == ["list", "get", "put_if_absent", "list"]


def test_entries_that_come_late_wait_until_there_are_too_many_and_are_then_put_into_the_page_that_they_fall_into() -> None:
    store = MemoryStore()
    waiting = copy(store, 1, 3, 5, 7, 9, 11, 13, 2, 4, 6)
    assert [(p.base_offset, p.count) for p in waiting.pages] == [(10, 3), (70, 3)]
    assert [e.base_offset for e in waiting.entries] == [20, 40, 60, 130]
    done = copy(store, 8)
    assert [(p.base_offset, p.last_base_offset, p.count) for p in done.pages] == [(10, 60, 6), (70, 110, 3)]
    assert [e.base_offset for e in done.entries] == [80, 130]
    assert done.pages[1] == waiting.pages[1]
    assert [(g.start, g.end) for g in done.gaps] == [(0, 10), (100, 110), (120, 130)]
    assert held(store) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13]
    assert [e.base_offset // 10 for e in Entries.of(store, waiting)] == [1, 2, 3, 4, 5, 6, 7, 9, 11, 13]


@pytest.mark.parametrize("lost", [(1,), (2,), (1, 2), (1, 2, 3, 4), ()], ids=str)
def test_lost_answers_to_a_pages_put_change_nothing(store: MemoryStore, lost: tuple[int, ...]) -> None:
    copy(LosesAnswer(store, Nth("put_if_absent", *lost)), FULL)
    assert held(store) == [0, 1, 2, 3, 4]


def test_a_page_that_may_land_later_is_not_named(store: MemoryStore) -> None:
    late = AppliesLate(store, lambda verb, key: verb == "put_if_absent" and "/pages/" in key)
    with pytest.raises(Unknown, match="No manifest refers to it"):
        copy(late, FULL)
    assert held(store) == [0, 1, 2, 3]
    late.land()
    copy(store, FULL, FULL + 1, name="b")
    assert held(store) == [0, 1, 2, 3, 4, 5]


def test_a_page_that_the_store_damages_is_not_named(store: MemoryStore) -> None:
    class Damages(Door):
        def put_if_absent(self, key: str, body: object) -> None:
            super().put_if_absent(key, bytes(body)[:-1] if "/pages/" in key else body)  # type: ignore[call-overload,arg-type]

    with pytest.raises(Corrupt, match="other bytes than were sent") as raised:
        copy(Damages(store), FULL)
    assert raised.value.file.startswith(PATH.pages)
    assert held(store) == [0, 1, 2, 3]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 8))
def test_a_crash_at_any_call_leaves_a_sound_chain_and_the_next_run_ends_the_work(
    store: MemoryStore, number: int, after: bool
) -> None:
    with suppress(Crash):
        copy(CrashesAt(store, number, after=after), FULL)
    assert held(store) in ([0, 1, 2, 3], [0, 1, 2, 3, 4])
    copy(store, FULL, FULL + 1, name="b")
    assert held(store) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("verb", ["list", "get", "put_if_absent"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_failure_of_any_call_leaves_a_sound_chain_and_the_next_run_ends_the_work(
    store: MemoryStore, verb: str, number: int
) -> None:
    with pytest.raises((Unavailable, Unknown)):
        copy(FailsBefore(store, Unavailable("gone"), Nth(verb, number)), FULL)
    assert held(store) in ([0, 1, 2, 3], [0, 1, 2, 3, 4])
    copy(store, FULL, FULL + 1, name="b")
    assert held(store) == [0, 1, 2, 3, 4, 5]


def test_another_writer_before_any_call_of_a_commit_with_a_page_gives_one_chain_of_both() -> None:
    for number in range(1, 12):
        store = MemoryStore()
        copy(store, *range(FULL))
        door = RunsBetween(store, {number: lambda store=store: copy(store, 91, name="b")})
        copy(door, FULL)
        assert held(store) == [0, 1, 2, 3, 4, *([] if door.actions else [91])]
        assert load_newest(store, PATH).manifest.segment_count == len(held(store))  # type: ignore[union-attr]


def test_a_page_that_was_swept_under_a_writer_that_slept_makes_it_reload(store: MemoryStore) -> None:
    copy(store, *range(FULL, 20))
    before = load_newest(store, PATH)
    assert before is not None

    def meanwhile() -> None:
        newest = writer(store, "b").commit(FIRST, lambda m: retained(m, 15, 7))
        for page in {*Entries.of(store, before.manifest).page_names()} - {*Entries.of(store, newest).page_names()}:
            store.delete(PATH.page(page))

    done = writer(RunsBetween(store, {3: meanwhile})).commit(FIRST, lambda m: retained(m, 45, 7))
    assert done.log_start_offset == 45
    assert done.version == before.manifest.version + 2
    assert [e.base_offset // 10 for e in Entries.of(store, done)] == [*range(4, 20)]


def test_no_commit_goes_over_a_page_that_is_missing_in_the_newest_version(store: MemoryStore) -> None:
    newest = copy(store, *range(FULL, 20))
    key = PATH.page(newest.pages[0].name)
    store.delete(key)
    with pytest.raises(Corrupt) as raised:
        writer(store).commit(FIRST, lambda m: retained(m, 15, 7))
    assert raised.value.file == key
    assert load_newest(store, PATH).manifest == newest  # type: ignore[union-attr]


def test_a_read_ends_as_corrupt_where_the_newest_version_names_a_page_that_is_missing(store: MemoryStore) -> None:
    newest = copy(store, *range(FULL, 20))
    store.delete(PATH.page(newest.pages[0].name))
    asked: list[int] = []

    def entries(manifest: Manifest) -> list[SegmentEntry]:
        asked.append(manifest.version)
        assert len(asked) == 1, "asked again, of the same version"
        return [*Entries.of(store, manifest)]

    with pytest.raises(Corrupt):
        of_newest(store, newest, entries)


def test_retention_goes_on_a_page_at_a_time_until_nothing_below_the_start_is_left(store: MemoryStore) -> None:
    before = copy(store, *range(FULL, 40))
    found: list[list[int]] = []
    for _ in range(10):
        done = writer(store).commit(FIRST, lambda m: retained(m, 155, 7))
        found.append([e.base_offset // 10 for d in done.deleting for e in Entries.of(store, done).deleting(d)])
        if done.version == before.version:
            break
        before = done
    assert sorted(found[-1]) == [*range(15)]
    assert found[-1] == found[-2] or len(found) == 1
    assert held(store) == [*range(15, 40)]
    assert done.leader_epochs == (EpochEntry(0, 155),)


def test_whoever_claims_a_partition_goes_on_and_whoever_had_it_is_fenced(store: MemoryStore) -> None:
    old = writer(store)
    new = claim(store, FIRST, FixedClock(), CountingIds("b"), "b", LIMITS)
    assert new.writer_epoch == 1
    one = entry(40, 50)
    with pytest.raises(Fenced, match="writer epoch 1 of b"):
        old.commit(FIRST, lambda m: segment_copied(m, one, (EpochEntry(0, 0),), "", 7))
    done = new.commit(FIRST, lambda m: segment_copied(m, one, (EpochEntry(0, 0),), "", 7))
    assert (done.writer, done.writer_epoch, done.segment_count) == ("b", 1, 5)
    assert claim(store, FIRST, FixedClock(), CountingIds("c"), "c", LIMITS).writer_epoch == 2
    with pytest.raises(Fenced):
        new.commit(FIRST, lambda m: retained(m, 10, 7))


def test_a_claim_of_a_partition_that_nobody_has_archived_is_its_first_version() -> None:
    store = MemoryStore()
    assert claim(store, FIRST, FixedClock(), CountingIds(), "a").writer_epoch == 1
    assert load_version(store, PATH, 1).manifest == replace(FIRST, version=1, writer="a", writer_epoch=1,
        put_id=CountingIds().new_id(), committed_at_ms=FixedClock().now_ms())  # fmt: skip


def test_of_two_that_claim_at_once_one_is_fenced(store: MemoryStore) -> None:
    door = RunsBetween(store, {5: lambda: claim(store, FIRST, FixedClock(), CountingIds("b"), "b")})
    with pytest.raises(Fenced):
        claim(door, FIRST, FixedClock(), CountingIds("c"), "c")
    assert load_newest(store, PATH).manifest.writer == "b"  # type: ignore[union-attr]


# how much is read


def test_opening_takes_two_requests_and_a_search_one_more_for_each_level() -> None:
    store = MemoryStore()
    done = copy(store, *range(40))
    levels = done.pages[0].level + 1
    assert levels >= 3
    for offset in range(0, 400, 7):
        door = Door(store)
        stored = load_newest(door, PATH)
        assert stored is not None
        assert verbs(door.calls) == ["list", "get"]
        (found,) = Entries.of(door, stored.manifest).overlapping(offset, offset + 1)
        assert found.base_offset == offset // 10 * 10
        assert len(door.calls) <= 2 + levels
        door.calls.clear()
        found = next(Entries.of(door, stored.manifest).as_late_as(1_000 + offset, 0, 400))
        assert found.end_offset == max(10, -(-offset // 10) * 10)
        assert len(door.calls) <= levels


def test_pages_are_kept_up_to_a_bound(store: MemoryStore) -> None:
    done = copy(store, *range(FULL, 40))
    door = Door(store)
    entries = Entries.of(door, done, pages_max=3)
    assert len([*entries]) == 40
    names = {*entries.page_names()}
    assert len([c for c in door.calls if c[0] == "get"]) >= len(names) - 1
    assert len(entries.pages._kept) == 3
    door.calls.clear()
    for _ in range(5):
        assert next(entries.overlapping(0, 1)).base_offset == 0
    assert len(door.calls) <= done.pages[0].level + 1


def test_the_names_of_all_pages_are_told(store: MemoryStore) -> None:
    done = copy(store, *range(FULL, 40))
    while True:
        swept = writer(store, "f").commit(FIRST, lambda m: retained(m, 155, 7))
        if swept == done:
            break
        done = swept
    names = [*Entries.of(store, done).page_names()]
    assert len({*names}) == len(names)
    for key in [key for key in store.objects if "/pages/" in key]:
        if key.removeprefix(PATH.pages) not in names:
            store.delete(key)
    assert held(store) == [*range(15, 40)]
    assert sorted(e.base_offset // 10 for d in done.deleting for e in Entries.of(store, done).deleting(d)) == [*range(15)]
