"""A write over many partitions: to readers it is in all of them or in none, wherever its writer stops."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from archive_fakes import (
    AppliesLate,
    CallNumber,
    CountingIds,
    Door,
    FailsBefore,
    FixedClock,
    LosesAnswer,
    MemoryStore,
    RunsBetween,
)
from made_manifests import assert_sound_chain, entry

from local_log.errors import Fenced, Invalid, NotOurs, Unavailable, Unknown
from local_log.formats.checkpoints import EpochEntry
from remote import archive
from remote.direct_write.commit import PartitionEntries, PlaceEntries, Write, commit_write
from remote.direct_write.topic import WrittenTopic, written_topic
from remote.keys import own_write_id
from remote.manifest.model import WriteMark, never_archived
from remote.manifest.store import ManifestWriter, claim, load_newest
from remote.manifest.transitions import segment_copied, source_seen, topic_deleted
from remote.manifest.write_record import Decision
from remote.manifest.writes import are_of_one_moment, was_never_there
from remote.store.api import ObjectStore

PARTITIONS = 3


class Waits(FixedClock):
    """Runs what is to happen while somebody waits."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        super().__init__()
        self.actions = [*actions]

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.actions:
            self.actions.pop(0)()


def new_store() -> MemoryStore:
    store = MemoryStore()
    archive.create_archive(store, FixedClock(), CountingIds("a"))
    return store


def place(count: int) -> PlaceEntries:
    """`count` records in every partition but the last."""

    def placed(now: Any) -> PartitionEntries:
        ends = {path: p.end_offset for path, p in now.items()}
        return {path: (entry(end, end + count),) for path, end in ends.items() if path.partition < PARTITIONS - 1}

    return placed


def write(
    store: ObjectStore, write_id: str, count: int = 10, *, topic: WrittenTopic | None = None, clock: FixedClock | None = None
) -> Decision:
    ids = CountingIds(f"{len(getattr(store, 'calls', ())):x}" + write_id.encode().hex()[:8])
    asked = Write(write_id, (topic or written_topic(store, "rows", PARTITIONS),), "tests")
    return commit_write(store, clock or FixedClock(), ids, asked, place(count), threads=1)


def ends(store: ObjectStore) -> list[int]:
    """Where each partition ends, as readers see it."""
    return [m.end_offset for m in archive.newest_manifests(store, "rows")]


def assert_nothing_pending(store: ObjectStore) -> None:
    """Every chain is sound, its entries follow each other, and nothing is pending any more."""
    for path in archive.partition_paths(store, "rows"):
        newest = assert_sound_chain(store, path)
        assert newest.pending is None
        assert not newest.gaps
        assert sum(e.record_count for e in newest.entries) == newest.end_offset


def test_a_write_adds_to_its_partitions_and_makes_those_that_get_nothing() -> None:
    store = new_store()
    decision = write(store, "one")
    assert ends(store) == [10, 10, 0]
    assert [(r.path.partition, r.start, r.end) for r in decision.ranges] == [(0, 0, 10), (1, 0, 10)]
    write(store, "two", 5)
    assert ends(store) == [15, 15, 0]
    assert_nothing_pending(store)
    marks = [m.written for m in archive.manifests(store, "rows")]
    assert {(m.write_id, m.partitions) for m in marks if m} == {("two", 3)}
    assert [m.leader_epochs for m in archive.manifests(store, "rows")] == [(EpochEntry(0, 0),)] * 3


def test_a_write_that_is_run_again_under_its_id_adds_nothing() -> None:
    store = new_store()
    first = write(store, "one")
    write(store, "two", 5)
    assert write(store, "one", 7) == first
    assert ends(store) == [15, 15, 0]


def calls_of_a_write() -> int:
    door = Door(new_store())
    topic = written_topic(door, "rows", PARTITIONS)
    door.calls.clear()
    write(door, "one", topic=topic)
    return len(door.calls)


@pytest.mark.parametrize("number", range(1, calls_of_a_write() + 1))
def test_wherever_the_writer_stops_all_or_nothing_is_seen_and_the_next_run_ends_it(number: int) -> None:
    store = new_store()
    write(store, "zero", 1)
    topic = written_topic(store, "rows")
    with suppress(Unavailable, Unknown):  # none where it had been committed by then
        write(FailsBefore(store, Unavailable("killed"), CallNumber(number, on=True)), "one", topic=topic)
    assert ends(store) in ([1, 1, 0], [11, 11, 0])
    write(store, "one", topic=written_topic(store, "rows"))
    assert ends(store) == [11, 11, 0]
    assert_nothing_pending(store)


@pytest.mark.parametrize("number", range(1, calls_of_a_write() + 1))
def test_a_topic_that_a_killed_writer_was_about_to_make_is_not_there(number: int) -> None:
    store = new_store()
    topic = written_topic(store, "rows", PARTITIONS)
    with suppress(Unavailable, Unknown):
        write(FailsBefore(store, Unavailable("killed"), CallNumber(number, on=True)), "one", topic=topic)
    assert ends(store) in ([], [10, 10, 0])
    write(store, "two", 5)
    assert ends(store) in ([5, 5, 0], [15, 15, 0])
    assert_nothing_pending(store)


