"""Does with a log what its users do, in a process that may take little memory; says what came of it, a JSON object a line.

    python in_little_memory.py INFLATED_MAX MORE_MAX FOLDER…

INFLATED_MAX is the cap on what a batch may inflate to, in bytes, and MORE_MAX what the process may take beside what it has once
everything is imported and compiled.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from click.testing import CliRunner

from local_log.engine.config import read_config
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import Corrupt, LogError
from local_log.formats import compression
from local_log.formats.filenames import TopicPartition
from local_log.formats.record_batch import columns
from local_log.log_reader import open_log as open_for_reading
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.cli import main

LARGE = {"max.message.bytes": str((1 << 31) - 1), "segment.bytes": str((1 << 31) - 1), "segment.index.bytes": "4096"}
NOW = 1_800_000_000_000

Outcome = dict[str, object]


def tried(act: Callable[[], object]) -> Outcome:
    """What an act gives, or the error that it ends with."""
    try:
        return {"answer": act()}
    except LogError as e:
        return {"error": [c.__name__ for c in type(e).__mro__], "file": e.file if isinstance(e, Corrupt) else "", "text": str(e)}
    except MemoryError:
        return {"error": ["MemoryError"], "file": "", "text": "more memory was asked for than there is"}


def command(*args: object) -> Outcome:
    """What a command of ours answers."""
    done = CliRunner().invoke(main, [str(a) for a in args])
    error = "" if done.exception is None or isinstance(done.exception, SystemExit) else repr(done.exception)
    return {"exit": done.exit_code, "text": done.stderr, "error": [error] if error else [], "rows": len(done.stdout.splitlines())}


def opened(folder: Path, **settings: str) -> UnifiedLog:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return open_log(OsWritableDisk(), str(folder), read_config(LARGE | given), lambda: NOW, lambda: 0.0)


def read(folder: Path) -> int:
    log = open_for_reading(OsDisk(), str(folder), TopicPartition("t", 0), None, 1)
    return sum(records.num_rows for chunk in log.chunks(0, 1) for _, records in chunk.records())


def found_by_time(folder: Path) -> object:
    log = open_for_reading(OsDisk(), str(folder), TopicPartition("t", 0), None, 1)
    return log.offset_for_time(0, 0, 1)


def led(records: bytes, folder: Path, codec: str) -> object:
    log = opened(folder, compression_type=codec)
    origin = Origin.COORDINATOR if memory_batches(records)[0].is_control else Origin.CLIENT
    try:
        return log.append_as_leader(records, 0, origin).last_offset
    finally:
        assert log.log_end_offset == log.local.segments.active.size == 0


def followed(records: bytes, folder: Path) -> int:
    log = opened(folder)
    log.append_as_follower(records, 0)
    return log.log_end_offset


def outcomes(folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Everything that is done with the one batch in `folder`."""
    records = (folder / "00000000000000000000.log").read_bytes()
    beside = folder.parent / f"{folder.name}-new"
    yield "read", tried(lambda: read(folder))
    yield "found by time", tried(lambda: found_by_time(folder))
    yield "dump --batches", command("log", "dump", folder, "--batches")
    yield "dump --records", command("log", "dump", folder, "--records")
    for codec in ("producer", "zstd", "uncompressed"):
        yield f"led, {codec}", tried(lambda codec=codec: led(records, beside / codec, codec))  # type: ignore[misc]
    yield "followed", tried(lambda: followed(records, beside / "followed"))
    settings = [word for name, value in LARGE.items() for word in ("-c", f"{name}={value}")]
    yield "recover", command("log", "recover", folder, *settings)
    yield "recovered", tried(lambda: opened(folder).log_end_offset)
    yield "found by time by the engine", tried(lambda: opened(folder).offset_for(0))


def run(inflated_max: str, more_max: str, *folders: str) -> None:
    for inflate in (compression.inflate, compression.Inflater.inflate):
        assert inflate.__kwdefaults__ is not None
        inflate.__kwdefaults__["bytes_max"] = int(inflated_max)
    columns.warm_up()
    os.fsync = lambda descriptor: None  # nobody pulls the plug, and a slow disk is not what is measured
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + int(more_max), resource.RLIM_INFINITY))
    for folder in folders:
        for did, outcome in outcomes(Path(folder)):
            print(json.dumps({"folder": folder, "did": did} | outcome), flush=True)


if __name__ == "__main__":
    run(*sys.argv[1:])
