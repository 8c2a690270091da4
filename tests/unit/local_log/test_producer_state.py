"""The last stable offset: the first offset of the earliest transaction that is open at the high watermark."""

from hand_made import ABORT_KEY, COMMIT_KEY, CONTROL, TRANSACTIONAL, batch, record
from hypothesis import given
from hypothesis import strategies as st

from local_log.formats.chunks import Chunk
from local_log.formats.producer_snapshot import ProducerEntry
from local_log.formats.record_batch.batch_v2 import scan
from local_log.producer_state import last_stable_offset


def of_producer(offset: int, producer: int) -> bytes:
    return batch(record(), base_offset=offset, attributes=TRANSACTIONAL, producer_id=producer)


def marker(offset: int, producer: int, key: bytes = COMMIT_KEY) -> bytes:
    return batch(record(key=key), base_offset=offset, attributes=TRANSACTIONAL | CONTROL, producer_id=producer)


def plain(offset: int, producer: int = -1) -> bytes:
    return batch(record(), base_offset=offset, producer_id=producer)


def chunks(*batches: bytes) -> list[Chunk]:
    return [Chunk("", 0, b, scan(b)[0]) for b in batches]


def producer(producer_id: int, first_offset: int | None) -> ProducerEntry:
    return ProducerEntry(producer_id, 0, 0, 0, 0, 0, 0, first_offset)


def test_without_transactions_it_is_the_high_watermark() -> None:
    assert last_stable_offset([], [], 0) == 0
    assert last_stable_offset([], chunks(plain(0, 1), plain(1, 1)), 2) == 2
    assert last_stable_offset([producer(1, None)], [], 9) == 9


def test_an_open_transaction_holds_it_back_to_its_first_offset() -> None:
    assert last_stable_offset([], chunks(plain(0), of_producer(1, 7), plain(2), of_producer(3, 7)), 4) == 1


def test_a_commit_or_an_abort_lets_it_go_on() -> None:
    for key in (COMMIT_KEY, ABORT_KEY):
        assert last_stable_offset([], chunks(of_producer(0, 7), marker(1, 7, key)), 2) == 2


def test_the_earliest_of_several_open_transactions_counts() -> None:
    log = chunks(of_producer(0, 7), of_producer(1, 8), of_producer(2, 9), marker(3, 7))
    assert last_stable_offset([], log, 4) == 1


def test_a_producer_s_next_transaction_starts_after_its_marker() -> None:
    assert last_stable_offset([], chunks(of_producer(0, 7), marker(1, 7), plain(2), of_producer(3, 7)), 4) == 3


def test_a_transaction_whose_marker_is_at_or_above_the_high_watermark_is_open() -> None:
    log = chunks(plain(0), of_producer(1, 7), plain(2), marker(3, 7))
    assert [last_stable_offset([], log, high_watermark) for high_watermark in range(5)] == [0, 1, 1, 1, 4]


def test_a_transaction_that_starts_above_the_high_watermark_does_not_count() -> None:
    assert last_stable_offset([], chunks(plain(0), plain(1), of_producer(2, 7)), 2) == 2


def test_a_transaction_of_the_snapshot_is_open_until_its_marker() -> None:
    snapshot = [producer(7, 3), producer(8, None), producer(9, 5)]
    assert last_stable_offset(snapshot, chunks(plain(10)), 11) == 3
    assert last_stable_offset(snapshot, chunks(marker(10, 7)), 11) == 5
    assert last_stable_offset(snapshot, chunks(marker(10, 7), marker(11, 9)), 12) == 12


def test_more_of_an_open_transaction_does_not_move_its_first_offset() -> None:
    assert last_stable_offset([producer(7, 3)], chunks(of_producer(10, 7)), 11) == 3


def test_a_marker_without_a_transaction_changes_nothing() -> None:
    assert last_stable_offset([], chunks(marker(0, 7)), 1) == 1


def test_a_control_batch_that_is_no_marker_ends_no_transaction() -> None:
    leader_change = batch(record(key=b"\0\0\0\2"), base_offset=1, attributes=CONTROL, producer_id=7)
    assert last_stable_offset([], chunks(of_producer(0, 7), leader_change), 2) == 0


def test_a_marker_that_compaction_has_emptied_ends_no_transaction() -> None:
    """ProducerAppendInfo.append of a control batch without records."""
    emptied = batch(base_offset=1, attributes=TRANSACTIONAL | CONTROL, producer_id=7)
    assert scan(emptied)[0].count.tolist() == [0]
    assert last_stable_offset([], chunks(of_producer(0, 7), emptied), 2) == 0
    assert last_stable_offset([], chunks(of_producer(0, 7), emptied, marker(2, 7)), 3) == 3


def test_what_lies_above_the_high_watermark_is_not_read() -> None:
    def log() -> object:
        yield from chunks(plain(0), plain(1), plain(2))
        raise AssertionError("reads on")

    assert last_stable_offset([], log(), 2) == 2  # type: ignore[arg-type]


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["data", "marker", "plain"])), max_size=20),
    high_watermark=st.integers(0, 20),
    taken_at=st.integers(0, 20),
)
def test_a_replay_from_any_snapshot_gives_what_a_replay_of_everything_gives(
    steps: list[tuple[int, str]], high_watermark: int, taken_at: int
) -> None:
    make = {"data": of_producer, "marker": marker, "plain": plain}
    log = [make[kind](offset, p) for offset, (p, kind) in enumerate(steps)]
    high_watermark = min(high_watermark, len(steps))
    taken_at = min(taken_at, high_watermark)

    def open_at(end: int) -> dict[int, int]:
        first_offsets: dict[int, int] = {}
        for offset, (p, kind) in enumerate(steps[:end]):
            if kind == "data":
                first_offsets.setdefault(p, offset)
            elif kind == "marker":
                first_offsets.pop(p, None)
        return first_offsets

    snapshot = [producer(p, first) for p, first in open_at(taken_at).items()]
    expected = min([high_watermark, *open_at(high_watermark).values()])
    assert last_stable_offset(snapshot, chunks(*log[taken_at:]), high_watermark) == expected
    assert last_stable_offset([], chunks(*log), high_watermark) == expected
    if taken_at:  # the index may lead to a batch before the snapshot's offset: seeing it again changes nothing
        assert last_stable_offset(snapshot, chunks(*log[taken_at - 1 :]), high_watermark) == expected
