"""What an offload costs in requests: a bucket bills each, and waits for none of them."""

from pathlib import Path

import pytest
from archive_fakes import CountingIds, FailsBefore, FixedClock, MemoryStore, verbs
from golden_logs import broker_logs
from logs_to_archive import copy_of, drop_segments_below, finer_logs, local_logs, offload_all, path_of, set_checkpoint
from one_offload import TXN, due_ranges, run

from local_log.errors import Unavailable
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT, TopicPartition
from remote import archive
from remote.manifest.model import Limits
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from tiering.losses.seen_logs import RECORDED_MS_MAX, SeenLog
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan
from tiering.offload.plan import Action
from tiering.offload.run import OffloadLogs

SEGMENT = ["upload", "upload", "head", "head", "put_if_absent", "list"]
"""Data, aux, both verified; the next manifest, and whether it is the newest now."""


def test_a_segment_costs_three_puts_and_three_other_requests_and_no_get_of_what_was_just_written(txn: Path) -> None:
    log, store = local_logs(txn)[TXN], MemoryStore()
    run(store, log)
    # Of a new partition is asked whether its topic was deleted.
    assert verbs(store.calls) == ["list", "list_folders", *SEGMENT, *SEGMENT, *SEGMENT]
    puts = [verb for verb in verbs(store.calls) if verb in ("upload", "put_if_absent")]
    assert len(puts) == 3 * len(due_ranges(log))


@pytest.mark.slow
def test_a_run_with_nothing_to_do_costs_two_requests_a_partition(tmp_path: Path, finer: Path) -> None:
    store = MemoryStore()
    offload_all(finer, store)
    archived = [log for log in local_logs(finer).values() if load_newest(store, path_of(log))]
    assert len(archived) > 10
    for log in archived:
        store.calls.clear()
        run(store, log, prefix="b")
        assert verbs(store.calls) == ["list", "get"]
    store.calls.clear()
    offload_all(finer, store, ids=CountingIds("c"))
    never = len(local_logs(finer)) - len(archived)
    beginning = MemoryStore()
    archive.create_archive(beginning, FixedClock(), CountingIds())
    assert len(store.calls) <= 2 * (len(archived) + never) + len(beginning.calls)


def test_a_partition_with_pages_costs_no_more(tmp_path: Path) -> None:
    """Whether something is archived is said by the manifest alone; so it is when pages hold most of the entries."""
    log = local_logs(finer_logs(tmp_path))[TXN]
    store, limits = MemoryStore(), Limits(inline_max=2, page_entries=2, fan_out=2)
    due = plan(log, store)
    list(offload(due, OffloadRun(store, FixedClock(), CountingIds(), "source", lambda _: None, limits=limits)))
    newest = load_newest(store, path_of(log))
    assert newest is not None
    assert newest.manifest.pages
    store.calls.clear()
    assert [d.error for d in run(store, log, prefix="b") if d.error] == []
    assert verbs(store.calls) == ["list", "get"]


def test_a_local_start_that_has_moved_costs_one_more_commit(tmp_path: Path, txn: Path) -> None:
    folder, store = copy_of(txn, tmp_path / "logs"), MemoryStore()
    run(store, local_logs(folder)[TXN])
    drop_segments_below(folder, TXN, 2_683)
    store.calls.clear()
    run(store, local_logs(folder)[TXN], prefix="b")
    assert verbs(store.calls) == ["list", "get", "put_if_absent", "list"]


@pytest.mark.parametrize("partition", ["g-empty-0", "g-tiny-0"])
def test_a_log_that_has_nothing_due_costs_one_put_when_it_is_first_seen_and_none_later(tmp_path: Path, partition: str) -> None:
    log, store = local_logs(broker_logs(tmp_path, partition))[partition], MemoryStore()
    run(store, log)
    # Whether there is a manifest, whether its topic was deleted; then as any commit.
    assert verbs(store.calls) == ["list", "list_folders", "put_if_absent", "list"]
    store.calls.clear()
    run(store, log, prefix="b")
    assert verbs(store.calls) == ["list", "get"]


def test_a_log_that_is_remembered_and_has_not_moved_costs_no_request_for_a_day(tmp_path: Path) -> None:
    folder, store, clock = broker_logs(tmp_path, "g-empty-0", "g-tiny-0"), MemoryStore(), FixedClock()
    known: dict[TopicPartition, SeenLog] = {}

    def offload_again() -> list[str]:
        store.calls.clear()
        offload = OffloadLogs(store, clock, CountingIds(str(clock.now)), "source", lambda _: None, known=known)
        done = [done for _, done in offload.run(local_logs(folder).values(), 1)]
        assert [(d.decision.action, d.decision.reason) for d in done if d.decision] == [(Action.keep, "active")] * 2
        known.update({partition: seen for partition, seen in offload.changes.items() if seen})
        return verbs(store.calls)

    assert offload_again() == ["list", "list_folders", "put_if_absent", "list"] * 2
    for _ in range(3):
        clock.now += RECORDED_MS_MAX // 4
        assert offload_again() == []
    clock.now += RECORDED_MS_MAX // 4
    assert offload_again() == ["list", "get"] * 2
    assert offload_again() == []


def test_a_remembered_log_whose_start_moves_while_the_store_is_down_is_told_of_in_the_next_run(tmp_path: Path) -> None:
    folder, store = broker_logs(tmp_path, "g-tiny-0"), MemoryStore()
    known: dict[TopicPartition, SeenLog] = {}

    def offload_again(to: ObjectStore) -> list[Done]:
        offload = OffloadLogs(to, FixedClock(), CountingIds(str(len(store.calls))), "source", lambda _: None, known=known)
        done = [done for _, done in offload.run(local_logs(folder).values(), 1)]
        known.update({partition: seen for partition, seen in offload.changes.items() if seen})
        return done

    offload_again(store)
    set_checkpoint(folder / LOG_START_OFFSET_CHECKPOINT, "g-tiny-0", 3)
    down = FailsBefore(store, Unavailable("down"), lambda verb, key: verb == "put_if_absent")
    assert [type(d.error) for d in offload_again(down) if d.error] == [Unavailable]
    assert [d.is_lost for d in offload_again(store)] == [False, True]
