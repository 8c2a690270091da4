"""Holds on folders: one has it, until it lets go or its process ends, and nothing is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_log.errors import NotFound, Unreadable
from local_log.folder_lock import OsFolderHolder

HOLDS = (
    "import sys; from local_log.folder_lock import OsFolderHolder as H; h = H(); print(h.hold(sys.argv[1]), flush=True); input()"
)


def test_a_folder_is_one_s_at_a_time_and_free_again_when_it_is_let_go(tmp_path: Path) -> None:
    one, other = OsFolderHolder(), OsFolderHolder()
    assert one.hold(str(tmp_path))
    assert not other.hold(str(tmp_path))
    one.let_go(str(tmp_path))
    assert other.hold(str(tmp_path))
    other.let_go(str(tmp_path))


def test_a_hold_ends_with_its_process_however_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        holder = OsFolderHolder()
        assert not holder.hold(str(tmp_path))
        process.kill()
        process.wait()
        assert holder.hold(str(tmp_path))
        holder.let_go(str(tmp_path))


def test_nothing_is_written_and_kafka_s_own_lock_is_not_in_the_way(tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        before = tmp_path.stat().st_mtime_ns
        holder = OsFolderHolder()
        assert holder.hold(str(tmp_path))
        assert [p.name for p in tmp_path.iterdir()] == [".lock"]
        assert tmp_path.stat().st_mtime_ns == before
        holder.let_go(str(tmp_path))


def test_what_is_no_folder_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(NotFound):
            OsFolderHolder().hold(str(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_that_may_not_be_read_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(Unreadable):
        OsFolderHolder().hold(str(tmp_path / "closed"))
