"""The manifest that an offload commits when it sees a partition for the first time, and the losses that are found by it."""

from pathlib import Path

from archive_fakes import CountingIds, FixedClock, LosesAnswer, MemoryStore, Nth
from golden_logs import broker_logs
from logs_to_archive import local_logs, path_of, set_checkpoint
from made_manifests import assert_sound_chain
from one_offload import run

from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT, PARTITION_METADATA
from remote.manifest.losses import lost_ranges
from remote.manifest.model import Manifest
from remote.store.api import ObjectStore
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
