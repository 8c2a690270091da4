"""The archive as a whole, and the store in memory that stands in for the others in these tests."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from archive_fakes import (
    WRITES,
    CountingIds,
    Crash,
    CrashesAt,
    FixedClock,
    IgnoresCondition,
    LosesAnswer,
    MemoryStore,
    Nth,
    RunsBetween,
    verbs,
)
from made_manifests import entry
from store_promises import ObjectStoreConformance

from local_log.errors import AlreadyExists, Corrupt, Invalid, NotFound, Unknown
from local_log.formats.checkpoints import EpochEntry
from remote.archive import create_archive, find_topic, manifests, newest_partition, open_archive, require_partitions, topics
from remote.keys import ARCHIVE, PartitionPath
from remote.manifest.codec import encode
from remote.manifest.model import Manifest, never_archived
from remote.manifest.stamped_json import MAJOR, MINOR
from remote.manifest.store import ManifestWriter, claim
from remote.manifest.transitions import deleted, retained, segment_copied
from remote.store.api import ObjectStore

OLD, NEW = "old-topic-id_" + "0" * 9, "new-topic-id_" + "0" * 9


class TestMemoryStore(ObjectStoreConformance):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()

    def test_the_very_same_body_put_again_finds_the_key_taken(self, store: ObjectStore) -> None:
        for body in (b"", b"a", b"a body"):
            store.put_if_absent(f"key {body!r}", body)
            with pytest.raises(AlreadyExists):
                store.put_if_absent(f"key {body!r}", body)


def create(store: ObjectStore) -> None:
    create_archive(store, FixedClock(), CountingIds())


def archived(store: ObjectStore, topic: str, topic_id: str, partition: int, now_ms: int = 1_000, copies: int = 1) -> Manifest:
    path = PartitionPath(topic, topic_id, partition)
    writer = ManifestWriter(store, path, FixedClock(now_ms), CountingIds(), "w", 0)
    for number in range(copies):
        one = entry(10 * number, 10 * number + 10)
        done = writer.commit(
            never_archived(topic, topic_id, partition, 0), lambda m, one=one: segment_copied(m, one, (EpochEntry(0, 0),), "", 7)
        )
    return done


# making and opening


def test_a_new_archive_says_its_format_and_when_it_was_made() -> None:
    store = MemoryStore()
    create(store)
    assert json.loads(store.objects[ARCHIVE]) == {
        "format": {"major": MAJOR, "minor": MINOR},
        "created_at_ms": FixedClock().now_ms(),
    }
    assert list(store.objects) == [ARCHIVE]
    open_archive(store)


def test_making_it_again_writes_nothing() -> None:
    store = MemoryStore()
    create(store)
    before = dict(store.objects)
    store.calls.clear()
    create(store)
    assert store.objects == before
    assert WRITES.isdisjoint(verbs(store.calls))


def test_a_store_that_ignores_the_condition_never_becomes_an_archive() -> None:
    store = MemoryStore()
    with pytest.raises(Invalid, match="put-if-absent"):
        create(IgnoresCondition(store))
    assert store.objects == {}


def test_who_makes_it_is_told_so_and_who_finds_it_is_not() -> None:
    store = MemoryStore()
    assert create_archive(store, FixedClock(), CountingIds())
    assert not create_archive(store, FixedClock(), CountingIds("b"))


def test_of_two_that_make_it_at_once_either_may_win() -> None:
    for number in range(1, 6):
        store = MemoryStore()
        door = RunsBetween(store, {number: lambda store=store: create_archive(store, FixedClock(1), CountingIds("b"))})
        create(door)
        assert not door.actions
        open_archive(store)
        assert list(store.objects) == [ARCHIVE]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_making_it_again_finishes_what_a_crash_has_left(after: bool) -> None:
    for number in range(1, 6):
        store = MemoryStore()
        with pytest.raises(Crash):
            create(CrashesAt(store, number, after=after))
        create_archive(store, FixedClock(), CountingIds("b"))
        open_archive(store)
        assert topics(store) == ()


def test_an_archive_whose_answer_was_lost_is_found_made() -> None:
    store = MemoryStore()
    with pytest.raises(Unknown):
        create(LosesAnswer(store, Nth("put_if_absent", 3)))
    create_archive(store, FixedClock(), CountingIds("b"))
    open_archive(store)


def test_no_archive_is_not_found_by_the_address() -> None:
    with pytest.raises(NotFound, match="memory://store: no archive there"):
        open_archive(MemoryStore())


@pytest.mark.parametrize("use", [open_archive, create])
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"format": {"major": 2, "minor": 0}}', Invalid),
        (b'{"format": {"major": "1"}}', Corrupt),
        (b"{}", Corrupt),
        (b"", Corrupt),
        (b"[1]", Corrupt),
    ],
)
def test_an_archive_of_a_format_that_we_do_not_know_is_refused(
    use: Callable[[ObjectStore], None], body: bytes, error: type[Exception]
) -> None:
    store = MemoryStore()
    store.put_if_absent(ARCHIVE, body)
    with pytest.raises(error, match=ARCHIVE):
        use(store)
    assert store.objects == {ARCHIVE: body}


# what it holds


def test_an_empty_archive_holds_no_topics() -> None:
    store = MemoryStore()
    create(store)
    assert topics(store) == ()


def test_a_topic_that_is_not_archived_is_not_found_beside_those_that_are() -> None:
    store = MemoryStore()
    archived(store, "one", NEW, 0)
    with pytest.raises(NotFound, match="topic two is not in the archive memory://store; there are: one"):
        manifests(store, "two")


def test_topics_come_in_order() -> None:
    store = MemoryStore()
    create(store)
    for topic in ("b", "a.c", "a", "a-b"):
        archived(store, topic, NEW, 0)
    assert topics(store) == ("a", "a-b", "a.c", "b")


def test_partitions_come_in_the_order_of_their_numbers_with_their_newest_manifest() -> None:
    store = MemoryStore()
    newest = [archived(store, "topic", NEW, partition, copies=2) for partition in (10, 9, 0)]
    assert manifests(store, "topic") == tuple(reversed(newest))
    assert [m.version for m in manifests(store, "topic")] == [2, 2, 2]
    assert [m.path for m in manifests(store, "topic")] == [PartitionPath("topic", NEW, n) for n in (0, 9, 10)]


def test_of_topics_with_one_name_the_one_with_the_latest_commit_counts() -> None:
    store = MemoryStore()
    archived(store, "topic", OLD, 0, now_ms=1_000)
    archived(store, "topic", OLD, 1, now_ms=3_000)
    newer = [archived(store, "topic", NEW, 0, now_ms=2_000), archived(store, "topic", NEW, 1, now_ms=4_000)]
    assert manifests(store, "topic") == tuple(newer)
    archived(store, "topic", OLD, 2, now_ms=5_000)
    assert [m.topic_id for m in manifests(store, "topic")] == [OLD] * 3


def claimed_at(store: ObjectStore, topic_id: str, partition: int, now_ms: int) -> None:
    claim(store, never_archived("topic", topic_id, partition, 0), FixedClock(now_ms), CountingIds("c"), "sweep")


def test_a_commit_that_brings_no_offsets_does_not_turn_readers_to_another_topic_of_the_name() -> None:
    store = MemoryStore()
    archived(store, "topic", OLD, 0, now_ms=1_000)
    newer = archived(store, "topic", NEW, 0, now_ms=2_000)
    claimed_at(store, OLD, 0, 3_000)
    claimed_at(store, OLD, 1, 4_000)
    assert manifests(store, "topic") == (newer,)
    assert newest_partition(store, "topic", 0) == {0: newer}


def test_of_topics_from_before_that_was_noted_the_one_with_the_youngest_copy_counts() -> None:
    store = MemoryStore()
    for topic_id, copied_at_ms, committed_at_ms in ((OLD, 1_000, 9_000), (NEW, 2_000, 3_000)):
        one = replace(entry(0, 10), copied_at_ms=copied_at_ms)
        first = replace(never_archived("topic", topic_id, 0, 0), version=1, entries=(one,), committed_at_ms=committed_at_ms)
        store.put_if_absent(first.path.manifest(1), encode(first))
    assert [m.topic_id for m in manifests(store, "topic")] == [NEW]
    claimed_at(store, OLD, 0, 10_000)
    assert [m.topic_id for m in manifests(store, "topic")] == [NEW]
    noted = [m for m in find_topic(store, "topic", OLD).manifests if m.version == 2]
    assert [m.data_committed_at_ms for m in noted] == [1_000]


def test_a_topic_of_which_retention_has_taken_all_stays_the_newest_of_its_name() -> None:
    store = MemoryStore()
    archived(store, "topic", OLD, 0, now_ms=1_000)
    archived(store, "topic", NEW, 0, now_ms=2_000)
    path = PartitionPath("topic", NEW, 0)
    writer = ManifestWriter(store, path, FixedClock(3_000), CountingIds("c"), "retain", 0)
    first = never_archived("topic", NEW, 0, 0)
    writer.commit(first, lambda m: retained(m, 10, 3_000))
    writer.commit(first, lambda m: deleted(m, [d.id for d in m.deleting]))
    (newest,) = manifests(store, "topic")
    assert (newest.topic_id, newest.segment_count, newest.deleting) == (NEW, 0, ())


def test_each_of_several_topics_with_one_name_is_found_by_its_id_and_the_others_are_told() -> None:
    store = MemoryStore()
    old = archived(store, "topic", OLD, 0, now_ms=1_000)
    new = archived(store, "topic", NEW, 0, now_ms=2_000)
    found = find_topic(store, "topic")
    assert (found.topic_id, found.others, found.manifests) == (NEW, (OLD,), (new,))
    assert OLD in (found.warning or "")
    assert NEW in (found.warning or "")
    assert find_topic(store, "topic", OLD).manifests == (old,)
    assert find_topic(store, "topic", OLD).warning is None
    with pytest.raises(NotFound, match=f"of this name there are: {NEW}, {OLD}"):
        require_partitions(store, find_topic(store, "topic", "0" * 22))


def test_a_single_topic_of_a_name_is_chosen_without_a_request_more() -> None:
    store = MemoryStore()
    archived(store, "topic", NEW, 0)
    store.calls.clear()
    assert find_topic(store, "topic").warning is None
    assert verbs(store.calls) == ["list_folders", "list_folders", "list", "get"]


def test_a_partition_with_objects_and_no_manifest_does_not_exist() -> None:
    store = MemoryStore()
    one = archived(store, "topic", NEW, 0)
    path = PartitionPath("topic", NEW, 1)
    store.put_if_absent(path.segment(one.entries[0].log_name), b"uploaded, and then the uploader died")
    assert manifests(store, "topic") == (one,)


@pytest.mark.parametrize("name", ["segments", "-1", "0x1", "tmp", "²", "٣", "00"])
def test_a_foreign_folder_among_the_partitions_is_passed_over(name: str) -> None:
    store = MemoryStore()
    one = archived(store, "topic", NEW, 0)
    store.put_if_absent(f"topic/{NEW}/{name}/file", b"")
    assert manifests(store, "topic") == (one,)


def test_one_partition_is_found_without_a_look_at_the_others() -> None:
    store = MemoryStore()
    wanted = [archived(store, "topic", NEW, partition) for partition in range(20)][7]
    store.calls.clear()
    assert newest_partition(store, "topic", 7) == {7: wanted}
    assert verbs(store.calls) == ["list_folders", "list", "get"]
    assert newest_partition(store, "topic", 20) == newest_partition(store, "topic", -1) == newest_partition(store, "no", 0) == {}


def test_one_partition_is_that_of_the_newest_topic_of_its_name_also_where_only_an_older_one_had_it() -> None:
    store = MemoryStore()
    archived(store, "topic", OLD, 0, now_ms=1_000)
    archived(store, "topic", OLD, 1, now_ms=1_000)
    newer = archived(store, "topic", NEW, 0, now_ms=2_000)
    assert newest_partition(store, "topic", 0) == {0: newer}
    assert newest_partition(store, "topic", 1) == {}