@pytest.mark.parametrize("number", range(1, calls_of_a_write() + 1))
def test_a_lost_answer_leads_to_one_write_all_the_same(number: int) -> None:
    store = new_store()
    topic = written_topic(store, "rows", PARTITIONS)
    at = CallNumber(number)
    lossy = LosesAnswer(store, lambda verb, key: at(verb, key) and verb == "put_if_absent")
    write(lossy, "one", topic=topic)
    assert ends(store) == [10, 10, 0]
    assert_nothing_pending(store)


def test_a_commit_that_nobody_knows_of_is_given_up_by_the_next_run_however_late_it_lands() -> None:
    for lands_first in (True, False):
        store = new_store()
        topic = written_topic(store, "rows", PARTITIONS)
        late = AppliesLate(store, lambda verb, key: verb == "put_if_absent" and "/writes/" in key)
        with pytest.raises(Unknown, match="same writeId"):
            write(late, "one", topic=topic)
        assert ends(store) == []
        if lands_first:
            late.land()
            assert ends(store) == [10, 10, 0]
        write(store, "one", topic=topic)
        late.land()
        assert ends(store) == [10, 10, 0]
        assert_nothing_pending(store)


@pytest.mark.parametrize("number", range(1, calls_of_a_write() + 1))
@pytest.mark.parametrize(("other", "total"), [("two", 15), ("one", 10)])
def test_two_writes_at_once_follow_each_other_and_one_that_runs_twice_is_one(number: int, other: str, total: int) -> None:
    store = new_store()
    topic = written_topic(store, "rows", PARTITIONS)
    count = 5 if other == "two" else 10
    between = RunsBetween(store, {number: lambda: write(store, other, count, topic=topic)})
    write(between, "one", topic=topic)
    assert ends(store) == [total, total, 0]
    assert_nothing_pending(store)


def test_a_write_that_is_just_being_committed_is_waited_for() -> None:
    store = new_store()
    topic = written_topic(store, "rows", PARTITIONS)
    late = AppliesLate(store, lambda verb, key: verb == "put_if_absent" and "/writes/" in key)
    with pytest.raises(Unknown):
        write(late, "one", topic=topic)
    clock = Waits(late.land)
    write(store, "two", 5, topic=topic, clock=clock)
    assert clock.slept == [0.5]
    assert ends(store) == [15, 15, 0]


def test_a_reader_sees_all_partitions_of_one_moment() -> None:
    quiet = Door(new_store())
    write(quiet, "one")
    quiet.calls.clear()
    archive.manifests(quiet, "rows")
    for number in range(1, len(quiet.calls) + 1):
        store = new_store()
        write(store, "one")
        seen = ends(RunsBetween(store, {number: lambda store=store: write(store, "two", 5)}))
        assert seen in ([10, 10, 0], [15, 15, 0]), number


def test_partitions_that_a_write_has_not_reached_do_not_count() -> None:
    store = new_store()
    write(store, "one")
    one, two, three = archive.manifests(store, "rows")
    added = never_archived("rows", one.topic_id, 3, 0)
    assert are_of_one_moment({0: one, 1: two, 2: three, 3: added})
    assert are_of_one_moment({0: one, 1: two}, unreadable=[2])
    assert not are_of_one_moment({0: one, 1: two})
    assert was_never_there(ManifestWriter(store, added.path, FixedClock(), CountingIds(), "x", 0).commit(added, claimed_once))
    assert not was_never_there(three)


def claimed_once(manifest: Any) -> Any:
    from remote.manifest.transitions import claimed

    return claimed(manifest) if not manifest.version else manifest


def test_a_writer_from_before_a_sweep_stops_and_leaves_nothing_behind() -> None:
    store = new_store()
    write(store, "zero", 1)
    topic = written_topic(store, "rows")
    claim(store, archive.manifests(store, "rows")[1], FixedClock(), CountingIds("c"), "sweep")
    with pytest.raises(Fenced):
        write(store, "one", topic=topic)
    assert ends(store) == [1, 1, 0]
    assert all(load_newest(store, path).manifest.pending is None for path in archive.partition_paths(store, "rows"))  # type: ignore[union-attr]


def test_whoever_commits_to_a_partition_ends_what_is_pending_there() -> None:
    store = new_store()
    topic = written_topic(store, "rows", PARTITIONS)
    late = AppliesLate(store, lambda verb, key: verb == "put_if_absent" and "/writes/" in key)
    with pytest.raises(Unknown):
        write(late, "one", topic=topic)
    claim(store, never_archived("rows", topic.topic_id, 1, 0), FixedClock(), CountingIds("c"), "sweep")
    late.land()
    assert ends(store) == []


