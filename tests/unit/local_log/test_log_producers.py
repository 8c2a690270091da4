"""What a log says of its producers and transactions at any offset, with snapshots and without: what its broker wrote down."""

from pathlib import Path

import pytest
from golden_logs import broker_logs, partitions
from logs_to_archive import cut_finer, local_logs

from local_log.errors import Corrupt
from local_log.formats.producer_snapshot import ProducerEntry, read_producer_snapshot
from local_log.log_reader import LogReader
from local_log.producer_state import producers_at

TXN = "g-txn-0"


def log_of(folder: Path, partition: str) -> LogReader:
    return local_logs(folder)[partition]


def snapshots(folder: Path, partition: str) -> dict[int, set[ProducerEntry]]:
    files = sorted((folder / partition).glob("*.snapshot"))
    return {int(file.stem): set(read_producer_snapshot(file.read_bytes())) for file in files}


@pytest.mark.parametrize("partition", partitions())
def test_without_snapshots_the_log_gives_what_the_broker_wrote_into_them(tmp_path: Path, partition: str) -> None:
    folder = broker_logs(tmp_path, partition)
    log = log_of(folder, partition)
    written = snapshots(folder, partition)
    for file in (folder / partition).glob("*.snapshot"):
        file.unlink()
    if log.log_start_offset > 0 or "compacted" in partition:
        return  # there the log alone does not know, as the next test shows
    for offset, producers in written.items():
        found = set(log.producers_at(offset))
        assert producers <= found
        assert found == producers or partition == "g-epochs-0"  # whose broker had forgotten those of its first leader
        assert log.knows_all_producers_at(offset)


@pytest.mark.parametrize("partition", partitions())
def test_from_each_snapshot_the_log_leads_to_the_next(tmp_path: Path, partition: str) -> None:
    folder = broker_logs(tmp_path, partition)
    written = snapshots(folder, partition)
    for offset, producers in list(written.items())[1:]:
        file = folder / partition / f"{offset:020d}.snapshot"
        body = file.read_bytes()
        file.unlink()
        found = {p.producer_id: p for p in log_of(folder, partition).producers_at(offset)}
        file.write_bytes(body)
        if "compacted" in partition:  # compaction has removed batches that the broker had seen
            assert {p.producer_id for p in producers} <= found.keys()
        else:  # a broker may have forgotten producers that were idle for a day
            assert producers <= set(found.values())


def test_a_log_that_does_not_go_back_to_its_first_offset_does_not_know_all_producers(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path, TXN)
    for file in [*(folder / TXN).glob("*.snapshot"), *(folder / TXN).glob(f"{0:020d}.*")]:
        file.unlink()
    assert not log_of(folder, TXN).knows_all_producers_at(2_683)


def test_transactions_that_are_open_where_a_segment_ends_are_found_to_be_aborted_without_any_index(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path, TXN)
    cut_finer(folder / TXN, 30)
    log = log_of(folder, TXN)
    all_aborted = log.aborted(0, log.log_end_offset)
    for file in (folder / TXN).glob("*.txnindex"):
        file.unlink()
    crossing = 0
    for segment in log.segments[:-1]:
        end = segment.next_base_offset
        assert end is not None
        expected = [t for t in all_aborted if t.first_offset < end <= t.last_offset]
        ended = log.ended_later(log.transactions_at(end), end)
        assert [one.txn for one in ended if one.is_aborted] == expected
        crossing += len(expected)
    assert crossing > 5


def test_a_producer_that_writes_outside_of_its_open_transaction_is_corrupt(tmp_path: Path) -> None:
    log = log_of(broker_logs(tmp_path, "g-codec-none-0"), "g-codec-none-0")
    chunk = next(log.segments[0].chunks())
    producer_id = int(chunk.batches.header["producer_id"].max())
    assert producer_id >= 0
    open_since_5 = ProducerEntry(producer_id, 0, -1, -1, 0, -1, -1, 5)
    with pytest.raises(Corrupt, match="has a transaction open from 5 on"):
        producers_at([open_since_5], [chunk], 0, 100)
