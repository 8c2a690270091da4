"""The manifest of a topic that was deleted: all of it waits to be deleted, and nothing comes in any more."""

from dataclasses import replace

import pytest
from archive_fakes import MemoryStore
from made_manifests import PATH, assert_sound_chain, entry, manifest, paged
from manifest_writers import FIRST, Writer, copied

from local_log.errors import Fenced, Invalid
from local_log.formats.checkpoints import EpochEntry
from remote.archive import newest_partitions, partition_paths, partitions_of
from remote.keys import PartitionPath
from remote.manifest import invariants
from remote.manifest.codec import decode, encode
from remote.manifest.history import check_history
from remote.manifest.model import Deleting
from remote.manifest.store import claim, load_newest
from remote.manifest.transitions import segment_copied, topic_deleted

LINEAGE = (EpochEntry(0, 0),)


def test_everything_waits_to_be_deleted_and_nothing_is_left_to_read() -> None:
    ref, late, gap = paged(entry(0, 10), entry(10, 20)), entry(20, 30), entry(40, 50)
    before = manifest(late, gap, pages=(ref,), leader_epochs=LINEAGE)
    after = topic_deleted(before, 77)
    assert after.is_deleted
    assert (after.log_start_offset, after.end_offset, after.segment_count, after.gaps) == (50, 50, 0, ())
    assert after.deleting == (Deleting(ref, 77), Deleting(late, 77), Deleting(gap, 77))
    assert after.writer_epoch == before.writer_epoch + 1


def test_deleting_it_again_changes_nothing_but_takes_what_there_was_no_room_for() -> None:
    before = manifest(entry(0, 10), entry(10, 20), leader_epochs=LINEAGE)
    once = topic_deleted(before, 77, deleting_max=1)
    twice = topic_deleted(once, 99, deleting_max=2)
    assert [d.since_ms for d in twice.deleting] == [77, 99]
    assert (twice.deleted_at_ms, twice.writer_epoch) == (77, 1)
    assert topic_deleted(twice, 111) == twice


def test_a_late_copy_is_refused_wherever_it_lies() -> None:
    gone = topic_deleted(manifest(entry(0, 10), leader_epochs=LINEAGE), 77)
    for late in (entry(0, 10), entry(10, 20), entry(50, 60)):
        with pytest.raises(Invalid, match=f"id {PATH.topic_id} was deleted"):
            segment_copied(gone, late, LINEAGE, "late", 99)
    with pytest.raises(Invalid, match="another id"):
        check_history(gone, LINEAGE, 20)


def test_no_later_version_takes_it_back() -> None:
    before = replace(topic_deleted(manifest(entry(0, 10)), 77), version=4)
    kept = replace(before, version=5)
    invariants.check(before, kept)
    for change in ({"deleted_at_ms": 0}, {"deleted_at_ms": 78}):
        with pytest.raises(Invalid, match="a topic that was deleted stays so"):
            invariants.check(before, replace(kept, **change))
    with pytest.raises(Invalid, match="with nothing to read"):
        invariants.check(before, replace(kept, entries=(entry(10, 20),)))


def test_a_manifest_that_was_never_deleted_keeps_its_form() -> None:
    some = manifest(entry(0, 10))
    assert b"deleted_at_ms" not in encode(some)
    gone = topic_deleted(some, 77)
    assert decode(encode(gone), "key") == gone


def test_a_writer_from_before_is_fenced_and_one_from_after_refused() -> None:
    store = MemoryStore()
    sleeper = Writer(store, "a")
    sleeper.copy(0)
    Writer(store, "b").commit(lambda m: topic_deleted(m, 77))
    with pytest.raises(Fenced):
        sleeper.copy(1)
    with pytest.raises(Invalid, match="was deleted"):
        claim(store, FIRST, sleeper.clock, sleeper.writer.ids, "c").commit(FIRST, copied(1))
    newest = load_newest(store, PATH)
    assert newest is not None
    assert newest.manifest.is_deleted
    assert_sound_chain(store)


def test_readers_do_not_find_it_and_retention_does() -> None:
    store = MemoryStore()
    other = PartitionPath(PATH.topic, "B" * 22, 3)
    Writer(store, "a").copy(0)
    Writer(store, "b").commit(lambda m: topic_deleted(m, 77))
    store.put_if_absent(f"{other.prefix}pins/x", b"")
    store.put_if_absent(f"{PATH.topic}/{other.topic_id}/foreign/x", b"")
    assert partitions_of(store, PATH.topic, PATH.topic_id) == {}
    assert newest_partitions(store, PATH.topic) == {}
    assert [*partition_paths(store, PATH.topic)] == [PATH, other]
