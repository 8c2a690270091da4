"""An executor that does not see the driver's log directory or its archive says so, and takes nothing for deleted."""

import os
import pickle
from pathlib import Path

import pytest
from golden_logs import broker_logs

from local_log.errors import NotFound
from remote.store.open import open_store
from spark_jobs.common.mounted import SharedLogDir, check_archive
from tiering.log_dirs import log_dir

HOST = os.uname().nodename


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return broker_logs(tmp_path / "logs", "g-txn-0", "g-tiny-0")


def shared(logs: Path) -> SharedLogDir:
    """As it comes to an executor."""
    source = log_dir(str(logs))
    made: SharedLogDir = pickle.loads(pickle.dumps(SharedLogDir.of(source, source.partitions())))
    return made


def test_a_directory_that_is_mounted_opens(logs: Path) -> None:
    assert [str(p) for p in shared(logs).open().partitions()] == ["g-tiny-0", "g-txn-0"]


def test_a_directory_that_is_not_there_is_named_with_the_host(logs: Path) -> None:
    seen = shared(logs)
    logs.rename(logs.with_name("elsewhere"))
    with pytest.raises(NotFound, match=f"{logs} on executor {HOST} is not there; mount it"):
        seen.open()


@pytest.mark.parametrize("has_id", [True, False])
def test_an_empty_mount_point_is_not_an_empty_directory(logs: Path, has_id: bool) -> None:
    if not has_id:
        (logs / "meta.properties").unlink()
    seen = shared(logs)
    logs.rename(logs.with_name("elsewhere"))
    logs.mkdir()
    with pytest.raises(NotFound, match=f"{logs} on executor {HOST} .*; mount it at this path"):
        seen.open()


def test_the_directory_of_another_broker_at_the_same_path_is_refused(logs: Path) -> None:
    (logs / "meta.properties").write_text("version=1\ndirectory.id=one\n")
    seen = shared(logs)
    (logs / "meta.properties").write_text("version=1\ndirectory.id=two\n")
    with pytest.raises(NotFound, match="its id is two, not one"):
        seen.open()


def test_without_an_id_one_of_the_partitions_that_the_driver_saw_is_enough(logs: Path) -> None:
    (logs / "meta.properties").unlink()
    seen = shared(logs)
    (logs / "g-tiny-0").rename(logs.with_name("deleted"))
    assert [str(p) for p in seen.open().partitions()] == ["g-txn-0"]


@pytest.mark.parametrize("is_dry_run", [True, False])
def test_an_archive_that_the_executor_does_not_see_is_not_created(tmp_path: Path, is_dry_run: bool) -> None:
    with pytest.raises(NotFound, match=f"executor {HOST}: file://{tmp_path}/archive: no archive there"):
        check_archive(open_store(str(tmp_path / "archive")), is_dry_run=is_dry_run)
    assert not (tmp_path / "archive").exists()
