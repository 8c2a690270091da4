"""Reading over the network: from an S3 server the same bytes, numbers and records as from the log itself."""

from pathlib import Path

import pytest
from golden_logs import broker_logs, legacy_logs, legacy_partitions, live
from logs_to_archive import all_records, cut_finer, for_applications, local_logs, offload_all, set_checkpoint
from tiered_worlds import batches_of, expected_fetch

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.formats.list_offsets import EARLIEST, LATEST_TIERED
from remote.store.folder.store import FolderStore
from remote.store.open import open_store
from tiering.api import open_reader
from tiering.read.tiered_log import TieredLog
from tiering.wiring import Tiers, open_reading, open_tiers, read_ahead_pool

NAMES = ("g-txn-0", "g-mixed-0", "g-codec-zstd-0", "g-trimmed-0")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = broker_logs(tmp_path_factory.mktemp("logs"), *NAMES)
    for name in NAMES:
        cut_finer(folder / name, 5)
    return folder


def check_all(url: str, logs: Path, cache: Path) -> None:
    offload_all(logs, open_store(url))
    with read_ahead_pool(3) as pool:
        tiers = open_tiers(None, url, open_reading(str(cache), 1 << 28, pool))
        for name in NAMES:
            log, answers = tiers.partition(name.removesuffix("-0"), 0), live(name)
            check_fetches(log, logs, name)
            first = log.list_offsets(EARLIEST)
            last = log.list_offsets(LATEST_TIERED)
            assert first is not None
            assert last is not None
            assert (first.offset, last.offset) == (answers["earliest"][0], log.end_offset() - 1)
            for asked, offset, *_ in answers["offset_for_timestamp"][::9]:
                found = log.list_offsets(asked)
                assert (found.offset if found else -1) == (offset if offset < log.end_offset() else -1)
    with open_reader(archive=url) as reader:
        for name in NAMES:
            records = all_records(local_logs(logs)[name])
            (row,) = reader.coverage(name.removesuffix("-0")).to_pylist()
            expected = for_applications(records, row["log_start_offset"], row["end_offset"])
            table = reader.read(name.removesuffix("-0")).read_all()
            assert table.column("offset").to_pylist() == expected.column("offset").to_pylist()
            assert table.column("value").to_pylist() == expected.column("value").to_pylist()


def check_fetches(log: TieredLog, folder: Path, name: str) -> None:
    batches, end = batches_of(folder, name), log.end_offset()
    for offset in range(log.log_start_offset, end, max(1, (end - log.log_start_offset) // 9)):
        for size in (1, 30_000, 1 << 30):
            fetched = log.fetch(offset, size)
            assert (fetched.records, fetched.next_offset) == expected_fetch(batches, offset, size, end)


def test_moto_s_server_gives_what_the_log_has(s3_bucket: str, logs: Path, tmp_path: Path) -> None:
    check_all(f"s3://{s3_bucket}/archive", logs, tmp_path / "cache")


@pytest.mark.strict_s3
def test_a_strict_server_gives_what_the_log_has(strict_bucket: str, logs: Path, tmp_path: Path) -> None:
    check_all(f"s3://{strict_bucket}/archive", logs, tmp_path / "cache")


@pytest.mark.parametrize("partition", legacy_partitions())
@pytest.mark.slow
def test_messages_of_older_formats_are_fetched_from_the_archive_as_from_the_log(tmp_path: Path, partition: str) -> None:
    folder = legacy_logs(tmp_path / "logs", partition)
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, partition, live(partition)["latest"][0])
    store = FolderStore(str(tmp_path / "archive"))
    offload_all(folder, store)
    topic = partition.removesuffix("-0")
    check_fetches(Tiers(None, store).partition(topic, 0), folder, partition)
    check_fetches(TieredLog(local_logs(folder)[partition], None), folder, partition)
