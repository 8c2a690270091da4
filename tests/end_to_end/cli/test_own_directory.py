"""What the commands say of a log directory of ours before local retention and after it, and what the log itself says then."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import CountingIds
from click.testing import Result
from logs_at_work import batch_of
from small_logs import NOW

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.retention import delete_old_segments
from local_log.formats.filenames import TopicPartition
from local_log.os_disk import OsWritableDisk
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.reads import TierReads
from tiering.machine import open_store

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]

ORDERS = TopicPartition("orders", 0)
TIMES = ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload")
"""-1 to -6."""
BATCHES = 40
END = BATCHES * 2


def process(folder: Path) -> LocalTier:
    """The process that owns the directory."""
    config = ManagerConfig(log_dirs=(str(folder),), num_recovery_threads_per_data_dir=1)
    settings = {"internal.segment.bytes": "2000", "segment.index.bytes": "1200", "remote.storage.enable": "true"}
    tier = LocalTier(OsWritableDisk(), config, lambda: NOW, lambda: 0.0, CountingIds().new_id, lambda topic: settings)
    tier.start()
    return tier


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Records a second apart; the one in the middle has the greatest timestamp."""
    folder = tmp_path / "own"
    folder.mkdir()
    tier = process(folder)
    tier.create_topic("orders")
    log = tier.log(ORDERS)
    for number in range(BATCHES):
        time = NOW + 3_600_000 if number == BATCHES // 2 else NOW + number * 1_000
        log.append_as_leader(batch_of(f"{number}" * 60, "x" * 60, time=time), 3)
    assert tier.stop() == ()
    return folder


def test_describe_offsets_and_fetch_before_local_retention_and_after_it(own: Path, rows: Rows, tmp_path: Path) -> None:
    given = ("--archive", tmp_path / "archive", "--log-dir", own)
    fetch = ("fetch", *given, "--topic", "orders", "--partition", 0, "--offset", 0)
    bases = sorted(int(file.stem) for file in (own / "orders-0").glob("*.log"))

    def said() -> tuple[Row, list[int | None]]:
        (row,) = rows("describe", *given)
        asked = (rows("offsets", *given, "--topic", "orders", "--time", -1 - number)[0] for number in range(len(TIMES)))
        return row, [row["offset"] for row in asked]

    assert [row["action"] for row in rows("offload", *given)] == ["copied"] * (len(bases) - 1) + ["keep"]
    before, records = said(), rows(*fetch)
    assert len(records) == END
    assert before[1] == [END, 0, BATCHES, 0, bases[-1] - 1, bases[-1]]
    expected = {"log_start_offset": 0, "local_log_start_offset": 0, "archived_up_to": bases[-1], "log_end_offset": END}
    assert expected.items() <= before[0].items()
    assert before[0]["local_segments"] == len(bases)

    rows("expire", "--archive", tmp_path / "archive", "--own-log-dir", own, "-c", "retention.ms=-1",
         "-c", "orders:local.retention.bytes=3000", "--yes")  # fmt: skip
    after, start = said(), min(int(file.stem) for file in (own / "orders-0").glob("*.log"))
    assert 0 < start < END
    assert after[1] == [END, 0, BATCHES, start, bases[-1] - 1, bases[-1]]
    moved = {"local_log_start_offset", "local_segments", "local_bytes"}
    assert {name for name in before[0] if before[0][name] != after[0][name]} == moved
    assert after[0]["local_log_start_offset"] == start
    assert rows(*fetch) == records
    for second in (0, 7, BATCHES // 2 - 1):
        (row,) = rows("offsets", *given, "--topic", "orders", "--time", NOW + second * 1_000)
        assert row["offset"] == second * 2

    tier = process(own)
    live = TierReads(tier, open_store(str(tmp_path / "archive"))).log(ORDERS)
    found = [live.list_offsets(-1 - number) for number in range(len(TIMES))]
    assert [offset and offset.offset for offset in found] == after[1]
    assert [value for batch in live.read(0) for value in batch.column("offset").to_pylist()] == list(range(END))
    assert tier.stop() == ()


def test_an_offload_tells_of_no_loss_where_users_have_deleted_records(own: Path, rows: Rows, tmp_path: Path) -> None:
    given = ("--archive", tmp_path / "archive", "--own-log-dir", own)
    rows("offload", *given)
    tier = process(own)
    log = tier.log(ORDERS)
    for number in range(BATCHES):
        log.append_as_leader(batch_of(f"{number}" * 60, "x" * 60, time=NOW), 3)
    log.maybe_increment_log_start_offset(END + 50)
    assert delete_old_segments(log, NOW) > 0
    assert tier.stop() == ()
    bases = sorted(int(file.stem) for file in (own / "orders-0").glob("*.log"))
    assert bases[0] > END
    found = rows("offload", *given)
    assert {row["action"] for row in found} == {"copied", "keep"}
    (row,) = rows("describe", *given[:2], "--log-dir", own)
    assert (row["log_start_offset"], row["archived_up_to"], row["log_end_offset"]) == (0, bases[-1], 2 * END)


def test_the_offsets_of_a_directory_alone_name_no_archive(own: Path, run: Run) -> None:
    tiered = run("offsets", "--log-dir", own, "--topic", "orders", "--time", "latest-tiered")
    assert (tiered.exit_code, tiered.stdout.strip()) == (0, "orders:0:")
