"""Of which topics compacted segments replace archived ones: by the setting, and by what the brokers' metadata says."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from golden_logs import metadata_log
from keyed_logs import KeyedLog

from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk
from tiering.agent.schedule import Job, Kind
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.view import Counts, PartitionView
from tiering.agent.watch import look
from tiering.cluster import Cluster
from tiering.offload.compacted_topics import ReplacedTopics

IDS = {"state": "VynhzvMTTY-9vvHg1k-Qhg", "orders": "EMeNEVgnQ2-9nf7l6Rr3rw"}


class NamedLog(LogReader):
    """A log of which only the topic and its id are asked for."""

    @property
    def topic_id(self) -> str:  # type: ignore[override]
        return IDS.get(self.partition.topic, "N" * 22)


def named(topic: str) -> LogReader:
    return NamedLog(OsDisk(), "/nowhere", TopicPartition(topic, 0), (), None, None)


@pytest.mark.parametrize(
    ("globs", "topic", "expected"),
    [
        ((), "state", False),
        (("st*",), "state", True),
        (("other", "state"), "state", True),
        (("other",), "state", False),
        (("*",), "unknown", True),
    ],
)
def test_the_topics_are_those_that_a_pattern_names(tmp_path: Path, globs: tuple[str, ...], topic: str, expected: bool) -> None:
    cluster = Cluster((LogDir(OsDisk(), str(metadata_log(tmp_path))),), FixedClock())
    assert ReplacedTopics(globs, cluster)(named(topic)) == expected


def test_a_topic_that_its_brokers_do_not_compact_is_none_of_them(tmp_path: Path) -> None:
    cluster = Cluster((LogDir(OsDisk(), str(metadata_log(tmp_path))),), FixedClock())
    known = cluster.retention("orders", IDS["orders"])
    assert known is not None

    class Deleting(Cluster):
        def retention(self, topic: str, topic_id: str) -> object:  # type: ignore[override]
            return replace(known, cleanup_policy=("delete",))  # type: ignore[type-var]

    assert not ReplacedTopics(("*",), Deleting((), FixedClock()))(named("orders"))


def test_metadata_that_cannot_be_read_replaces_nothing(tmp_path: Path) -> None:
    folder = metadata_log(tmp_path)
    for file in (folder / "__cluster_metadata-0").iterdir():
        file.write_bytes(b"damaged")
    assert not ReplacedTopics(("*",), Cluster((LogDir(OsDisk(), str(folder)),), FixedClock()))(named("state"))


@pytest.fixture
def log(tmp_path: Path) -> KeyedLog:
    log = KeyedLog(tmp_path / "logs")
    log.fill(4)
    log.put((b"new", b"1"))
    log.replicate()
    return log


def test_the_agent_replaces_and_counts_what_it_has_replaced(log: KeyedLog) -> None:
    store, log_dir = MemoryStore(), LogDir(OsDisk(), str(log.root))
    task = CopyTask(store, FixedClock(), CountingIds(), replaces=lambda log: True)
    view, counts = PartitionView(log_dir.path, log.reader().partition), Counts()

    def turns() -> None:
        nonlocal view, counts
        (mark,) = look(log_dir, lambda topic: True, 0)
        job, state, more = Job(Kind.copy, mark.folder), SimpleNamespace(marks={mark.folder: mark}), True
        while more:
            outcome = task.turn(job, state)()  # type: ignore[arg-type]
            assert outcome.error is None
            view, counts, more = view.after(outcome, 1), counts.after(outcome), outcome.has_more
            if more:
                task._begun.add(mark.folder)  # as the loop has it

    turns()
    assert view.archived is not None
    assert (view.archived.segments, view.archived.deleting_segments, counts.replaced_segments) == (4, 0, 0)
    log.clean()
    turns()
    closed = len(log.reader().segments) - 1
    assert (view.archived.segments, view.archived.deleting_segments) == (closed, 4)
    assert counts.replaced_segments == closed
    log.log.close()
