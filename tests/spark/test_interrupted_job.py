"""Ctrl-C at the terminal of a job: it comes to all processes there, and is told without a traceback of ours."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def test_ctrl_c_ends_a_job_and_is_told(archive: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = ["--archive", archive, "--to", str(tmp_path / "parquet"), "--topic", "g-txn"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark_jobs.jobs.backfill", *words],
            stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}, start_new_session=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    os.close(theirs)
    shown = ""
    while True:
        try:
            shown += os.read(ours, 1 << 16).decode(errors="replace")
        except OSError:  # the last process that had the terminal has ended
            break
        if "backfill [" in shown and "interrupted" not in shown and process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    os.close(ours)
    assert process.wait() == 130, shown
    assert "tiering: interrupted\r\n" in shown
    assert "Aborted!" not in shown
    assert "/spark_jobs/" not in shown, "no traceback of ours; Spark may log of its tasks as it ends"
    assert not (tmp_path / "parquet" / "topic=g-txn").exists()
