"""`tiering topics`: topics are created, changed, shown and deleted in log directories that nobody has open."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from local_log.engine.manager.config import ManagerConfig
from tiering.local_tier.opening import local_tier

Run = Callable[..., Result]
Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of two directories of our own."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.mkdir()
    file = tmp_path / "own.toml"
    file.write_text(f"log.dirs = {[str(path) for path in paths]!r}\nown.log.dirs = true\n")
    return file


def test_a_topic_is_created_changed_shown_and_deleted(rows: Rows, run: Run, config: Path, tmp_path: Path) -> None:
    given = ("--config", config)
    (made,) = rows("topics", "create", "orders", "--partitions", 2, "-c", "segment.ms=9", *given)
    assert (made["topic"], made["partitions"], made["config"]) == ("orders", 2, {"segment.ms": "9"})
    assert [(tmp_path / path).is_dir() for path in ("a/orders-0", "b/orders-1")] == [True, True]
    changes = ("-c", "retention.ms=-1", "--delete-config", "segment.ms", "--partitions", 3)
    (changed,) = rows("topics", "alter", "orders", *changes, *given)
    assert changed == {**made, "partitions": 3, "config": {"retention.ms": "-1"}}
    rows("topics", "create", "state", "-c", "cleanup.policy=compact", *given)
    assert [row["topic"] for row in rows("topics", "describe", *given)] == ["orders", "state"]
    assert rows("topics", "describe", "orders", *given) == [changed]
    assert run("topics", "delete", "orders", *given).exit_code == 2
    assert rows("topics", "delete", "orders", "--dry-run", *given) == rows("topics", "describe", "orders", *given)
    assert rows("topics", "delete", "orders", "--yes", *given) == [changed]
    assert [row["topic"] for row in rows("topics", "describe", *given)] == ["state"]
    assert (tmp_path / "a" / ".kafka_cleanshutdown").exists()


def test_one_directory_needs_no_configuration_and_one_that_is_not_there_is_not_made(rows: Rows, run: Run, tmp_path: Path) -> None:
    (made,) = rows("topics", "create", "orders", "--own-log-dir", tmp_path)
    assert made["partitions"] == 1
    missing = run("topics", "describe", "--own-log-dir", tmp_path / "nowhere")
    assert (missing.exit_code, "no such folder" in missing.stderr) == (4, True)
    assert not (tmp_path / "nowhere").exists()


def test_what_cannot_be_done_is_told(run: Run, config: Path, tmp_path: Path) -> None:
    def error(*words: object, given: tuple[object, ...] = ("--config", config)) -> tuple[int, str]:
        result = run("topics", *words, *given)
        return result.exit_code, result.stderr

    assert "topic orders is not in" in error("alter", "orders", "-c", "segment.ms=9")[1]
    assert "segment.ms=0: expected" in error("create", "orders", "-c", "segment.ms=0")[1]
    for words, text in (
        (("alter", "orders"), "nothing is to change"),
        (("create", "orders", "-c", "segment.ms"), "'segment.ms' is not NAME=VALUE"),
        (("alter", "orders", "-c", "segment.ms=9", "--delete-config", "segment.ms"), "cannot be set and removed at once"),
    ):
        code, said = error(*words)
        assert (code, text in said) == (2, True), said
    assert error("describe", given=())[0] == 2
    tier = local_tier(ManagerConfig(log_dirs=(str(tmp_path / "a"),)), lambda topic: {})
    tier.start()
    code, said = error("describe")
    tier.stop()
    assert (code, "is using this log directory" in said) == (1, True)
