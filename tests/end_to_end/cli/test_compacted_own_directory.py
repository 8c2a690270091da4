"""An agent that owns a directory with a compacted topic: it cleans, and what it has cleaned takes the archived one's place."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from agents_at_work import Process, running
from click.testing import Result
from hand_made import batch, record
from small_logs import NOW

from local_log.engine.manager.config import ManagerConfig
from local_log.formats.filenames import TopicPartition
from local_log.os_disk import OsWritableDisk
from remote.archive import partition_paths
from remote.manifest.store import load_newest
from tiering.local_tier.local_tier import LocalTier
from tiering.machine import open_store

Rows = Callable[..., list[dict[str, Any]]]
Run = Callable[..., Result]

STATE = TopicPartition("state", 0)
COMPACTED = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "internal.segment.bytes": "4000",
    "segment.index.bytes": "1200",
}  # fmt: skip
KEYS = 10
ON, OFF = "log.cleaner.enable=true", "log.cleaner.enable=false"


def writes(folder: Path, numbers: range) -> None:
    """A process that owns the directory appends a record for each number, whose key is one of a few."""
    ids = count(1)
    config = ManagerConfig(log_dirs=(str(folder),), cleaner_enable=False)
    tier = LocalTier(OsWritableDisk(), config, lambda: NOW, lambda: 0.0, lambda: f"{next(ids):032x}")
    tier.start()
    if not tier.topics():
        tier.create_topic("state", 1, COMPACTED)
    for n in numbers:
        one = batch(record(key=b"key %d" % (n % KEYS), value=b"%d" % n + b"." * 100), base_timestamp=NOW, max_timestamp=NOW)
        tier.log(STATE).append_as_leader(one, 0)
    assert tier.stop() == ()


def agent_of(tmp_path: Path, cleaner: str) -> Any:
    settings = ("own.log.dirs=true", "archive.replace.compacted=stat*", "log.cleaner.backoff.ms=100", cleaner)
    small = "log.cleaner.dedupe.buffer.size=2000000"
    return running(tmp_path / "own", tmp_path / "archive", tmp_path / "state", *settings, small)


def archived(agent: Process, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The partition's row once something is so and nothing lags."""
    status = agent.until("an archive", lambda s: s["partitions"] and not s["lag_segments"] and is_so(s["partitions"][0]))
    return dict(status["partitions"][0])


def newest(rows: Rows, tmp_path: Path) -> dict[str, int]:
    """Each key's newest value in the archive alone."""
    fetched = rows("fetch", "--archive", tmp_path / "archive", "--topic", "state", "--partition", 0, "--offset", 0)
    return {row["key"]: int(row["value"].rstrip(".")) for row in fetched}


@pytest.mark.slow
def test_the_archive_has_each_key_s_newest_value_and_little_else(rows: Rows, run: Run, tmp_path: Path) -> None:
    writes(tmp_path / "own", range(300))
    with agent_of(tmp_path, OFF) as agent:
        before = archived(agent, lambda row: row["archived_segments"] > 5)
    end = before["archived_up_to"]
    assert newest(rows, tmp_path) == {f"key {n % KEYS}": n for n in range(end - KEYS, end)}

    with agent_of(tmp_path, ON) as agent:
        after = archived(agent, lambda row: 0 < row["archived_bytes"] < before["archived_bytes"] // 5)
        assert agent.ask()["last_error"] is None
    assert (after["archived_up_to"], after["lost_offsets"]) == (end, 0)
    assert newest(rows, tmp_path) == {f"key {n % KEYS}": n for n in range(end - KEYS, end)}

    writes(tmp_path / "own", range(300, 500))
    with agent_of(tmp_path, ON) as agent:
        last = archived(agent, lambda row: row["archived_up_to"] > 450 and row["archived_bytes"] < before["archived_bytes"] // 5)
        assert agent.ask()["last_error"] is None
    end = last["archived_up_to"]
    assert newest(rows, tmp_path) == {f"key {n % KEYS}": n for n in range(end - KEYS, end)}
    store = open_store(str(tmp_path / "archive"))
    (path,) = partition_paths(store, "state")
    stored = load_newest(store, path)
    assert stored is not None
    assert not [gap for gap in stored.manifest.gaps if not gap.is_of_compaction]
    assert run("scrub", "--archive", tmp_path / "archive", "--deep").exit_code == 0
