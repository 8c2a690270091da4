"""Archives that tell readers the wrong transactions: a deep scrub finds out by the markers, in whichever segment they are."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from archive_fakes import MemoryStore
from hypothesis import given
from hypothesis import strategies as st
from logs_at_work import batch_of
from made_manifests import PATH, entry
from owned_logs import PARTITION, OwnedLog
from scrubbed import TXN, findings, found, newest, path, with_entry, with_part
from small_logs import marker

from local_log.errors import LogError
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index, write_txn_index
from local_log.formats.transactions import control_types
from local_log.log_reader import LogReader
from remote.manifest.segment_entry import ABORTED_LATER, SegmentEntry
from remote.read.log import ArchivedLog
from remote.scrub import transactions
from remote.scrub.finding import Kind
from remote.scrub.segment_transactions import TransactionsBuilder
from remote.scrub.transactions import TransactionCheck
from tiering.offload import source

# archives of Kafka's log


def with_aborted_later(store: MemoryStore) -> Iterator[tuple[int, tuple[AbortedTxn, ...]]]:
    """The segments with transactions whose abort marker is in a later one, by number."""
    partition = path(store)
    for number, one in enumerate(newest(store).manifest.entries):
        if where := one.aux_ranges.get(ABORTED_LATER):
            yield number, read_txn_index(store.objects[partition.segment(one.aux_name)][where.start : where.end])


def read_committed(store: MemoryStore, of: SegmentEntry) -> set[int]:
    log = ArchivedLog(store, newest(store).manifest)
    return {o for r in log.records(of.base_offset, of.end_offset, committed=True) for o in r.column("offset").to_pylist()}


def test_each_abort_is_missed_whose_marker_is_in_a_later_segment(store: MemoryStore, sound: dict[str, bytes]) -> None:
    archived = list(with_aborted_later(store))
    assert len(archived) == 3
    for number, aborted in archived:
        before = read_committed(store, newest(store).manifest.entries[number])
        key = with_part(store, number, ABORTED_LATER, lambda _: b"", TXN)
        given = read_committed(store, newest(store).manifest.entries[number]) - before
        told = findings(store, deep=True)
        assert [(f.kind, f.key) for f in told] == [(Kind.missing_abort, key)] * len(aborted)
        for finding, txn in zip(told, aborted, strict=True):
            assert f"producer {txn.producer_id}," in finding.problem
            assert f"offset {txn.last_offset} in " in finding.problem
        assert given
        assert found(store) == []
        store.objects.update(sound)


def test_a_segment_is_found_of_which_the_manifest_says_that_nothing_was_aborted(store: MemoryStore) -> None:
    number, _ = next(with_aborted_later(store))
    changed = with_entry(store, number, txn_index_empty=True)
    assert set(found(store, deep=True)) == {(Kind.missing_abort, path(store).segment(changed.aux_name))}


def test_more_transactions_that_wait_for_markers_than_are_kept_are_told(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, _ = next(with_aborted_later(store))
    with_part(store, number, ABORTED_LATER, lambda _: b"", TXN)
    monkeypatch.setattr(transactions, "WAITING_MAX", 0)
    told = findings(store, deep=True)
    assert {f.kind for f in told} == {Kind.left_out}
    assert any(newest(store).manifest.entries[number].log_name in f.problem for f in told)


def over_segments(folder: Path, *, commit: bool) -> OwnedLog:
    """A transaction whose marker, of offset 42, is in a later segment than its records, of offsets 16 and 17."""
    log = OwnedLog(str(folder), MemoryStore())
    log.fill(8)
    log.offload()
    log.transaction(7, 2, commit=None)
    log.fill(12)
    log.end_transaction(7, commit=commit)
    log.fill(12)
    return log


def segment_of(log: OwnedLog, offset: int) -> int:
    """The number of the archived segment that has an offset."""
    entries = newest(log.store, PARTITION.topic).manifest.entries
    return next(n for n, e in enumerate(entries) if e.base_offset <= offset < e.end_offset)


def test_records_are_missed_that_were_committed_though_the_archive_says_that_they_were_aborted(tmp_path: Path) -> None:
    """What an archive says if a loss of power has taken an abort marker that it knows, and the transaction was committed then."""
    log = over_segments(tmp_path, commit=True)
    log.offload()
    assert findings(log.store, deep=True) == []
    wrong = write_txn_index([AbortedTxn(16, 30, 7, 31)])
    key = with_part(log.store, segment_of(log, 16), ABORTED_LATER, lambda _: wrong, PARTITION.topic, txn_index_empty=False)
    [finding] = findings(log.store, deep=True)
    assert (finding.kind, finding.key) == (Kind.false_abort, key)
    assert SAID.findall(finding.problem) == [("7", "16", "16")]
    assert "the marker at offset 42 in 00000000000000000040-" in finding.problem


# archives of earlier versions


def test_aborts_are_missed_that_an_earlier_version_did_not_archive_after_a_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def aborted_later(log: LogReader, start: int, end: int, followed: Mapping[int, int]) -> tuple[AbortedTxn, ...]:
        try:
            open_at_end: Mapping[int, int] = log.transactions_at(end)
        except LogError:
            open_at_end = followed
        return tuple(one.txn for one in log.ended_later(open_at_end, end) if one.is_aborted)

    told = {}
    for version in ("earlier", "now"):
        log = over_segments(tmp_path / version, commit=False)
        log.log.maybe_increment_log_start_offset(30)
        log.log.close()
        for snapshot in (tmp_path / version / "orders-0").glob("*.snapshot"):
            snapshot.unlink()
        log.log = log.opened(start=30)
        with monkeypatch.context() as patch:
            if version == "earlier":
                patch.setattr(source, "aborted_later", aborted_later)
            log.offload()
        told[version] = findings(log.store, deep=True)
    lines = [(f.kind, SAID.findall(f.problem)) for f in told["earlier"]]
    assert lines == [(Kind.missing_abort, [("7", "16", "16")]), (Kind.missing_abort, [("7", "17", "17")])]
    assert told["now"] == []


# any log

KINDS = ("data", "data", "data", "plain", "commit", "abort", "removed")
PRODUCERS = st.integers(0, 2)
ABORTED = st.builds(
    lambda first, length, producer: AbortedTxn(first, first + length, producer, 0),
    st.integers(0, 40),
    st.integers(0, 9),
    PRODUCERS,
)
SAID = re.compile(r"of producer (\d+), in batches of base offsets (\d+) to (\d+),")


@st.composite
def any_log(draw: st.DrawFn) -> list[bytes | None]:
    """Batches of one record at each offset, and None where a cleaner has removed one."""
    log: list[bytes | None] = []
    for offset, (kind, producer) in enumerate(
        draw(st.lists(st.tuples(st.sampled_from(KINDS), PRODUCERS), min_size=1, max_size=40))
    ):
        if kind == "removed":
            log.append(None)
        elif kind == "plain":
            log.append(batch_of("plain", offset=offset))
        elif kind == "data":
            log.append(batch_of("x", offset=offset, producer=producer, sequence=0, transactional=True))
        else:
            log.append(marker(offset, producer, commit=kind == "commit"))
    return log


def expected(log: list[bytes | None], cuts: list[int], told: list[list[AbortedTxn]]) -> set[tuple[Kind, int, int]]:
    """Kind, segment and offset of each batch whose next marker, without a missing batch before it, contradicts what is told."""
    wrong = set()
    for number, (start, end) in enumerate(pairwise(cuts)):
        for offset in range(start, end):
            facts = facts_of(log[offset])
            if facts is None or facts[1] is not None:
                continue
            left_out = any(t.producer_id == facts[0] and t.first_offset <= offset <= t.last_offset for t in told[number])
            for later in log[offset + 1 :]:
                if later is None:
                    break
                if (after := facts_of(later)) is not None and after[0] == facts[0] and after[1] is not None:
                    if after[1] is left_out:
                        wrong.add((Kind.false_abort if left_out else Kind.missing_abort, number, offset))
                    break
    return wrong


def facts_of(batch: bytes | None) -> tuple[int, bool | None] | None:
    """The producer of a transactional batch, and whether it is a commit marker, None for no marker."""
    if batch is None:
        return None
    [chunk] = chunks_of(batch)
    if not chunk.batches.is_transactional[0]:
        return None
    types = control_types(chunk.where(chunk.batches.is_control))
    return int(chunk.batches.header["producer_id"][0]), next((kind == 1 for kind in types.values()), None)


def chunks_of(data: bytes) -> list[Chunk]:
    return list(read_chunks(lambda start, end: memoryview(data)[start:end], "log", 0, len(data), first_bytes=200))


@given(any_log(), st.sets(st.integers(0, 40), max_size=3), st.lists(st.lists(ABORTED, max_size=2), min_size=4, max_size=4))
def test_what_is_found_is_what_the_markers_of_any_log_say(
    log: list[bytes | None], cut: set[int], told: list[list[AbortedTxn]]
) -> None:
    cuts = sorted({0, len(log), *(at for at in cut if at < len(log))})
    check = TransactionCheck(PATH)
    numbers, got = dict[str, int](), set()
    for number, (start, end) in enumerate(pairwise(cuts)):
        segment = entry(start, end)
        numbers[PATH.segment(segment.aux_name)] = number
        builder = TransactionsBuilder(start, end)
        for chunk in chunks_of(b"".join(one for one in log[start:end] if one is not None)):
            builder.add(chunk, control_types(chunk.where(chunk.batches.is_control)))
        for finding in check.add(segment, builder.build(told[number], 0)):
            producer, first, last = map(int, SAID.findall(finding.problem)[0])
            of = (o for o in range(first, last + 1) if facts_of(log[o]) == (producer, None))
            got |= {(finding.kind, numbers[finding.key], offset) for offset in of}
    assert got == expected(log, cuts, told)