def test_nothing_is_written_beside_a_brokers_logs() -> None:
    store = new_store()
    first = never_archived("rows", "B" * 22, 0, 0)
    offload = ManifestWriter(store, first.path, FixedClock(), CountingIds("b"), "broker", 0)
    lineage = (EpochEntry(0, 0),)
    offload.commit(first, lambda m: source_seen(segment_copied(m, entry(0, 10), lineage, "", 7), "broker", 0))
    with pytest.raises(NotOurs, match="topic rows is archived from a broker's logs"):
        written_topic(store, "rows")


def test_a_topic_that_a_broker_has_taken_over_is_refused_even_at_the_last_moment() -> None:
    store = new_store()
    write(store, "one")
    topic = written_topic(store, "rows")
    first = archive.manifests(store, "rows")[0]
    broker = ManifestWriter(store, first.path, FixedClock(), CountingIds("b"), "broker", 0)
    broker.commit(first, lambda m: source_seen(m, "broker", 0))
    for late in (topic, None):
        with pytest.raises(NotOurs):
            write(store, "two", topic=late)
    assert ends(store) == [10, 10, 0]


def test_a_topic_that_was_deleted_is_made_anew_under_another_id() -> None:
    store = new_store()
    write(store, "one")
    former = archive.manifests(store, "rows")
    topic = written_topic(store, "rows")
    for m in former:
        ManifestWriter(store, m.path, FixedClock(), CountingIds("d"), "delete", 0).commit(m, lambda m: topic_deleted(m, 7))
    with pytest.raises((Invalid, Fenced)):
        write(store, "late", topic=topic)
    write(store, "one", 4)
    assert ends(store) == [4, 4, 0]
    assert archive.manifests(store, "rows")[0].topic_id != former[0].topic_id


def test_the_number_of_partitions_is_the_topics() -> None:
    store = new_store()
    assert len(written_topic(store, "rows").partitions) == 1
    write(store, "one")
    assert len(written_topic(store, "rows").partitions) == 3
    with pytest.raises(Invalid, match="topic rows has 3 partitions, not 4"):
        written_topic(store, "rows", 4)
    with pytest.raises(Invalid, match="it may have 1 to 10000"):
        written_topic(store, "others", 10_001)


def test_a_mark_tells_how_many_partitions_the_write_was_to() -> None:
    store = new_store()
    write(store, "one")
    assert isinstance(archive.manifests(store, "rows")[2].written, WriteMark)


def write_to_both(store: ObjectStore, write_id: str, run: str) -> Decision:
    """A record for each of the topics `a` and `b`, as a job would add them."""
    asked = Write(write_id, tuple(written_topic(store, name, 1) for name in "ab"), "tests")

    def placed(now: Any) -> PartitionEntries:
        return {path: (entry(p.end_offset, p.end_offset + 10),) for path, p in now.items()}

    return commit_write(store, FixedClock(), CountingIds(run), asked, placed, threads=1)


def delete(store: ObjectStore, name: str) -> None:
    for path in archive.partition_paths(store, name):
        first = never_archived(path.topic, path.topic_id, path.partition, 0)
        ManifestWriter(store, path, FixedClock(), CountingIds("d"), "deletes", 9).commit(first, lambda m: topic_deleted(m, 7))


def ends_of(store: ObjectStore, name: str) -> list[int]:
    return [m.end_offset for m in archive.newest_manifests(store, name)]


@pytest.mark.parametrize("deleted", ["a", "b"])
def test_a_write_to_two_topics_that_is_run_again_after_one_was_deleted_adds_nothing_to_the_other(deleted: str) -> None:
    store, (left,) = new_store(), {"a", "b"} - {deleted}
    first = write_to_both(store, "nightly", "c1")
    delete(store, deleted)
    assert write_to_both(store, "nightly", "c2") == first
    assert (ends_of(store, left), ends_of(store, deleted)) == ([10], [])
    write_to_both(store, "another", "c3")
    assert write_to_both(store, "nightly", "c4") == first
    assert (ends_of(store, left), ends_of(store, deleted)) == ([20], [10])


def test_a_write_is_run_anew_once_all_of_its_topics_were_deleted() -> None:
    store = new_store()
    write_to_both(store, "nightly", "c1")
    delete(store, "a")
    delete(store, "b")
    write_to_both(store, "nightly", "c2")
    assert (ends_of(store, "a"), ends_of(store, "b")) == ([10], [10])


def test_only_a_write_to_several_topics_under_an_id_is_looked_for_with_topics_of_before() -> None:
    def asked(write_id: str, names: str) -> list[str]:
        door = Door(new_store())
        topics = tuple(written_topic(door, name, 1) for name in names)
        door.calls.clear()
        commit_write(door, FixedClock(), CountingIds("c1"), Write(write_id, topics, "tests"), lambda now: {}, threads=1)
        return [call[1] for call in door.calls if call[0] == "list_folders"]

    assert asked("nightly", "a") == []
    assert asked(own_write_id("0" * 32), "ab") == []
    assert asked("nightly", "ab") == ["a/"]
