"""Archived logs written as a log directory: the files are those that were archived, and our engine goes on from there."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import MemoryStore
from golden_logs import broker_logs, live
from logs_to_archive import all_records, cut_finer, due, for_applications, local_logs, offload_all, offsets_of, roll
from restored_logs import checkpoint, downloaded, files, offsets, plans, run, run_soundly

from local_log.engine.config import LogConfig
from local_log.engine.unified_log import open_log
from local_log.errors import Invalid
from local_log.formats.control import ControlType, read_control_type
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from local_log.formats.record_batch.few_records import write_marker
from local_log.formats.visible_records import record_batches
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk, OsWritableDisk
from remote.manifest.entries import Entries
from remote.segment_bytes import StoredBytes
from remote.store.api import ObjectStore
from remote.store.open import open_store
from tiering.read.tiered_log import Isolation
from tiering.restore.plan import RestorePlan, plan_restore
from tiering.restore.run import restore
from tiering.restore.target import UNFINISHED, open_target

ARCHIVED = (
    "g-big-0", "g-codec-lz4-0", "g-codec-none-0", "g-codec-snappy-0",
    "g-compacted-0", "g-compacted-txn-0", "g-trimmed-0", "g-txn-0",
)  # fmt: skip
"""Those with an inactive segment."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return broker_logs(tmp_path_factory.mktemp("broker"))


