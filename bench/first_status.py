"""The first `tiering status` of an archive, when nothing is kept of it: 100 partitions, in a folder and on S3.

Beside it lies the log directory of 16 MB that it was made of. No agent runs, so all of both tiers is read.
"""

import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import strict_s3  # beside the tests
from logs_to_archive import offload_all  # beside the tests
from processes import environment_of, tiering  # beside this file
from small_logs import follow, opened, records  # beside the tests
from stores import client_of  # beside this file

from remote.store.open import open_store

PARTITIONS, SEGMENTS, RECORDS, VALUE = 100, 4, 40, bytes(1_000)
TOPIC_ID = "kafkaTieringBenchTopic"


def seconds(out: Path, modules: Path, rounds: int) -> dict[str, float]:
    """Of the clock, by where the archive lies: the best of so many, each with a state and a cache of its own."""
    out.mkdir(parents=True)
    logs = _log_dir(out / "logs")
    found = {}
    with ExitStack() as until_the_end:
        archives = {"a folder": str(out / "archive")}
        if strict_s3.available():
            client_of(until_the_end.enter_context(strict_s3.serving(out / "versitygw"))).close()
            archives["S3"] = "s3://bench/status"
        for place, url in archives.items():
            offload_all(logs, open_store(url))
            of_both = {"TIERING_LOG_DIRS": str(logs), "TIERING_ARCHIVE_URL": url}
            # The address and the keys of the S3 server are in this process' environment by now.
            kept = [str(out / f"{place} {number}") for number in range(rounds)]
            found[place] = min(
                _taken(environment_of(modules, **of_both, TIERING_AGENT_STATE_DIR=one, XDG_CACHE_HOME=f"{one} cache"))
                for one in kept
            )
    return found


def _log_dir(folder: Path) -> Path:
    folder.mkdir()
    for number in range(PARTITIONS):
        of_partition = folder / f"many-{number}"
        of_partition.mkdir()
        (of_partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
        log = opened(of_partition, clean=True)
        for _ in range(SEGMENTS):
            follow(log, records(log.log_end_offset, RECORDS, value=VALUE))
            log.roll()
        log.close()
    lines = [f"many {number} {SEGMENTS * RECORDS}" for number in range(PARTITIONS)]
    (folder / "replication-offset-checkpoint").write_text("\n".join(["0", str(PARTITIONS), *lines, ""]))
    return folder


def _taken(environment: Mapping[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(tiering("status"), env=dict(environment), check=True, capture_output=True)
    return time.perf_counter() - began
