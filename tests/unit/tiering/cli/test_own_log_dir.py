"""`tiering offload --own-log-dir`: a log directory that no broker uses is archived up to the ends of its logs."""

from pathlib import Path
from shutil import copytree

import pytest
from offloaded import Rows, Run

from local_log.engine.manager.config import ManagerConfig
from tiering.local_tier.opening import local_tier


@pytest.fixture
def ours(rolled: Path, tmp_path: Path) -> Path:
    """Logs whose checkpoint files, which say what is replicated, are lost."""
    logs = copytree(rolled, tmp_path / "ours")
    (logs / "meta.properties").unlink(missing_ok=True)
    (logs / "replication-offset-checkpoint").unlink()
    return logs


def test_inactive_segments_are_archived_whatever_the_checkpoints_say(rows: Rows, run: Run, ours: Path, url: str) -> None:
    topic = ("--topic", "g-codec-none", "--archive", url)
    assert [row["action"] for row in rows("offload", "--log-dir", ours, *topic, "--dry-run")].count("copy") == 0
    done = rows("offload", "--own-log-dir", ours, *topic)
    assert {row["action"] for row in done} == {"copied", "keep"}
    assert [row["action"] for row in done].count("keep") == 1
    assert (ours / ".kafka_cleanshutdown").exists()
    assert run("offload", "--log-dir", ours, *topic).exit_code == 0


def test_a_directory_that_somebody_has_or_that_is_not_there_is_refused(run: Run, ours: Path, url: str, tmp_path: Path) -> None:
    tier = local_tier(ManagerConfig(log_dirs=(str(ours),)), lambda topic: {})
    tier.start()
    held = run("offload", "--own-log-dir", ours, "--archive", url)
    tier.stop()
    assert held.exit_code == 1
    assert "a broker or another process of ours is using this log directory" in held.stderr
    missing = run("offload", "--own-log-dir", tmp_path / "nowhere", "--archive", url)
    assert (missing.exit_code, "no such folder" in missing.stderr) == (4, True)
    both = run("offload", "--own-log-dir", ours, "--log-dir", ours, "--archive", url)
    assert (both.exit_code, "leave one of them out" in both.stderr) == (2, True)
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_directory_is_refused_since_its_disk_may_not_be_mounted(run: Run, url: str, tmp_path: Path) -> None:
    folder = tmp_path / "unmounted"
    folder.mkdir()
    refused = run("offload", "--own-log-dir", folder, "--archive", url)
    assert (refused.exit_code, "mount its disk" in refused.stderr) == (4, True)
    assert [*folder.iterdir()] == []
    (folder / "meta.properties").touch()
    assert "no partition there" in run("offload", "--own-log-dir", folder, "--archive", url).stderr
    assert (folder / "tiering-topics.json").exists(), "it was said to be new"


def test_it_stands_for_the_log_dirs_of_a_configuration(run: Run, ours: Path, url: str, tmp_path: Path) -> None:
    config = tmp_path / "t.toml"
    config.write_text(f'log.dirs = ["/nowhere/a", "/nowhere/b"]\narchive.url = "{url}"\ntopics.include = ["g-tiny"]\n')
    done = run("offload", "--config", config, "--own-log-dir", ours)
    assert (done.exit_code, "g-tiny" in done.stdout) == (0, True)
