"""What committed readers of a log are given, and up to where: as the broker that wrote it answered."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_logs import broker_logs, expected_batches, live
from hand_made import COMMIT_KEY, CONTROL, TRANSACTIONAL, batch, record
from hypothesis import given, settings
from hypothesis import strategies as st
from read_logs import break_, golden, hand_made, offsets_of

from local_log.formats.filenames import TopicPartition, offset_file, parse_partition_dir
from local_log.formats.record_batch.batch_v2 import scan
from local_log.log_reader import open_log
from local_log.os_disk import OsDisk


@pytest.fixture(scope="module")
def txn_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only g-txn-0, for the tests that ask a lot of it."""
    return broker_logs(tmp_path_factory.mktemp("txn"), "g-txn-0")


def test_read_committed_gives_the_offsets_that_the_broker_gave(broker: Path, partition: str) -> None:
    log = golden(broker, partition)
    assert (
        offsets_of(log, log.log_start_offset, log.last_stable_offset, committed=True) == live(partition)["read_committed_offsets"]
    )


def test_aborted_transactions_in_part_of_the_log_are_left_out_too(txn_logs: Path) -> None:
    log = golden(txn_logs, "g-txn-0")
    committed = live("g-txn-0")["read_committed_offsets"]
    for start in range(0, log.last_stable_offset, 61):
        end = min(start + 200, log.last_stable_offset)
        assert offsets_of(log, start, end, committed=True) == [offset for offset in committed if start <= offset < end]


def test_threads_that_ask_for_producers_at_other_offsets_do_not_disturb_each_other(txn_logs: Path) -> None:
    log, alone = golden(txn_logs, "g-txn-0"), golden(txn_logs, "g-txn-0")
    active = (txn_logs / "g-txn-0" / offset_file(log.segments[-1].base_offset, ".log")).read_bytes()
    starts = [int(offset) for offset in scan(active)[0].base_offset]

    class Interrupted(int):
        """An offset that is compared with the one that is known after another thread has asked for a third one."""

        def __ge__(self, other: int) -> bool:
            if other == starts[-3]:
                log.producers_at(starts[-2])
            return int(self) >= other

    log.producers_at(starts[-3])
    assert log.producers_at(Interrupted(starts[-1])) == alone.producers_at(starts[-1])


def test_the_transaction_index_of_an_inactive_segment_is_read_once(txn_logs: Path) -> None:
    class CountingDisk(OsDisk):
        def __init__(self) -> None:
            self.read_files: list[str] = []

        def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
            self.read_files.append(file)
            return super().read(file, start, end)

    disk = CountingDisk()
    log = open_log(disk, str(txn_logs / "g-txn-0"), TopicPartition("g-txn", 0), None, 1 << 40)
    first = log.aborted(0, 1 << 40)
    assert first
    indexes = [file for file in disk.read_files if file.endswith(".txnindex")]
    assert len(indexes) == len(log.segments) == len(set(indexes)) > 2
    assert log.aborted(0, 1 << 40) == first
    again = [file for file in disk.read_files if file.endswith(".txnindex")][len(indexes) :]
    assert again == [log.segments[-1].path(".txnindex")]


def open_first_offsets(name: str, high_watermark: int) -> list[int]:
    """The first offsets of the transactions that are open at the high watermark, from what Kafka read in the headers."""
    first_offsets: dict[int, int] = {}
    for line in expected_batches(name):
        if line["base_offset"] < high_watermark and line["transactional"]:
            if line["control"]:
                first_offsets.pop(line["producer_id"], None)
            else:
                first_offsets.setdefault(line["producer_id"], line["base_offset"])
    return list(first_offsets.values())


@settings(deadline=None, max_examples=60)
@given(high_watermark=st.integers(0, 3706))
def test_the_last_stable_offset_follows_the_high_watermark(txn_logs: Path, high_watermark: int) -> None:
    partition = parse_partition_dir("g-txn-0")
    log = open_log(OsDisk(), str(txn_logs / "g-txn-0"), partition, None, high_watermark)
    assert log.last_stable_offset == min([high_watermark, *open_first_offsets("g-txn-0", high_watermark)])


def test_a_transaction_whose_marker_is_above_the_high_watermark_is_open(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path, "g-txn-0")
    marker = next(line for line in expected_batches("g-txn-0") if line["control"])
    first = min(
        line["base_offset"]
        for line in expected_batches("g-txn-0")
        if line["producer_id"] == marker["producer_id"] and line["transactional"]
    )
    for high_watermark in (marker["base_offset"], marker["base_offset"] + 1):
        (logs / "replication-offset-checkpoint").write_text(f"0\n1\ng-txn 0 {high_watermark}\n")
        log = golden(logs, "g-txn-0")
        assert log.high_watermark == high_watermark
        still_open = open_first_offsets("g-txn-0", high_watermark)
        assert (first in still_open) is (high_watermark == marker["base_offset"])
        assert log.last_stable_offset == min([high_watermark, *still_open])


@pytest.mark.parametrize("harm", [Path.unlink, break_], ids=["missing", "broken"])
@pytest.mark.parametrize("name", ["g-txn-0", "g-compacted-txn-0", "g-epochs-0"])
def test_the_last_stable_offset_does_not_depend_on_snapshots(tmp_path: Path, name: str, harm: Callable[[Path], None]) -> None:
    logs = broker_logs(tmp_path, name)
    for file in sorted((logs / name).glob("*.snapshot"), reverse=True):
        harm(file)
        assert golden(logs, name).last_stable_offset == live(name)["last_stable_offset"]


def test_a_snapshot_above_the_high_watermark_is_not_used(tmp_path: Path) -> None:
    log = b"".join(
        [
            batch(record(), base_offset=0, attributes=TRANSACTIONAL, producer_id=7),
            batch(record(key=COMMIT_KEY), base_offset=1, attributes=TRANSACTIONAL | CONTROL, producer_id=7),
        ]
    )
    make = hand_made(tmp_path, (0, log))
    (tmp_path / offset_file(2, ".snapshot")).write_bytes(struct.pack(">hIi", 1, 0x48674BC7, 0))
    assert make(high_watermark=1).last_stable_offset == 0
    assert make(high_watermark=2).last_stable_offset == 2
