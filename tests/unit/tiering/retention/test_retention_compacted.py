"""Retention of compacted topics: nothing goes of one by a setting that does not name it."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from archive_fakes import CountingIds, MemoryStore, SleptClock
from golden_logs import metadata_log
from made_manifests import entry

from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk
from remote.keys import PartitionPath
from remote.manifest.gaps import NO_BATCH
from remote.manifest.model import never_archived
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import emptied, segment_copied
from tiering.cluster import Cluster
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import read_given
from tiering.retention.run import COMPACTED, Retention, Row, rows_of

IDS = {"state": "VynhzvMTTY-9vvHg1k-Qhg", "both": "qu0UQzP7SlSKxoN551p_AQ", "plain": "VVka0l47TeCfwRQMpgPXiQ"}
"""Of the golden metadata: compact; compact,delete; nothing set."""
ALL_OLD = "retention.ms=1"


@dataclass
class Archive:
    """One archived partition of a topic, its segments all old; `cluster` is what its brokers say."""

    path: PartitionPath
    store: MemoryStore
    clock: SleptClock
    cluster: Cluster | None = None

    def commit(self, *entries: SegmentEntry, empty: tuple[tuple[int, int], ...] = ()) -> "Archive":
        writer = ManifestWriter(self.store, self.path, self.clock, CountingIds("w"), "w", 0)
        first = never_archived(self.path.topic, self.path.topic_id, 0, 0)
        for one in entries:
            writer.commit(first, lambda m, one=one: emptied(segment_copied(m, one, (EpochEntry(0, 0),), "skipped", 7), empty))
        return self

    def rows(self, *settings: str) -> list[Row]:
        retention = Retention(
            self.store, self.clock, CountingIds("f"), read_given(settings), is_archive_alone=True, cluster=self.cluster
        )
        ((path, due),) = retention.planned([self.path.topic])
        if not isinstance(due, RetentionPlan):
            raise due
        return list(rows_of(path, due))

    def actions(self, *settings: str) -> list[tuple[str, str]]:
        return [(row["action"], row["reason"]) for row in self.rows(*settings)]


def whole(start: int, end: int) -> SegmentEntry:
    return entry(start, end, max_timestamp_ms=1_000)


def holed(start: int, end: int) -> SegmentEntry:
    return entry(start, end, max_timestamp_ms=1_000, record_count=end - start - 1)


def archive_of(topic: str, cluster: Cluster | None = None) -> Archive:
    clock = SleptClock()
    return Archive(PartitionPath(topic, IDS.get(topic, "A" * 22), 0), MemoryStore(clock), clock, cluster)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster((LogDir(OsDisk(), str(metadata_log(tmp_path))),), SleptClock())


@pytest.mark.parametrize("setting", [ALL_OLD, "retention.bytes=1", "sta*:retention.ms=1", "*:cleanup.policy=delete"])
def test_nothing_goes_of_a_topic_that_its_brokers_compact(cluster: Cluster, setting: str) -> None:
    archive = archive_of("state", cluster).commit(whole(0, 10), whole(10, 20))
    (row,) = archive.rows(ALL_OLD, setting)
    assert (row["action"], row["reason"], row["start"], row["end"], row["segments"]) == ("keep", COMPACTED, 0, 20, 2)


@pytest.mark.parametrize("setting", ["state:retention.ms=1", "state:cleanup.policy=compact,delete"])
def test_but_by_a_setting_that_names_it(cluster: Cluster, setting: str) -> None:
    archive = archive_of("state", cluster).commit(whole(0, 10), holed(10, 20))
    assert archive.actions(ALL_OLD, setting) == [("expire", "retention.ms")]


def test_a_topic_that_is_compacted_and_deleted_from_is_retained(cluster: Cluster) -> None:
    archive = archive_of("both", cluster).commit(holed(0, 10), holed(10, 20))
    assert archive.actions(ALL_OLD) == [("expire", "retention.ms")]


def test_records_below_a_log_start_offset_go_of_a_compacted_topic_too(cluster: Cluster) -> None:
    archive = archive_of("state", cluster).commit(whole(0, 10), whole(10, 20))
    given = read_given([ALL_OLD])
    retention = Retention(
        archive.store, archive.clock, CountingIds("f"), given, None, is_archive_alone=True, log_start_offset=10, cluster=cluster
    )
    ((path, due),) = retention.planned(["state"])
    assert isinstance(due, RetentionPlan)
    assert [(r["action"], r["start"], r["end"], r["segments"]) for r in rows_of(path, due)] == [
        ("expire", 0, 10, 1),
        ("keep", 10, 20, 1),
    ]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_where_nobody_says_a_topic_with_compacted_segments_is_refused(at: int) -> None:
    segments = [whole(10 * n, 10 * n + 10) for n in range(3)]
    segments[at] = holed(10 * at, 10 * at + 10)
    archive = archive_of("state").commit(*segments)
    for settings in ([ALL_OLD], ["retention.bytes=150"], ["st*:retention.ms=1"]):
        with pytest.raises(Invalid, match=r"state-0: it was compacted .* -c state:retention\.ms=…"):
            archive.rows(*settings)
    assert archive.actions("state:retention.ms=1") == [("expire", "retention.ms")]
    assert archive.actions(ALL_OLD, "state:cleanup.policy=compact") == [("keep", "")]
    assert archive.actions("retention.ms=-1") == [("keep", "")]


def test_so_is_one_with_emptied_segments() -> None:
    archive = archive_of("state").commit(whole(0, 10), whole(20, 30), empty=((10, 20),))
    with pytest.raises(Invalid, match="compacted"):
        archive.rows(ALL_OLD)


def test_where_nobody_says_a_topic_with_whole_segments_is_retained() -> None:
    archive = archive_of("plain").commit(whole(0, 10), whole(12, 20))
    assert archive.actions(ALL_OLD) == [("expire", "retention.ms")]


def test_brokers_that_set_no_policy_say_nothing(cluster: Cluster) -> None:
    """Their server.properties may have log.cleanup.policy=compact, which is in no metadata."""
    assert archive_of("plain", cluster).commit(whole(0, 10)).actions(ALL_OLD) == [("expire", "retention.ms")]
    with pytest.raises(Invalid, match="compacted"):
        archive_of("plain", cluster).commit(holed(0, 10)).rows(ALL_OLD)


def test_another_topic_of_the_same_name_is_not_what_the_brokers_speak_of(cluster: Cluster) -> None:
    archive = archive_of("state", cluster)
    other = Archive(PartitionPath("state", "B" * 22, 0), archive.store, archive.clock, cluster).commit(whole(0, 10))
    assert other.actions(ALL_OLD) == [("expire", "retention.ms")]


def test_a_gap_of_compaction_says_so_by_its_reason_in_older_manifests() -> None:
    archive = archive_of("state").commit(whole(0, 10))
    writer = ManifestWriter(archive.store, archive.path, archive.clock, CountingIds("x"), "w", 0)
    first = never_archived("state", archive.path.topic_id, 0, 0)
    writer.commit(first, lambda m: segment_copied(m, whole(20, 30), (EpochEntry(0, 0),), NO_BATCH, 7))
    with pytest.raises(Invalid, match="compacted"):
        archive.rows(ALL_OLD)
