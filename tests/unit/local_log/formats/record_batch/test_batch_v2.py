"""Headers of batches: the golden ones, cut ones and broken ones."""

from pathlib import Path

import numpy as np
import pytest
from golden_logs import expected_batches, segments
from hand_made import batch, decoded, record
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.record import Codec
from local_log.formats.record_batch.batch_v2 import Batches, check_crcs, crcs, scan

COVERED_BY_CRC = 21
LENGTH, MAGIC, CRC = range(8, 12), range(16, 17), range(17, 21)


def column(lines: list[dict], name: str) -> list:
    return [line[name] for line in lines]


def test_every_header_field_is_what_kafka_reads(broker: Path, partition: str) -> None:
    for segment, buffer in segments(broker, partition):
        lines = [line for line in expected_batches(partition) if line["segment"] == segment]
        batches, stop = scan(buffer)
        assert stop == len(buffer)
        assert len(batches) == len(lines)
        assert batches.positions.tolist() == column(lines, "position")
        assert batches.size.tolist() == column(lines, "size")
        assert batches.end.tolist() == [line["position"] + line["size"] for line in lines]
        assert batches.base_offset.tolist() == column(lines, "base_offset")
        assert batches.last_offset.tolist() == column(lines, "last_offset")
        assert batches.count.tolist() == column(lines, "count")
        assert [Codec(codec).name for codec in batches.codec.tolist()] == column(lines, "codec")
        assert batches.timestamp_type.tolist() == column(lines, "timestamp_type")
        assert batches.max_timestamp.tolist() == column(lines, "max_timestamp")
        append_times = [line["max_timestamp"] if line["timestamp_type"] == 1 else -1 for line in lines]
        assert batches.append_timestamp.tolist() == append_times
        assert batches.header["partition_leader_epoch"].tolist() == column(lines, "leader_epoch")
        assert batches.header["producer_id"].tolist() == column(lines, "producer_id")
        assert batches.header["producer_epoch"].tolist() == column(lines, "producer_epoch")
        assert batches.header["base_sequence"].tolist() == column(lines, "base_sequence")
        assert batches.header["magic"].tolist() == column(lines, "magic")
        assert batches.header["crc"].tolist() == column(lines, "crc")
        assert batches.last_sequence.tolist() == column(lines, "last_sequence")
        assert batches.is_transactional.tolist() == column(lines, "transactional")
        assert batches.is_control.tolist() == column(lines, "control")
        horizons = [-1 if horizon is None else horizon for horizon in column(lines, "delete_horizon_ms")]
        assert batches.delete_horizon_ms.tolist() == horizons
        assert [a == b for a, b in zip(crcs(buffer, batches), column(lines, "crc"), strict=True)] == column(lines, "valid")
        if lines:
            check_crcs(buffer, batches)
            assert batches.next_offset == lines[-1]["last_offset"] + 1


def test_the_golden_logs_show_every_kind_of_batch() -> None:
    lines = [line for name in ("g-mixed-0", "g-appendtime-0", "g-txn-0") for line in expected_batches(name)]
    lines += [line for name in ("g-compacted-0", "g-compacted-txn-0") for line in expected_batches(name)]
    assert {line["codec"] for line in lines} == {codec.name for codec in Codec}
    assert {line["timestamp_type"] for line in lines} == {0, 1}
    assert {line["control"] for line in lines} == {False, True}
    assert any(line["delete_horizon_ms"] is not None for line in lines)
    assert any(line["count"] == 0 for line in lines)
    assert any(line["last_offset"] - line["base_offset"] >= line["count"] for line in lines)


@settings(deadline=None, max_examples=60)
@given(weight_max=st.integers(1, 3_000_000), name=st.sampled_from(["g-mixed-0", "g-txn-0", "g-compacted-txn-0", "g-big-0"]))
def test_splitting_loses_no_batch_and_keeps_their_order(broker: Path, weight_max: int, name: str) -> None:
    for _, buffer in segments(broker, name):
        batches, _ = scan(buffer)
        runs = list(batches.split(weight_max))
        assert [p for run in runs for p in run.positions.tolist()] == batches.positions.tolist()
        for run in runs:
            weight = sum(size * (4 if codec else 1) for size, codec in zip(run.size.tolist(), run.codec.tolist(), strict=True))
            assert len(run) == 1 or weight <= weight_max


def test_splitting_no_batches_gives_nothing() -> None:
    assert list(scan(b"")[0].split(1)) == []


def test_a_segment_cut_at_any_byte_gives_the_whole_batches_before_the_cut(broker: Path) -> None:
    _, buffer = segments(broker, "g-txn-0")[0]
    first, second = scan(buffer)[0].end[:2].tolist()
    view = memoryview(buffer)
    for cut in range(second + 1):
        batches, stop = scan(view[:cut])
        assert batches.positions.tolist() == [p for p, end in ((0, first), (first, second)) if end <= cut]
        assert stop == (second if cut == second else first if cut >= first else 0)


