"""`make demo`: a log's life on both tiers, in the commands that a user would type. Works on a copy of the sample."""

import argparse
import json
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_log.formats.filenames import parse_offset_file

SAMPLE = Path(__file__).parent.parent / "tests" / "golden" / "broker"
OUT = Path("demo-out")
SHOWN_LINES_MAX = 16
WIDTH = 48

ARCHIVE_ONLY, BOTH, LOCAL_ONLY = "░", "▓", "█"


def main() -> None:
    """Runs the demo on the archive of `--archive`: a folder by default, `moto` for a server of its own, or any URL."""
    parser = argparse.ArgumentParser(prog="make demo")
    parser.add_argument("--archive", default=str(OUT / "archive"), help="a folder, moto, or any archive URL")
    with _archive(parser.parse_args().archive) as archive:
        _run(archive)


def _run(archive: str) -> None:
    started = time.monotonic()
    logs, parquet = OUT / "broker", OUT / "parquet"
    shutil.rmtree(OUT, ignore_errors=True)
    logs.mkdir(parents=True)
    for packed in sorted(SAMPLE.glob("*.tar.xz")):
        with tarfile.open(packed) as tar:
            tar.extractall(logs, filter="data")
    both = ["--log-dir", str(logs), "--archive", archive]

    _step("Archive the closed segments, with their indexes.")
    _tiering("offload", *both)
    _step("See what is in each tier.")
    _tiering("describe", *both)
    _step("Find the first offset at or after a time, on both tiers.")
    _tiering("offsets", *both, "--topic", "g-codec-none", "--time", "1700000500000")
    _step("Delete the local copies of archived segments: now only the archive has them.")
    _drop_archived(logs, _described(both))
    _step("Fetch an old offset: only the archive has it, and a few hundred kilobytes are read.")
    _tiering("fetch", *both, "--topic", "g-txn", "--partition", "0", "--offset", "500", "--max-records", "3")
    rows = _described(both)
    _step("Backfill the archive to Parquet with Spark, no broker involved.")
    archived = [str(r["topic"]) for r in rows if r["archived_segments"]]
    topics = [word for topic in archived for word in ("--topic", topic)]
    _command([sys.executable, "-m", "spark_jobs.jobs.backfill", "--archive", archive, "--to", str(parquet), *topics], tail=True)

    print(f"\nWhere every offset lies now   {ARCHIVE_ONLY} archive only   {BOTH} both   {LOCAL_ONLY} local only\n")
    for row in rows:
        print(f"  {row['topic'] + '-' + str(row['partition']):18} {coverage(row, WIDTH)} {row['log_end_offset']}")
    print(f"\nThe archive is {archive}, the Parquet files are in {parquet}, the log directory in {logs}.")
    print(f"All of it took {time.monotonic() - started:.0f} s.")


def coverage(row: dict[str, Any], width: int) -> str:
    """A bar of `width` signs for a row of `tiering describe`: which tier holds the offsets, from log start to log end."""
    start, end = row["log_start_offset"], row["log_end_offset"]
    local_start, archived_end = row["local_log_start_offset"], row["archived_up_to"] or 0
    bar = ""
    for i in range(width if end > start else 0):
        offset = start + (end - start) * i // width
        local, archived = offset >= local_start, offset < archived_end
        bar += BOTH if local and archived else LOCAL_ONLY if local else ARCHIVE_ONLY if archived else " "
    return bar.ljust(width)


def _step(sentence: str) -> None:
    print(f"\n{sentence}")


def _tiering(*args: str) -> None:
    _command([sys.executable, "-m", "tiering", *args])


def _command(command: list[str], *, tail: bool = False) -> None:
    """Runs a command, shows it as typed, the beginning or the end of its answer, and how long it took."""
    typed = ["tiering", *command[3:]] if command[2] == "tiering" else ["python", *command[1:]]
    print(f"  $ {shlex.join(typed)}", flush=True)
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nThe command failed with exit code {done.returncode}.")
    lines = done.stdout.splitlines()
    left_out = len(lines) - SHOWN_LINES_MAX
    shown = lines if left_out <= 1 else lines[-5:] if tail else lines[:SHOWN_LINES_MAX]
    for line in shown:
        print(f"    {line}")
    if len(shown) < len(lines) and not tail:
        print(f"    … {left_out} more lines")
    print(f"  took {time.monotonic() - started:.1f} s", flush=True)


def _described(both: list[str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tiering", "describe", *both, "--output", "json"]
    rows: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return rows


def _drop_archived(logs: Path, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        folder = logs / f"{row['topic']}-{row['partition']}"
        parsed = {file: parse_offset_file(file.name) for file in sorted(folder.iterdir())}
        archived = {file: p[0] for file, p in parsed.items() if p and p[0] < (row["archived_up_to"] or 0)}
        if archived:
            offsets = ",".join(f"{offset:020d}" for offset in sorted(set(archived.values())))
            print(f"  $ rm {folder}/{'{' + offsets + '}' if ',' in offsets else offsets}.*")
        for file in archived:
            file.unlink()


@contextmanager
def _archive(choice: str) -> Iterator[str]:
    """The archive's URL; for `moto` with a server of its own on loopback, which ends with the demo."""
    if choice != "moto":
        yield choice
        return
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would print every request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "demo",
        "AWS_SECRET_ACCESS_KEY": "demo",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    import boto3

    boto3.client("s3").create_bucket(Bucket="demo")
    try:
        yield "s3://demo/archive"
    finally:
        server.stop()


if __name__ == "__main__":
    main()
