"""Producer snapshots: the golden ones, and broken ones."""

import struct
from pathlib import Path

import crc32c
import pytest
from golden_logs import expected_snapshots
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.producer_snapshot import read_producer_snapshot


def snapshot(*producers: tuple[int, ...], version: int = 1, count: int | None = None) -> bytes:
    rest = struct.pack(">i", len(producers) if count is None else count) + b"".join(
        struct.pack(">qhiqiqiq", *producer) for producer in producers
    )
    return struct.pack(">hI", version, crc32c.crc32c(rest)) + rest


def test_every_producer_is_what_kafka_reads(broker: Path, partition: str) -> None:
    found = []
    for file in sorted((broker / partition).glob("*.snapshot")):
        found += [(file.name, producer) for producer in read_producer_snapshot(file.read_bytes())]
    expected = expected_snapshots(partition)
    assert len(found) == len(expected)
    for (name, producer), line in zip(found, expected, strict=True):
        assert {"file": name} | {field: getattr(producer, field) for field in line if field != "file"} == line


def test_golden_snapshots_show_open_transactions() -> None:
    assert {line["current_txn_first_offset"] is None for line in expected_snapshots("g-txn-0")} == {False, True}


def test_no_producers_are_no_entries() -> None:
    assert read_producer_snapshot(snapshot()) == ()


def test_a_producer_of_markers_only_has_no_sequence() -> None:
    (producer,) = read_producer_snapshot(snapshot((7, 1, -1, -1, 0, 99, 3, -1)))
    assert (producer.first_sequence, producer.last_sequence, producer.last_offset) == (-1, -1, -1)
    assert producer.current_txn_first_offset is None


def test_a_first_sequence_wraps_below_zero() -> None:
    (producer,) = read_producer_snapshot(snapshot((7, 1, 2, 100, 4, 99, 3, 0)))
    assert (producer.first_sequence, producer.last_sequence) == (2**31 - 2, 2)
    assert producer.current_txn_first_offset == 0


def test_a_snapshot_cut_at_any_byte_is_corrupt(broker: Path) -> None:
    whole = (broker / "g-txn-0" / "00000000000000003706.snapshot").read_bytes()
    for cut in range(len(whole)):
        with pytest.raises(Corrupt):
            read_producer_snapshot(whole[:cut])


def test_a_snapshot_with_any_bit_flipped_is_corrupt(broker: Path) -> None:
    whole = (broker / "g-txn-0" / "00000000000000003706.snapshot").read_bytes()
    for bit in range(8 * len(whole)):
        bad = bytearray(whole)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Corrupt):
            read_producer_snapshot(bad)


@pytest.mark.parametrize("version", [0, 2, -1])
def test_another_version_is_corrupt(version: int) -> None:
    with pytest.raises(Corrupt, match=f"version {version}"):
        read_producer_snapshot(snapshot(version=version))


@pytest.mark.parametrize("count", [0, 2, -1, 2**31 - 1])
def test_a_count_that_is_not_the_producers_is_corrupt(count: int) -> None:
    with pytest.raises(Corrupt, match=f"claims {count} producers"):
        read_producer_snapshot(snapshot((1, 0, 0, 0, 0, 0, 0, -1), count=count))


def test_bytes_after_the_last_producer_are_corrupt(broker: Path) -> None:
    with pytest.raises(Corrupt):
        read_producer_snapshot((broker / "g-tiny-0" / "00000000000000000001.snapshot").read_bytes() + b"\0")


@given(st.binary(max_size=120))
def test_any_bytes_are_a_snapshot_or_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        read_producer_snapshot(data)
