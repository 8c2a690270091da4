"""What an application sees: a range of offsets without control records and aborted transactions."""

import pytest
from hand_made import ABORT_KEY, COMMIT_KEY, CONTROL, GZIP, TRANSACTIONAL, ZSTD, batch, compressed, record

from local_log.errors import Corrupt
from local_log.formats.chunks import Chunk
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.record_batch.projection import Projection
from local_log.formats.visible_records import record_batches, visible


def rows(*deltas: int) -> list[bytes]:
    return [record(delta, value=b"%d" % delta) for delta in deltas]


def chunk(*batches: bytes, position: int = 0) -> Chunk:
    buffer = b"".join(batches)
    return Chunk("some.log", position, buffer, scan(buffer)[0])


def offsets(chunks: list[Chunk], start: int, end: int, aborted: tuple[AbortedTxn, ...] = ()) -> list[int]:
    found = list(record_batches(chunks, start, end, aborted))
    assert all(len(records) for records in found)
    return [offset for records in found for offset in records.column("offset").to_pylist()]


LOG = chunk(
    batch(*rows(0, 1, 2), base_offset=0),
    batch(*rows(0, 1), base_offset=3, attributes=TRANSACTIONAL, producer_id=1),
    batch(*rows(0), base_offset=5, attributes=TRANSACTIONAL | GZIP, producer_id=2),
    batch(*rows(0), base_offset=6, producer_id=1),
    batch(record(key=ABORT_KEY), base_offset=7, attributes=TRANSACTIONAL | CONTROL, producer_id=1),
    batch(*rows(0), base_offset=8, attributes=TRANSACTIONAL, producer_id=1),
    batch(record(key=COMMIT_KEY), base_offset=9, attributes=TRANSACTIONAL | CONTROL, producer_id=1),
    batch(record(key=COMMIT_KEY), base_offset=10, attributes=TRANSACTIONAL | CONTROL, producer_id=2),
    batch(*rows(0, 3, 9), base_offset=20, last_delta=9),
)
ABORTED = (AbortedTxn(3, 7, 1, 3),)


def test_control_records_are_not_seen() -> None:
    assert offsets([LOG], 0, 100) == [0, 1, 2, 3, 4, 5, 6, 8, 20, 23, 29]


def test_records_of_aborted_transactions_are_not_seen_and_others_of_the_producer_are() -> None:
    assert offsets([LOG], 0, 100, ABORTED) == [0, 1, 2, 5, 6, 8, 20, 23, 29]


def test_an_aborted_transaction_that_started_before_the_chunk_is_not_seen() -> None:
    assert offsets([LOG.where(LOG.batches.base_offset >= 3)], 4, 9, ABORTED) == [5, 6, 8]


@pytest.mark.parametrize("start", range(31))
@pytest.mark.parametrize("end", [0, 1, 4, 8, 21, 24, 29, 30])
def test_a_range_of_offsets_is_cut_inside_batches(start: int, end: int) -> None:
    seen = [0, 1, 2, 3, 4, 5, 6, 8, 20, 23, 29]
    assert offsets([LOG], start, end) == [offset for offset in seen if start <= offset < end]


def test_no_chunks_give_no_records() -> None:
    assert offsets([], 0, 100) == []
    assert len(visible(LOG, 10, 20).batches) == 0


def test_only_wanted_columns_come() -> None:
    (records,) = record_batches([LOG], 0, 3, want=Projection(key=False, headers=False))
    assert records.column_names == ["offset", "timestamp", "value"]
    assert records.column("value").to_pylist() == [b"0", b"1", b"2"]


def test_a_failing_crc_is_found_before_its_records_and_placed_in_the_file() -> None:
    first, second = batch(*rows(0)), bytearray(batch(*rows(0), base_offset=1))
    second[-1] ^= 1
    with pytest.raises(Corrupt, match="CRC") as caught:
        list(record_batches([chunk(first, bytes(second), position=500)], 0, 9))
    assert (caught.value.file, caught.value.position) == ("some.log", 500 + len(first))


def test_records_that_lie_are_placed_in_the_file() -> None:
    first = batch(*rows(0))
    with pytest.raises(Corrupt) as caught:
        list(record_batches([chunk(first, batch(*rows(0), base_offset=1, count=2), position=500)], 0, 9))
    assert (caught.value.file, caught.value.position) == ("some.log", 500 + len(first))


def test_batches_that_inflate_to_more_than_an_arrow_column_holds_come_in_parts() -> None:
    # A record of 1 MiB of zeros takes 63 bytes as zstd: a sound log, and 2 GiB in less than 300 kB of it.
    section = compressed(ZSTD, record(value=bytes(1 << 20)))
    log = chunk(*(batch(section=section, count=1, attributes=ZSTD, base_offset=n) for n in range(2_050)))
    want = Projection(key=False, value=False, headers=False)
    assert sum(len(records) for records in record_batches([log], 0, 2_050, want=want)) == 2_050
