"""An unclean election: the archive has offsets that the new leader lacks. Both histories are kept, and archiving goes on.

broker 0  |0 1|2 3|4 5|6 7|8         archived, then lost with its broker
broker 1  |0 1|2 3|4 100|101 102|103 104|105 leads from offset 5 on: its high watermark was there
"""

from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import CallNumber, FailsBefore, LosesAnswer, RunsBetween
from made_manifests import assert_sound_archive, assert_sound_chain
from small_brokers import CHECK_MS, HOUR_MS, B, values
from small_clusters import Cluster, path_of

from local_log.errors import Conflict, Invalid, Unavailable, Unknown
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.visible_records import record_batches
from local_log.log_reader import LogReader
from remote import archive
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.manifests.diverged import Divergence, Resolver, divergence_of, find_divergences
from tiering.manifests.rows import changes
from tiering.retention.expire import expire
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import read_given
from tiering.retention.run import Retention, rows_of


def unclean(tmp_path: Path, *numbers: int, rolls: bool = False) -> Cluster:
    """A partition of which broker 0 has archived offsets 0 to 7, and which broker 1 leads since, from offset 5 on."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicB", {0: [0, 1]}, batches_per_segment=2)
    cluster.produce(B, 0, 1, 2, 3, 4)
    cluster.produce(B, 5, 6, 7, 8, replicated=False)
    cluster.log(B, 0).update_high_watermark(9)
    cluster.tick(0)
    assert [d.error for d in cluster.offload(0) if d.error] == []
    assert cluster.manifest(B).end_offset == 8
    cluster.lead(B, 1)
    cluster.drop_replica(B, 0)
    if rolls:
        cluster.log(B, 1).roll()
    cluster.produce(B, *(numbers or range(100, 106)))
    return cluster


def leader_log(cluster: Cluster) -> LogReader:
    (log,) = cluster.leader_dir(B).logs()
    return log


def diverged(cluster: Cluster) -> Divergence:
    found = divergence_of(leader_log(cluster), cluster.store)
    assert found is not None
    return found


def resolver(cluster: Cluster, store: ObjectStore | None = None) -> Resolver:
    through = store or cluster.store
    return Resolver(through, cluster.clock, cluster.ids, DecodedBytes(through))


def resolved(cluster: Cluster) -> Manifest:
    return resolver(cluster).resolve(leader_log(cluster), diverged(cluster))


def kept(cluster: Cluster, topic_id: str) -> Manifest:
    return assert_sound_archive(cluster.store, replace(path_of(B), topic_id=topic_id))


def read(store: ObjectStore, manifest: Manifest) -> list[str]:
    start, end = manifest.log_start_offset, manifest.end_offset
    batches = record_batches(ArchivedLog(store, manifest).chunks(start, end), start, end)
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


def test_archiving_goes_on_after_an_unclean_election_and_both_histories_are_readable(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    (error,) = [d.error for d in cluster.offload() if d.error]
    assert isinstance(error, Conflict)
    assert "tiering diverged show" in str(error)
    found = diverged(cluster)
    after = resolved(cluster)
    assert after.end_offset <= 5
    assert after.leader_epochs == (EpochEntry(0, 0),)
    assert [d.error for d in cluster.offload() if d.error] == []
    goes_on = assert_sound_chain(cluster.store, path_of(B))
    assert goes_on.gaps == ()
    assert goes_on.leader_epochs == (EpochEntry(0, 0), EpochEntry(1, 5))
    assert read(cluster.store, goes_on) == values(*range(5), *range(100, 105))
    cluster.produce(B, 106, 107)
    cluster.offload_until_idle()
    assert cluster.consume(B, 0).values == values(*range(5), *range(100, 108))
    other = kept(cluster, found.kept_id)
    assert read(cluster.store, other) == values(4, 5, 6, 7)
    assert (other.kept_from, other.leader_epochs) == (path_of(B).topic_id, (EpochEntry(0, 0),))
    assert divergence_of(leader_log(cluster), cluster.store) is None


def test_a_log_of_another_history_is_refused_also_where_all_of_its_offsets_are_archived(tmp_path: Path) -> None:
    cluster = unclean(tmp_path, 100, 101)
    assert leader_log(cluster).segments[-1].base_offset < cluster.manifest(B).end_offset
    (error,) = [d.error for d in cluster.offload() if d.error]
    assert isinstance(error, Conflict)
    resolved(cluster)
    assert [d.error for d in cluster.offload() if d.error] == []
    assert read(cluster.store, cluster.manifest(B)) == values(0, 1, 2, 3, 4, 100)


def test_what_diverged_is_told_with_its_fork_and_nothing_is_changed(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    before = dict(cluster.store.objects)
    (found,) = find_divergences(cluster.leader_dir(B).logs(), cluster.store)
    assert isinstance(found, Divergence)
    assert (found.fork_offset, found.manifest.end_offset, found.log_end_offset) == (5, 8, 11)
    assert (found.start, found.segments, found.is_older) == (4, 2, False)
    assert found.log_bytes == sum(e.log_size for e in found.manifest.entries if e.end_offset > 5)
    assert cluster.store.objects == before


def test_a_partition_of_one_history_is_not_told(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    resolved(cluster)
    assert [*find_divergences(cluster.leader_dir(B).logs(), cluster.store)] == []


def test_the_history_that_goes_on_is_read_by_default_and_the_kept_one_by_its_id(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    kept_id = diverged(cluster).kept_id
    resolved(cluster)
    found = archive.find_topic(cluster.store, "topicB")
    assert (found.topic_id, found.others) == (path_of(B).topic_id, (kept_id,))
    assert "its history diverged" in (found.warning or "")
    asked = archive.find_topic(cluster.store, "topicB", kept_id)
    assert read(cluster.store, asked.manifests[0]) == values(4, 5, 6, 7)


def test_the_manifest_tells_where_the_other_history_is_kept(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    found = diverged(cluster)
    (told,) = resolved(cluster).diverged
    assert (told.fork_offset, told.start, told.end, told.topic_id) == (5, 4, 8, found.kept_id)
    assert cluster.manifest(B).diverged == (told,)


def test_what_the_log_lacks_below_the_fork_is_a_gap_that_says_where_it_is_kept(tmp_path: Path) -> None:
    cluster = unclean(tmp_path, rolls=True)
    cluster.change("topicB", local_retention_bytes=-2)
    cluster.delete_records(B, 5)
    cluster.later(CHECK_MS)
    assert leader_log(cluster).segments[0].base_offset == 5
    found = diverged(cluster)
    assert (found.start, found.fork_offset, found.log_start_offset) == (4, 5, 5)
    resolved(cluster)
    assert [d.error for d in cluster.offload() if d.error] == []
    (gap,) = cluster.manifest(B).gaps
    assert (gap.start, gap.end) == (4, 5)
    assert f"kept with the other history, under topic id {found.kept_id}" in gap.reason
    told = [text for m in (cluster.manifest(B),) for text in changes(replace(m, diverged=()), m)]
    assert told == [f"truncated to offset 5 as the log diverged; kept under topic id {found.kept_id}"]


def test_no_setting_of_the_topic_and_no_start_of_its_log_takes_anything_of_the_kept_history(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    found = diverged(cluster)
    resolved(cluster)
    given = read_given(["retention.ms=0", "file.delete.delay.ms=0"])
    cluster.later(HOUR_MS)
    for start in (None, 4):
        retention = Retention(cluster.store, cluster.clock, cluster.ids, given, is_archive_alone=True, log_start_offset=start)
        planned = dict(retention.done(["topicB"]))
        other = planned[replace(path_of(B), topic_id=found.kept_id)]
        assert isinstance(other, RetentionPlan)
        assert [row["action"] for row in rows_of(other.manifest.path, other)] == ["keep"]
    assert cluster.manifest(B).log_start_offset == cluster.manifest(B).end_offset
    assert read(cluster.store, kept(cluster, found.kept_id)) == values(4, 5, 6, 7)


def test_what_is_removed_waits_to_be_deleted_and_its_copies_are_the_same_bytes(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    removed = [e for e in cluster.manifest(B).entries if e.end_offset > 5]
    kept_id = diverged(cluster).kept_id
    after = resolved(cluster)
    assert [d.item for d in after.deleting] == removed
    copies = kept(cluster, kept_id)
    for entry, copy in zip(removed, copies.entries, strict=True):
        for one, other in ((entry.stored_log, copy.stored_log), (entry.stored_aux, copy.stored_aux)):
            assert cluster.store.objects[after.path.segment(one.name)] == cluster.store.objects[copies.path.segment(other.name)]


@pytest.mark.parametrize("lost", [False, True], ids=["fails", "answer lost"])
def test_a_resolution_that_is_stopped_anywhere_goes_on_when_it_is_run_again(tmp_path: Path, lost: bool) -> None:
    number = 0
    cluster = unclean(tmp_path)
    start = dict(cluster.store.objects)
    while True:
        number += 1
        cluster.store.objects = dict(start)
        found = diverged(cluster)
        log = leader_log(cluster)
        door = (
            LosesAnswer(cluster.store, CallNumber(number, on=True))
            if lost
            else FailsBefore(cluster.store, Unavailable("the store is away"), CallNumber(number, on=True))
        )
        try:
            resolver(cluster, door).resolve(log, found)
            break
        except (Unavailable, Unknown):
            pass
        assert_sound_chain(cluster.store, path_of(B))
        if divergence_of(log, cluster.store) is not None:
            assert read(cluster.store, cluster.manifest(B)) == values(*range(8)), "nothing is removed before it is kept"
            resolved(cluster)
        copies = kept(cluster, found.kept_id)
        assert [(e.base_offset, e.end_offset) for e in copies.entries] == [(4, 6), (6, 8)]
        assert read(cluster.store, copies) == values(4, 5, 6, 7)
        assert len(cluster.manifest(B).diverged) == 1
        assert [e.base_offset for e in Entries.of(cluster.store, cluster.manifest(B))] == [0, 2]
    assert number > 10


def retention_of_all(cluster: Cluster) -> Retention:
    """By which everything expires that is a ms old by now."""
    cluster.clock.now += 1
    return Retention(cluster.store, cluster.clock, cluster.ids, read_given(["retention.ms=0"]), is_archive_alone=True)


def test_an_expiry_that_was_planned_before_the_resolution_takes_no_offset_from_the_new_leader(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    ((_, due),) = retention_of_all(cluster).planned(["topicB"])
    assert isinstance(due, RetentionPlan)
    assert due.log_start_offset == 8
    resolved(cluster)
    late = expire(due, StoreRun(cluster.store, cluster.clock, cluster.ids), "retain")
    assert isinstance(late.error, Conflict)
    assert "run the same command again" in str(late.error)
    assert [d.error for d in cluster.offload() if d.error] == []
    assert read(cluster.store, cluster.manifest(B)) == values(*range(5), *range(100, 105))


def test_a_log_start_offset_that_was_asked_for_holds_whatever_history_lies_below(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    asked = replace(retention_of_all(cluster), given=read_given(["retention.ms=-1"]), log_start_offset=6)
    ((_, due),) = asked.planned(["topicB"])
    assert isinstance(due, RetentionPlan)
    resolved(cluster)
    assert expire(due, StoreRun(cluster.store, cluster.clock, cluster.ids), "retain").error is None
    assert cluster.manifest(B).log_start_offset == 6


def test_what_the_new_leader_has_below_the_log_start_offset_of_an_expired_archive_is_told(tmp_path: Path) -> None:
    cluster = unclean(tmp_path)
    assert diverged(cluster).below_start is None
    assert [type(due) for _, due in retention_of_all(cluster).done(["topicB"])] == [RetentionPlan]
    found = diverged(cluster)
    assert (found.fork_offset, found.segments, found.below_start) == (8, 0, (5, 8))
    resolved(cluster)
    assert [d.error for d in cluster.offload() if d.error] == []
    goes_on = assert_sound_chain(cluster.store, path_of(B))
    assert read(cluster.store, goes_on) == values(103, 104)


def test_a_resolution_in_which_an_expiry_comes_between_is_not_done_before_that_is_told(tmp_path: Path) -> None:
    number, raised = 0, 0
    cluster = unclean(tmp_path)
    start = dict(cluster.store.objects)
    while True:
        number += 1
        cluster.store.objects = dict(start)
        found, log = diverged(cluster), leader_log(cluster)
        between = RunsBetween(cluster.store, {number: lambda: [*retention_of_all(cluster).done(["topicB"])]})
        try:
            resolver(cluster, between).resolve(log, found)
        except Conflict:
            raised += 1
            assert diverged(cluster).below_start == (5, 8)
            continue
        if between.actions:
            break
        assert cluster.manifest(B).diverged[-1].fork_offset == 5
    assert raised > 5


def test_a_log_that_is_behind_gives_nothing_up(tmp_path: Path) -> None:
    """The former leader comes back with what it had, and is asked before it follows the new one."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicB", {0: [0, 1]}, batches_per_segment=2)
    cluster.produce(B, 0, 1, 2, 3, 4)
    cluster.produce(B, 5, 6, 7, 8, replicated=False)
    cluster.lead(B, 1)
    for n in (100, 101, 102, 103):
        cluster.produce(B, n, replicated=False)
    cluster.log(B, 1).update_high_watermark(9)
    cluster.tick(1)
    assert [d.error for d in cluster.offload(1) if d.error] == []
    (behind,) = cluster.brokers[0].log_dirs()[0].logs()
    found = divergence_of(behind, cluster.store)
    assert found is not None
    assert found.is_older
    before = dict(cluster.store.objects)
    with pytest.raises(Invalid, match="on the leader's host"):
        resolver(cluster).resolve(behind, found)
    assert cluster.store.objects == before
