"""System calls of a process that fail while a file says so: as a disk does that has no room, or is broken.

Of a log's records, `short` writes the half of what is to be written, `full` does so once and finds no room then, and `sync` fails
to write back. The half that a short write has written stays.
"""

import errno
import os
from pathlib import Path

_STARTS = "import failing_calls; failing_calls.install({!r}, {!r}); from tiering.cli import main; main()"


def starting(marker: Path, logs: str) -> str:
    """A program that is `tiering`, and whose calls for files of these logs fail as `marker` says."""
    return f"import sys; sys.path.append({str(Path(__file__).parent)!r}); {_STARTS.format(str(marker), logs)}"


def install(marker: str, logs: str) -> None:
    """From now on, in this process. `logs` is what the paths of the files have in common."""
    pwrite, fsync = os.pwrite, os.fsync
    half = list[bool]()

    def fault(number: int) -> str:
        if not os.path.exists(marker):
            return ""
        file = os.readlink(f"/proc/self/fd/{number}")
        return Path(marker).read_text() if logs in file and file.endswith(".log") else ""

    def failing_pwrite(number: int, data: bytes, start: int) -> int:
        kind = fault(number)
        if kind == "full" and half:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if kind in ("short", "full"):
            half.append(True)
            return pwrite(number, data[: max(len(data) // 2, 1)], start)
        return pwrite(number, data, start)

    def failing_fsync(number: int) -> None:
        if fault(number) == "sync":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(number)

    os.pwrite, os.fsync = failing_pwrite, failing_fsync  # type: ignore[assignment]
