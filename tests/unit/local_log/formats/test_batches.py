"""A log that has lived through an upgrade: batches of every magic in one file, in the order in which they lie there."""

from base64 import b64encode
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from golden_logs import expected_batches, expected_records, record_digest, segments
from hand_made import GZIP, batch, message, record, wrapper
from hypothesis import example, given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.batches import decode, scan
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.header_layout import MESSAGE_BYTES_MIN

UPGRADED = "g-upgraded-0"


def runs(buffer: bytes) -> list[tuple[int, list[int]]]:
    """For each scan, whether it gave old messages, and the positions."""
    found, pos = [], 0
    while pos < len(buffer):
        batches, pos = scan(buffer, pos)
        if not len(batches):
            break
        found.append((batches.are_messages, batches.positions.tolist()))
    return found


def chunks_of(data: bytes, first_bytes: int = 1 << 20) -> list[Chunk]:
    return list(read_chunks(lambda a, b: data[a:b], "file", 0, len(data), first_bytes=first_bytes))


def positions(found: list[Chunk]) -> list[int]:
    return [chunk.position + position for chunk in found for position in chunk.batches.positions.tolist()]


def test_a_scan_gives_batches_of_magic_2_or_messages_and_never_both() -> None:
    two, old = batch(record()), message(1)
    buffer = two + two + old + message(0) + wrapper(1, GZIP, old) + two + old
    assert [(are, len(found)) for are, found in runs(buffer)] == [(False, 2), (True, 3), (False, 1), (True, 1)]


def test_every_batch_of_every_magic_is_where_kafka_finds_it(legacy: Path) -> None:
    for segment, buffer in segments(legacy, UPGRADED):
        lines = [line for line in expected_batches(UPGRADED) if line["segment"] == segment]
        magics = {line["position"]: line["magic"] for line in lines}
        found = runs(buffer)
        assert [position for _, positions in found for position in positions] == list(magics)
        assert all((magics[position] < 2) == are for are, positions in found for position in positions)
    assert {line["magic"] for line in expected_batches(UPGRADED)} == {0, 1, 2}


def test_every_record_of_every_magic_is_what_kafka_reads(legacy: Path, legacy_partition: str) -> None:
    digests = []
    for _, buffer in segments(legacy, legacy_partition):
        for chunk in chunks_of(buffer):
            for of, records in chunk.records():
                assert records.num_rows == of.count.sum()
                assert (np.diff(records.column("offset").to_numpy()) > 0).all()
                digests += [digest(r) for r in records.to_pylist()]
    assert tuple(digests) == expected_records(legacy_partition)


def digest(r: dict) -> bytes:
    headers = [[text(h["key"]), text(h["value"])] for h in r["headers"]]
    fields = {"key": text(r["key"]), "value": text(r["value"]), "headers": headers}
    return record_digest({"offset": r["offset"], "timestamp": r["timestamp"], "sequence": -1, "control": False, **fields})


def text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


@settings(deadline=None, max_examples=60)
@given(first_bytes=st.integers(MESSAGE_BYTES_MIN, 12_000))
@example(first_bytes=MESSAGE_BYTES_MIN)
def test_spans_of_any_size_give_the_same_batches(legacy: Path, first_bytes: int) -> None:
    for segment, data in segments(legacy, UPGRADED):
        expected = [line["position"] for line in expected_batches(UPGRADED) if line["segment"] == segment]
        found = chunks_of(data, first_bytes)
        assert positions(found) == expected
        assert all(bytes(c.buffer) == data[c.position : c.position + len(c.buffer)] for c in found)
        assert all(before.end == after.position for before, after in pairwise(found))


def test_each_byte_is_read_once_however_often_the_magic_changes() -> None:
    data = b"".join(batch(record(), base_offset=n) + message(1, offset=n + 1) for n in range(0, 2_000, 2))
    asked: list[tuple[int, int]] = []

    def read(start: int, end: int) -> bytes:
        asked.append((start, end))
        return data[start:end]

    found = list(read_chunks(read, "file", 0, len(data), first_bytes=10_000))
    assert len(positions(found)) == 2_000
    assert sum(end - start for start, end in asked) < 1.05 * len(data)


def test_an_upgraded_file_cut_at_any_byte_gives_the_whole_batches_before_the_cut(legacy: Path) -> None:
    segment, data = segments(legacy, UPGRADED)[3]
    ends = [line["position"] + line["size"] for line in expected_batches(UPGRADED) if line["segment"] == segment]
    assert len({line["magic"] for line in expected_batches(UPGRADED) if line["segment"] == segment}) > 1
    for cut in range(len(data)):
        found = chunks_of(data[:cut])
        assert (found[-1].end if found else 0) == max((end for end in ends if end <= cut), default=0)


def test_a_bad_batch_is_placed_in_the_file_after_those_before_it() -> None:
    good = batch(record()) + message(1) + wrapper(1, GZIP, message(1))
    found: list[Chunk] = []
    bad = good + b"\xff" * 100
    with pytest.raises(Corrupt) as caught:
        found.extend(read_chunks(lambda a, b: bad[a:b], "some.log", 0, len(bad)))
    assert (caught.value.file, caught.value.position) == ("some.log", len(good))
    assert len(positions(found)) == 3


def test_a_batch_whose_magic_was_damaged_into_an_old_one_fails_its_checksum() -> None:
    for magic in (0, 1):
        bad = bytearray(batch(record()) + batch(record(), base_offset=1))
        bad[16] = magic
        bad[17] &= 0xF8  # no codec: it looks like a message that is no wrapper
        (first, _) = chunks_of(bytes(bad))
        with pytest.raises(Corrupt, match="CRC-32 "):
            first.check()


@settings(deadline=None, max_examples=300)
@given(data=st.binary(max_size=200), pos=st.integers(0, 8))
def test_a_scan_of_any_bytes_gives_whole_batches_or_corrupt(data: bytes, pos: int) -> None:
    pos = min(pos, len(data))
    try:
        batches, stop = scan(data, pos)
    except Corrupt as e:
        stop = e.position
    else:
        assert all(pos <= at and end <= stop for at, end in zip(batches.positions, batches.end, strict=True))
    assert pos <= stop <= len(data)


def test_no_batches_decode_to_no_records() -> None:
    batches, stop = scan(b"")
    assert (len(batches), stop, batches.are_messages) == (0, 0, False)
    assert [records.num_rows for _, records in decode(b"", batches)] == [0]
