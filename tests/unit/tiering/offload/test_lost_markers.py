"""A log that loses its end while it is offloaded, as a loss of power takes what was not synced, and abort markers with it."""

from pathlib import Path

from archive_fakes import CountingIds, FixedClock, MemoryStore
from golden_logs import broker_logs
from logs_to_archive import cut_finer, local_logs, path_of
from made_manifests import assert_sound_chain
from owned_logs import OwnedLog

from local_log.errors import Corrupt
from local_log.log_reader import LogReader
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.offload.plan import Action

TXN = "g-txn-0"


def spanning(folder: Path) -> tuple[LogReader, int]:
    """A log, and where a segment of it begins that has records of a transaction whose abort marker is in the active segment."""
    for segments in range(2, 60):
        logs = broker_logs(folder / str(segments), TXN)
        cut_finer(logs / TXN, segments)
        log = local_logs(logs)[TXN]
        *closed, active = log.segments
        later = [txn for txn in log.aborted(active.base_offset, log.last_stable_offset) if txn.first_offset < active.base_offset]
        for segment in closed if later else ():
            if (segment.next_base_offset or 0) > later[0].first_offset:
                return log, segment.base_offset
    raise AssertionError("no transaction goes on in the active segment")


def test_a_segment_whose_transaction_loses_its_abort_marker_meanwhile_is_not_archived_as_if_it_were_committed(
    tmp_path: Path,
) -> None:
    log, base = spanning(tmp_path)
    store, due = MemoryStore(), plan(log, MemoryStore())
    active = log.segments[-1].base_offset
    Path(log.folder, f"{active:020d}.log").write_bytes(b"")
    done = list(offload(due, OffloadRun(store, FixedClock(), CountingIds(), "source", lambda _: None)))
    of_one = next(d for d in done if d.decision and d.decision.segment.base_offset == base)
    assert of_one.action == Action.skipped
    assert f"has no end in the log, which was stable up to {log.last_stable_offset};" in of_one.reason
    manifest = assert_sound_chain(store, path_of(log))
    assert not any(e.base_offset == base for e in manifest.entries)


def over_segments(folder: Path) -> tuple[OwnedLog, int]:
    """A log with a transaction of producer 1 that is open since some segments ago, and the offset at which it has begun."""
    log = OwnedLog(str(folder))
    log.fill(8)
    began = log.log.log_end_offset
    log.transaction(1, 1, commit=None)
    log.fill(20)
    return log, began


def test_segments_without_records_of_that_transaction_are_archived(tmp_path: Path) -> None:
    log, began = over_segments(tmp_path)
    log.end_transaction(1, commit=False)
    reader = log.reader
    due = plan(reader, log.store)
    closed = [s.base_offset for s in reader.segments[:-1]]
    Path(reader.folder, f"{reader.segments[-1].base_offset:020d}.log").write_bytes(b"")
    done = list(offload(due, OffloadRun(log.store, FixedClock(), CountingIds(), "source", lambda _: None)))
    of_it = max(base for base in closed if base <= began)
    assert closed[-1] > of_it > closed[0]
    actions = {d.decision.segment.base_offset: d.action for d in done if d.decision and d.decision.segment.base_offset in closed}
    assert actions == {base: "skipped" if base == of_it else "copied" for base in closed}


def test_a_segment_is_refused_whose_log_has_lost_the_marker_and_does_not_know(tmp_path: Path) -> None:
    log, began = over_segments(tmp_path)
    ended = log.log.log_end_offset
    log.end_transaction(1, commit=False)
    log.fill(20)
    bases = [s.base_offset for s in log.reader.segments]
    lost, of_it = (max(base for base in bases if base <= offset) for offset in (ended, began))
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        Path(log.folder, f"{lost:020d}{suffix}").unlink(missing_ok=True)
    due = plan(log.reader, log.store)
    done = list(offload(due, OffloadRun(log.store, FixedClock(), CountingIds(), "source", lambda _: None)))
    [refused] = [d for d in done if d.error]
    assert refused.decision
    assert refused.decision.segment.base_offset == of_it
    assert isinstance(refused.error, Corrupt)
    assert f"producer 1 from offset {began} on has no end in the log" in refused.reason
