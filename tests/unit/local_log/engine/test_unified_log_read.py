"""What a read gives: from which batch on, how many bytes of it, and up to where."""

from pathlib import Path

import pytest
from hand_made import GZIP
from logs_at_work import Log, batch_of, offsets_of, settings, values_of
from small_logs import marker

from local_log.engine.offsets import UNKNOWN, Isolation
from local_log.engine.producers.state import Origin
from local_log.errors import OffsetOutOfRange

LOG_END, HIGH_WATERMARK, TXN_COMMITTED = Isolation.LOG_END, Isolation.HIGH_WATERMARK, Isolation.TXN_COMMITTED
MIB = 1 << 20


@pytest.fixture
def at(tmp_path: Path) -> Log:
    return Log(tmp_path / "t-0")


@pytest.fixture
def with_gaps(tmp_path: Path) -> Log:
    """Batches of one record at every offset up to 49 and at every seventh from 50 on; each in a segment of its own."""
    at = Log(tmp_path / "t-0", settings(segment_bytes=72))
    at.follow(*(batch_of(f"{offset}", offset=offset) for offset in (*range(50), *range(50, 200, 7))))
    return at


def first_of(at: Log, offset: int, size_max: int) -> tuple[int, str]:
    return values_of(at.log.read(offset, size_max).records)[0]


def check_bounded(at: Log, isolation: Isolation, end: int) -> None:
    """From every offset below `end` there is something to read, all of it below `end`; from there on nothing."""
    bases = offsets_of(at.log.read(at.log.log_start_offset, MIB).records)
    for offset in range(at.log.log_start_offset, at.log.log_end_offset + 1):
        fetched = at.log.read(offset, MIB, isolation)
        assert not fetched.first_batch_is_cut
        assert fetched.start.segment_base != UNKNOWN
        if offset < end:
            assert fetched.start.offset == max(base for base in bases if base <= offset)
            assert fetched.records
            assert all(found < end for found, _ in values_of(fetched.records))
        else:
            assert fetched.records == b""


# Isolation


def test_a_follower_reads_up_to_the_logs_end(at: Log) -> None:
    at.log.append_as_leader(batch_of("0", "1", "2"), 0)
    at.log.append_as_leader(batch_of("3", "4"), 0)
    check_bounded(at, LOG_END, 5)


def test_an_application_reads_up_to_the_high_watermark(at: Log) -> None:
    at.log.append_as_leader(batch_of("0", "1", "2"), 0)
    at.log.append_as_leader(batch_of("3", "4"), 0)
    for offset in (0, 3, 5):
        at.log.update_high_watermark(offset)
        check_bounded(at, HIGH_WATERMARK, offset)


def test_what_is_replicated_can_be_read_before_and_after_a_roll(at: Log) -> None:
    records = batch_of("a", "b", "c")

    def replicated(offset: int) -> bytes:
        return at.log.read(offset, 2048, HIGH_WATERMARK, one_batch_at_least=False).records

    at.log.append_as_leader(records, 0)
    assert replicated(0) == b""
    at.log.maybe_increment_high_watermark(at.log.log_end_offset)
    assert replicated(0) == records
    at.log.roll()
    assert replicated(0) == records
    at.log.append_as_leader(records, 0)
    assert replicated(3) == b""


def test_an_application_that_wants_decisions_reads_up_to_the_last_stable_offset(at: Log) -> None:
    sequence = {1: 0, 2: 0}

    def write(producer: int, count: int) -> None:
        values = ["x"] * count
        if producer:
            batch = batch_of(*values, producer=producer, sequence=sequence[producer], transactional=True)
            sequence[producer] += count
        else:
            batch = batch_of(*values)
        at.log.append_as_leader(batch, 0)

    def end(producer: int, *, abort: bool) -> None:
        at.log.append_as_leader(marker(0, producer, commit=not abort), 0, Origin.COORDINATOR)

    def check(last_stable: int) -> None:
        assert at.log.last_stable_offset == last_stable
        check_bounded(at, TXN_COMMITTED, last_stable)

    for producer, count in ((1, 5), (0, 3), (2, 2), (1, 4), (0, 2), (1, 10)):
        write(producer, count)
    check(0)
    at.log.update_high_watermark(26)
    check(0)
    end(1, abort=False)
    check(0)
    at.log.update_high_watermark(27)
    check(8)
    end(2, abort=True)
    check(8)
    at.log.update_high_watermark(28)
    check(28)
    (aborted,) = at.log.read(0, MIB, TXN_COMMITTED).aborted or ()
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (2, 8, 27)