@pytest.fixture(params=["memory", "folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "memory":
        return MemoryStore()
    if request.param == "folder":
        return open_store(str(tmp_path / "archive"))
    return open_store(f"s3://{request.getfixturevalue('s3_bucket')}/archive")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.slow
def test_segments_indexes_and_snapshots_are_those_of_the_broker_byte_for_byte(
    broker: Path, store: ObjectStore, tmp_path: Path, threads: int
) -> None:
    offload_all(broker, store)
    results = run_soundly(store, str(tmp_path / "to"), threads=threads)
    assert sorted({str(done.plan.partition) for done in results}) == sorted(ARCHIVED)
    for partition in ARCHIVED:
        theirs, ours = files(broker / partition), files(tmp_path / "to" / partition)
        end = due(broker, partition)[-1][1]
        active = {f"{end:020d}{suffix}" for suffix in (".log", ".index", ".timeindex", ".txnindex")}
        archived = {name for name in theirs if name[:20].isdigit() and int(name[:20]) < end} | {f"{end:020d}.snapshot"}
        made = {"leader-epoch-checkpoint", "partition.metadata"}
        assert ours.keys() - active == (archived & theirs.keys()) | made
        assert {name: ours[name] for name in archived & theirs.keys()} == {n: theirs[n] for n in archived & theirs.keys()}
        assert ours["partition.metadata"] == theirs["partition.metadata"]


def test_our_engine_and_our_reader_find_the_log_as_it_was_archived(broker: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    offload_all(broker, store)
    run_soundly(store, str(tmp_path))
    for name, log in local_logs(tmp_path).items():
        source = local_logs(broker)[name]
        end = due(broker, name)[-1][1]
        assert log.log_start_offset == source.log_start_offset
        assert log.last_stable_offset == log.log_end_offset == log.high_watermark
        assert log.topic_id == source.topic_id
        assert log.leader_epochs == tuple(e for e in source.leader_epochs if e.start_offset < end)
        records = [for_applications(all_records(one), log.log_start_offset, end) for one in (log, source)]
        assert records[0].equals(records[1])
        open_target = open_log(
            OsWritableDisk(), str(tmp_path / name), LogConfig(), lambda: 0, lambda: 0.0,
            log_start_offset=log.log_start_offset, recovery_point=log.log_end_offset, clean=False,
        )  # fmt: skip
        assert open_target.log_end_offset == log.log_end_offset
        open_target.close()


def test_the_checkpoint_files_say_that_everything_is_flushed_and_replicated_and_where_a_log_starts_in_its_first_segment(
    broker: Path, tmp_path: Path
) -> None:
    store = MemoryStore()
    offload_all(broker, store)
    run_soundly(store, str(tmp_path))
    ends = {name: end for name, (_, _, end) in offsets(OsDisk(), str(tmp_path)).items()}
    assert checkpoint(OsDisk(), str(tmp_path), RECOVERY_POINT_CHECKPOINT) == ends
    assert checkpoint(OsDisk(), str(tmp_path), HIGH_WATERMARK_CHECKPOINT) == ends
    assert checkpoint(OsDisk(), str(tmp_path), LOG_START_OFFSET_CHECKPOINT) == {"g-trimmed-0": live("g-trimmed-0")["earliest"][0]}


def test_the_lines_and_logs_of_other_partitions_stay_and_the_mark_of_a_clean_stop_goes(broker: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    offload_all(broker_logs(tmp_path / "source", "g-txn-0"), store)
    logs = broker_logs(tmp_path / "logs", "g-big-0", "g-tiny-0")
    (logs / ".kafka_cleanshutdown").write_bytes(b'{"version":0,"brokerEpoch":1}')
    names = (RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT)
    said = [checkpoint(OsDisk(), str(logs), name) for name in names]
    others = files(logs / "g-big-0"), files(logs / "g-tiny-0")
    run_soundly(store, str(logs))
    for name, before in zip(names, said, strict=True):
        after = checkpoint(OsDisk(), str(logs), name)
        assert {p: o for p, o in after.items() if p != "g-txn-0"} == {p: o for p, o in before.items() if p != "g-txn-0"}
    assert (files(logs / "g-big-0"), files(logs / "g-tiny-0")) == others
    assert not (logs / ".kafka_cleanshutdown").exists()


def test_a_second_restore_downloads_nothing_and_changes_nothing(broker: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    offload_all(broker, store)
    first = run_soundly(store, str(tmp_path))
    before = files(tmp_path)
    again = run_soundly(store, str(tmp_path))
    assert downloaded(first) > 5 << 20
    assert downloaded(again) == 0
    assert files(tmp_path) == before


def test_a_later_restore_brings_only_what_was_archived_since(broker: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    logs = broker_logs(tmp_path / "logs", "g-codec-none-0")
    offload_all(logs, store)
    run_soundly(store, str(tmp_path / "to"))
    roll(logs, "g-codec-none-0")
    offload_all(logs, store)
    results = run_soundly(store, str(tmp_path / "to"))
    assert [done.placed.is_new for done in results if done.placed] == [False, True]
    assert offsets(OsDisk(), str(tmp_path / "to"))["g-codec-none-0"][2] == live("g-codec-none-0")["latest"][0]


def test_what_differs_in_an_unfinished_restore_is_downloaded_again_and_what_is_foreign_there_goes(
    broker: Path, tmp_path: Path
) -> None:
    store = MemoryStore()
    offload_all(broker_logs(tmp_path / "logs", "g-txn-0"), store)
    run_soundly(store, str(tmp_path / "to"))
    before = files(tmp_path / "to")
    staging = tmp_path / "to" / UNFINISHED / "g-txn-0"
    staging.parent.mkdir()
    (tmp_path / "to" / "g-txn-0").rename(staging)
    log, index = staging / "00000000000000000102.log", staging / "00000000000000002683.index"
    size = log.stat().st_size
    log.write_bytes(log.read_bytes()[:-1] + b"x")
    index_size = index.stat().st_size
    index.write_bytes(b"")
    (staging / "00000000000000009999.log").write_bytes(b"foreign")
    results = run_soundly(store, str(tmp_path / "to"))
    assert downloaded(results) == size + index_size
    assert files(tmp_path / "to") == before


# what is in the way


def test_a_folder_with_another_log_is_refused_and_left_alone(broker: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    offload_all(broker_logs(tmp_path / "logs", "g-txn-0", "g-big-0"), store)
    before = files(tmp_path / "logs" / "g-txn-0")
    results = run(store, str(tmp_path / "logs"))
    errors = {str(done.plan.partition): str(done.error) for done in results if done.error}
    assert errors.keys() == {"g-big-0", "g-txn-0"}
    assert "has other bytes than the archive would give it; nothing in it was changed" in errors["g-txn-0"]
    assert files(tmp_path / "logs" / "g-txn-0") == before


@pytest.mark.parametrize("name", ["00000000000000000102.log.deleted", "notes.txt", "00000000000000000102.swap"])
def test_a_folder_with_a_file_that_no_archive_has_is_refused(broker: Path, tmp_path: Path, name: str) -> None:
    store = MemoryStore()
    offload_all(broker_logs(tmp_path / "logs", "g-txn-0"), store)
    run_soundly(store, str(tmp_path / "to"))
    (tmp_path / "to" / "g-txn-0" / name).write_bytes(b"")
    [done] = run(store, str(tmp_path / "to"))
    assert isinstance(done.error, Invalid)
    assert f"{name} is not from the archive" in str(done.error)


def test_an_empty_folder_of_a_topic_that_was_made_anew_is_taken_over_under_its_id_alone(broker: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    offload_all(broker_logs(tmp_path / "logs", "g-txn-0"), store)
    folder = tmp_path / "to" / "g-txn-0"
    folder.mkdir(parents=True)
    other = "B" * 22
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {other}")
    (folder / "00000000000000000000.log").touch()
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    [refused] = run(store, str(tmp_path / "to"))
    assert f"--topic-id g-txn={other}" in str(refused.error)
    [plan] = plans(store, topic_ids={"g-txn": other})
    assert restored(plan, store, tmp_path / "to").topic_id == other


def test_a_directory_that_a_broker_uses_is_refused(broker: Path, tmp_path: Path) -> None:
    disk = OsWritableDisk()
    assert disk.lock(str(tmp_path / ".lock"))
    try:
        with pytest.raises(Invalid, match="a broker or another process of ours is using this log directory"):
            run(MemoryStore(), str(tmp_path))
    finally:
        disk.unlock(str(tmp_path / ".lock"))


# transactions


@pytest.mark.slow
def test_a_transaction_whose_marker_was_never_archived_is_ended_as_it_really_was(tmp_path: Path) -> None:
    """Else nobody who reads what is committed would get past it. Every segment in turn is the last one that was archived."""
    source, store = finest(tmp_path)
    outcomes: set[ControlType] = set()
    for number, plan in enumerate(shortened(plans(store)[0])):
        log = restored(plan, store, tmp_path / f"to-{number}")
        end = plan.manifest.end_offset
        assert log.last_stable_offset == log.log_end_offset == log.high_watermark
        committed = [Isolation.read_committed, 0, end]
        assert records(log, *committed) == records(source, *committed)
        outcomes |= {marker for offset, marker in markers(log) if offset >= end}
    assert outcomes == {ControlType.ABORT, ControlType.COMMIT}


def test_where_a_limit_cuts_the_log_transactions_stay_open_and_their_number_is_told(tmp_path: Path) -> None:
    _, store = finest(tmp_path)
    ongoing = 0
    for offset in (40, 700, 1500, 2600):
        to = tmp_path / f"to-{offset}"
        done = run_soundly(store, str(to), until_offset=offset)[-1]
        log = local_logs(to)["g-txn-0"]
        assert done.ongoing == len(log.open_transactions)
        assert log.last_stable_offset == min((t.first_offset for t in log.open_transactions), default=log.log_end_offset)
        ongoing += done.ongoing
    assert ongoing >= 3


def test_markers_that_a_broker_has_written_behind_what_was_restored_are_not_written_over(tmp_path: Path) -> None:
    """They look as those that a restore writes, but for their time; records may follow them that a restore would not know."""
    _, store = finest(tmp_path)
    plan = next(shortened(plans(store)[0]))
    log, to = restored(plan, store, tmp_path / "to"), tmp_path / "to"
    file = to / "g-txn-0" / f"{log.log_end_offset:020d}.log"
    own = write_marker(
        log.log_end_offset, 1_900_000_000_000, ControlType.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=0,
        partition_leader_epoch=0,
    )  # fmt: skip
    file.write_bytes(own)
    with open_target(OsWritableDisk(), str(to)) as target:
        (error,) = [d.error for d in restore([plan], StoredBytes(store), target, 1) if d.error]
    assert f"{file.name} has other bytes than the archive would give it" in str(error)
    assert file.read_bytes() == own


def finest(tmp_path: Path) -> tuple[LogReader, MemoryStore]:
    """The transactions, cut so that many of them span several segments, and their archive."""
    logs, store = broker_logs(tmp_path / "logs", "g-txn-0"), MemoryStore()
    cut_finer(logs / "g-txn-0", 60)
    offload_all(logs, store)
    return local_logs(logs)["g-txn-0"], store


def shortened(plan: RestorePlan) -> Iterator[RestorePlan]:
    """The plans of the archive as it was after each of its segments."""
    entries = plan.manifest.entries
    for count in range(1, len(entries) + 1, 3):
        manifest = replace(plan.manifest, entries=entries[:count])
        yield plan_restore(Entries(manifest, plan.entries.pages), None, {})


def restored(plan: RestorePlan, store: ObjectStore, to: Path) -> LogReader:
    with open_target(OsWritableDisk(), str(to)) as target:
        assert [d.error for d in restore([plan], StoredBytes(store), target, 1) if d.error] == []
    return local_logs(to)[str(plan.partition)]


def records(log: LogReader, isolation: Isolation, start: int, end: int) -> list[int]:
    aborted = log.aborted(start, end) if isolation is Isolation.read_committed else ()
    return offsets_of(record_batches(log.chunks(start, end), start, end, aborted))


def markers(log: LogReader) -> list[tuple[int, ControlType]]:
    found = []
    for chunk in log.chunks(0, log.log_end_offset):
        for _, batch in chunk.where(chunk.batches.is_control).records():
            keys = zip(batch.column("offset").to_pylist(), batch.column("key").to_pylist(), strict=True)
            found += [(offset, ControlType(read_control_type(key))) for offset, key in keys]
    return found
