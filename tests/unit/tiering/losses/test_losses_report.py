"""The manifest that an offload commits when it sees a partition for the first time, and the losses that are found by it."""

from pathlib import Path

from archive_fakes import CountingIds, FixedClock, LosesAnswer, MemoryStore, Nth
from golden_logs import broker_logs
from logs_to_archive import local_logs, path_of, set_checkpoint
from made_manifests import assert_sound_chain
from one_offload import run
from owned_logs import PARTITION, OwnedLog

from local_log.formats.filenames import LOG, LOG_START_OFFSET_CHECKPOINT, PARTITION_METADATA
from local_log.log_reader import LogReader, open_log
from local_log.segment_reader import Segment
from remote.manifest.losses import lost_ranges
from remote.manifest.model import Manifest
from remote.store.api import ObjectStore
from tiering.losses.source_gone import record_gone
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan

TINY = "g-tiny-0"


def lost(done: list[Done]) -> list[tuple[int, int | None]]:
    return [(d.decision.segment.base_offset, d.decision.segment.end_offset) for d in done if d.is_lost and d.decision]


def both(store: ObjectStore, folder: Path) -> list[list[Done]]:
    """Two offloads of one log that both have planned before either has committed."""
    log = local_logs(folder)[TINY]
    plans = [plan(log, store), plan(log, store)]
    return [
        list(offload(due, OffloadRun(store, FixedClock(), CountingIds(prefix), "source", lambda _: None)))
        for due, prefix in zip(plans, "xy", strict=True)
    ]


def newest(store: ObjectStore, folder: Path) -> Manifest:
    return assert_sound_chain(store, path_of(local_logs(folder)[TINY]))


def test_two_at_once_see_a_partition_in_one_manifest_and_tell_of_a_loss_once(tmp_path: Path) -> None:
    folder, store = broker_logs(tmp_path, TINY), MemoryStore()
    both(store, folder)
    assert newest(store, folder).version == 1
    set_checkpoint(folder / LOG_START_OFFSET_CHECKPOINT, TINY, 3)
    assert [lost(done) for done in both(store, folder)] == [[(0, 3)], []]
    assert newest(store, folder).version == 2


def test_a_lost_answer_makes_no_second_manifest_and_no_second_loss(tmp_path: Path) -> None:
    folder, store = broker_logs(tmp_path, TINY), MemoryStore()
    first = LosesAnswer(store, Nth("put_if_absent", 1))
    assert [d.error for d in run(first, local_logs(folder)[TINY]) if d.error] == []
    assert newest(store, folder).version == 1
    set_checkpoint(folder / LOG_START_OFFSET_CHECKPOINT, TINY, 3)
    second = LosesAnswer(store, Nth("put_if_absent", 1))
    assert lost(run(second, local_logs(folder)[TINY], prefix="b")) == [(0, 3)]
    assert newest(store, folder).version == 2
    assert lost(run(store, local_logs(folder)[TINY], prefix="c")) == []


def test_a_log_that_has_no_segment_yet_is_not_remembered(tmp_path: Path) -> None:
    folder, store = broker_logs(tmp_path, TINY), MemoryStore()
    for file in (folder / TINY).iterdir():
        if file.stem.isdigit():
            file.unlink()
    run(store, local_logs(folder)[TINY])
    assert store.objects == {}


def test_of_a_topic_that_was_made_anew_what_was_not_archived_of_the_former_is_lost(tmp_path: Path) -> None:
    folder, store = broker_logs(tmp_path, TINY), MemoryStore()
    former = local_logs(folder)[TINY]
    run(store, former)
    metadata = folder / TINY / PARTITION_METADATA
    metadata.write_text(metadata.read_text().replace(former.topic_id, "Z" * 21 + "A"))
    assert lost(run(store, local_logs(folder)[TINY], prefix="b")) == [(0, former.log_end_offset)]
    gone = assert_sound_chain(store, path_of(former))
    assert [(loss.start, loss.end) for loss in lost_ranges(gone)] == [(0, former.log_end_offset)]
    assert lost_ranges(newest(store, folder)) == ()
    assert lost(run(store, local_logs(folder)[TINY], prefix="c")) == []


def test_each_source_tells_what_it_has_lost_of_a_former_topic(tmp_path: Path) -> None:
    store, folders = MemoryStore(), {name: broker_logs(tmp_path / name, TINY) for name in ("one", "other")}
    former = local_logs(folders["one"])[TINY]
    end = former.log_end_offset
    for name, folder in folders.items():
        offloaded(store, local_logs(folder)[TINY], name)
        metadata = folder / TINY / PARTITION_METADATA
        metadata.write_text(metadata.read_text().replace(former.topic_id, "Z" * 21 + "A"))
    for name, folder in folders.items():
        offloaded(store, local_logs(folder)[TINY], name)
    gone = assert_sound_chain(store, path_of(former))
    assert gone.gone.keys() == folders.keys()
    assert [(loss.start, loss.end) for loss in lost_ranges(gone)] == [(0, end)]


def offloaded(store: ObjectStore, log: LogReader, source: str) -> Manifest:
    of_source = OffloadRun(store, FixedClock(), CountingIds(source.encode().hex()), source, lambda _: None)
    assert [done.error for done in offload(plan(log, store, source=source), of_source) if done.error] == []
    return assert_sound_chain(store, path_of(log))


def test_the_end_of_a_log_of_which_all_waits_is_recorded_at_each_roll(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path))
    log.transaction(1, 1, commit=None)
    log.fill(1)
    first = offloaded(log.store, log.reader, "source")
    log.fill(1)
    assert offloaded(log.store, log.reader, "source") == first, "no commit wherever the log has grown"
    log.fill(12)
    end = log.log.log_end_offset
    assert offloaded(log.store, log.reader, "source").local_log_end_offsets == {"source": end}
    gone = record_gone(assert_sound_chain(log.store, path_of(log.reader)), log.store, FixedClock(), CountingIds("9"), "source")
    assert [(loss.start, loss.end) for loss in lost_ranges(gone)] == [(0, end)]


def test_the_end_of_a_log_that_was_truncated_is_recorded_again(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path))
    log.fill(10)
    assert offloaded(log.store, log.reader, "source").local_log_end_offsets == {"source": 20}
    log.log.truncate_to(18)
    assert offloaded(log.store, log.reader, "source").local_log_end_offsets == {"source": 18}


def test_a_first_segment_that_has_lost_its_bytes_is_lost_once_it_is_deleted(tmp_path: Path) -> None:
    log = OwnedLog(str(tmp_path))
    log.fill(4)
    end = offloaded(log.store, log.reader, "source").end_offset
    log.fill(12)
    of_broker = lambda: open_log(log.disk, log.folder, PARTITION, None, log.log.high_watermark)  # noqa: E731
    damaged = next(s for s in of_broker().segments if s.base_offset == end)
    for segment in of_broker().segments:
        if segment.base_offset < end:
            delete(log.folder, segment)
    Path(damaged.path(LOG)).write_bytes(b"")
    list(offload(plan(of_broker(), log.store), OffloadRun(log.store, FixedClock(), CountingIds("a"), "source", lambda _: None)))
    delete(log.folder, damaged)
    told = offloaded(log.store, of_broker(), "source")
    assert [(loss.start, loss.end) for loss in lost_ranges(told)] == [(end, damaged.next_base_offset)]


def delete(folder: str, segment: Segment) -> None:
    for file in Path(folder).glob(f"{segment.base_offset:020d}.*"):
        file.unlink()