# Where a read starts


def test_every_offset_gives_its_own_record(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=72))
    for number in range(50):
        at.log.append_as_leader(batch_of(f"{2 * number}"), 0)
    assert [at.read(offset, 1) for offset in range(50)] == [[(offset, f"{2 * offset}")] for offset in range(50)]
    assert at.log.read(50, 100).records == b""


@pytest.mark.parametrize("size_max", [1, 100, 100_000])
def test_an_offset_in_a_gap_gives_the_next_record_and_never_less_than_one_batch(with_gaps: Log, size_max: int) -> None:
    there = range(50, 200, 7)
    for offset in range(50, 198):
        following = next(o for o in there if o >= offset)
        assert first_of(with_gaps, offset, size_max) == (following, f"{following}")


def test_a_read_that_is_too_small_for_a_batch_is_cut_and_says_so(with_gaps: Log) -> None:
    for offset in range(50, 197):
        nothing = with_gaps.log.read(offset, 0, one_batch_at_least=False)
        assert (nothing.records, nothing.first_batch_is_cut) == (b"", False)
        fetched = with_gaps.log.read(offset, 1, one_batch_at_least=False)
        assert (len(fetched.records), fetched.first_batch_is_cut) == (1, True)


def test_a_gap_at_the_end_of_a_segment_is_read_over(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=300))
    while len(at.bases) == 1:
        at.log.append_as_leader(batch_of("42"), 0)
    at.log.local.segments.first.truncate_to(1)
    assert at.read(1, 200) == [(at.log.log_end_offset - 1, "42")]


def test_an_offset_in_a_compressed_batch_gives_the_whole_batch(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=110))
    at.log.append_as_leader(batch_of("hello", "there", codec=GZIP), 0)
    at.log.append_as_leader(batch_of("alpha", "beta", codec=GZIP), 0)
    assert [first_of(at, offset, 4096) for offset in range(4)] == [(0, "hello"), (0, "hello"), (2, "alpha"), (2, "alpha")]


def test_a_read_at_the_logs_end_is_empty_and_one_outside_of_the_log_is_refused(tmp_path: Path) -> None:
    for suffix in (".log", ".index"):
        (tmp_path / f"{1024:020d}{suffix}").touch()
    at = Log(tmp_path, settings(segment_bytes=1024))
    assert at.log.append_as_leader(batch_of("42"), 0).first_offset == 1024
    assert at.log.read(1025, 1000).records == b""
    for offset in (0, 1023, 1026):
        with pytest.raises(OffsetOutOfRange):
            at.log.read(offset, 1000)


def test_a_read_below_the_log_start_offset_is_refused_though_the_records_lie_there(at: Log) -> None:
    at.follow(batch_of("a", "b", "c"))
    at.log.update_high_watermark(3)
    at.log.maybe_increment_log_start_offset(2)
    with pytest.raises(OffsetOutOfRange, match=r"offset 1 is outside \[2, 3\)"):
        at.log.read(1, 1000)
    assert at.read(2) == [(0, "a"), (1, "b"), (2, "c")]


def test_a_transaction_that_begins_again_at_its_offset_after_a_truncation_is_found_where_it_lies_now(at: Log) -> None:
    log = at.log
    for offset in range(10):
        log.append_as_follower(batch_of("long" * 100, offset=offset), 0)
    log.update_high_watermark(5)
    first = batch_of("t", offset=10, producer=7, epoch=0, sequence=0, transactional=True)
    log.append_as_follower(first, 0)
    log.truncate_to(8)
    second = [batch_of("t", offset=o, producer=8, epoch=0, sequence=o - 10, transactional=True, leader_epoch=1) for o in (10, 11)]
    short = [batch_of("s", offset=offset, leader_epoch=1) for offset in (8, 9)]
    log.append_as_follower(b"".join([*short, *second]), 1)
    log.update_high_watermark(12)
    assert log.last_stable_offset == 10
    assert log.read(8, 1 << 20, Isolation.TXN_COMMITTED).records == b"".join(short)