def test_a_scan_goes_on_from_any_batch(broker: Path) -> None:
    _, buffer = segments(broker, "g-mixed-0")[0]
    batches, end = scan(buffer)
    for i, position in enumerate(batches.positions.tolist()):
        rest, stop = scan(buffer, position)
        assert rest.positions.tolist() == batches.positions[i:].tolist()
        assert stop == end


def test_a_scan_stops_after_the_most_batches_it_may_give(broker: Path) -> None:
    _, buffer = segments(broker, "g-mixed-0")[0]
    whole, _ = scan(buffer)
    batches, stop = scan(buffer, batches_max=3)
    assert batches.positions.tolist() == whole.positions[:3].tolist()
    assert stop == whole.end[2]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_scanned_and_decoded(kind: type) -> None:
    buffer = kind(batch(record(0), record(1)))
    batches, stop = scan(buffer)
    check_crcs(buffer, batches)
    assert stop == len(buffer)
    assert decoded(buffer, batches).column("offset").to_pylist() == [0, 1]


def test_an_empty_buffer_has_no_batches() -> None:
    batches, stop = scan(b"")
    assert (len(batches), stop) == (0, 0)
    check_crcs(b"", batches)


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_length_that_no_batch_has_is_corrupt_where_the_batch_is(length: int) -> None:
    good = batch(record())
    bad = good[:8] + length.to_bytes(4, "big", signed=True) + good[12:]
    batches, stop = scan(good + bad)
    assert (len(batches), stop) == (1, len(good))
    with pytest.raises(Corrupt) as caught:
        scan(good + bad, stop)
    assert caught.value.position == len(good)


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_a_magic_other_than_2_is_corrupt(magic: int) -> None:
    good = batch(record())
    with pytest.raises(Corrupt, match="magic 2"):
        scan(good[:16] + bytes([magic]) + good[17:])


def test_a_length_beyond_the_buffer_is_a_torn_batch() -> None:
    good = batch(record())
    torn = good[:8] + (2**31 - 1).to_bytes(4, "big") + good[12:]
    batches, stop = scan(good + torn)
    assert (len(batches), stop) == (1, len(good))


def test_a_wrong_crc_is_corrupt_at_its_batch_and_says_which_offsets() -> None:
    first, second = batch(record()), batch(record(), record(1), base_offset=40)
    buffer = first + second[:-1] + bytes([second[-1] ^ 1])
    batches, _ = scan(buffer)
    with pytest.raises(Corrupt, match="offsets 40 to 41") as caught:
        check_crcs(buffer, batches)
    assert caught.value.position == len(first)


def test_every_flipped_bit_of_a_batch_is_found_where_its_crc_covers_it(broker: Path) -> None:
    _, good = segments(broker, "g-tiny-0")[0]
    whole = decoded(good, scan(good)[0]).select(["timestamp", "key", "value", "headers"])
    for bit in range(len(good) * 8):
        at = bit // 8
        bad = bytearray(good)
        bad[at] ^= 1 << bit % 8
        try:
            batches, _ = scan(bad)
            check_crcs(bad, batches)
            records = decoded(bad, batches)
        except Corrupt:
            assert at >= COVERED_BY_CRC or at in (*LENGTH, *MAGIC, *CRC)
            continue
        if len(batches):  # base offset and leader epoch are the broker's to set, so no CRC covers them
            assert at in range(8) or at in range(12, 16)
            assert records.select(["timestamp", "key", "value", "headers"]).equals(whole)
        else:
            assert at in LENGTH


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


def test_sequences_wrap_at_the_greatest_int32() -> None:
    last = 2**31 - 1
    buffer = b"".join(
        batch(record(), last_delta=4, producer_id=1, producer_epoch=0, base_sequence=base) for base in (last - 4, last - 3, -1, 0)
    )
    assert scan(buffer)[0].last_sequence.tolist() == [last, 0, -1, 4]


def test_offsets_as_large_as_int64_do_not_overflow() -> None:
    buffer = batch(record(), base_offset=2**63 - 2, last_delta=0)
    batches, _ = scan(buffer)
    assert batches.last_offset.tolist() == [2**63 - 2]
    assert batches.next_offset == 2**63 - 1


def test_batches_are_picked_by_slice_and_by_mask() -> None:
    buffer = b"".join(batch(record(), base_offset=n) for n in range(5))
    batches, _ = scan(buffer)
    assert isinstance(batches[1:3], Batches)
    assert batches[1:3].base_offset.tolist() == [1, 2]
    assert batches[batches.base_offset % 2 == 0].base_offset.tolist() == [0, 2, 4]
    assert batches[np.zeros(5, bool)].size.tolist() == []


def test_a_bare_header_is_a_whole_batch() -> None:
    buffer = batch(count=0, last_delta=6, base_offset=10)
    assert len(buffer) == BATCH_HEADER_BYTES
    batches, _ = scan(buffer)
    assert batches.last_offset.tolist() == [16]
