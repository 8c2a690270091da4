"""Reading an archive back: its bytes beside a plain read of the same files, and its records by the Python API beside Kafka's own
tiered storage, which Java's consumer reads.

A broker's log is archived in a folder and on a strict S3 server, and left to the broker's remote tier, too; then all take turns
at reading the same segments from start to end. Without Maven there is no broker: the log is then made here, with no such peer.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import engine  # beside this file
import real_kafka  # beside the tests
import strict_s3
import tiered_storage  # beside this file
from logs_to_archive import offload_all
from stores import client_of  # beside this file

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG, OFFSET_INDEX, offset_file
from remote.read.log import ArchivedLog
from remote.store.open import open_store
from tiering.api import open_reader
from tiering.wiring import open_reading, open_tiers, read_ahead_pool

TOPIC = "reading"
EVENTS = 1_300_000
SEGMENTS, SEGMENT_BYTES = 5, 64 << 20
BATCH_RECORDS, VALUE_BYTES = 64, 240
PIECE_BYTES = 8 << 20

Reads = Callable[[], int]
"""Reads from start to end, and gives the number of what it has read."""


def run(out: Path, rounds: int) -> None:
    """Prints MB/s of each, and ratios: ours to a plain read, our records to those of Kafka's tiered storage."""
    served = strict_s3.serving(out / "versitygw") if strict_s3.available() else nullcontext()
    with log_to_archive(out) as (log_dir, kafka), served as server:
        archives = {"a folder": str(out / "archive")}
        if server is None:
            print("  versitygw is built by Go, which is not here")
        else:
            client_of(server).close()
            archives["versitygw"] = "s3://bench/reading"
        for url in archives.values():
            offload_all(log_dir, open_store(url), only=f"{TOPIC}-0")
        log = archived(archives["a folder"])
        size, records = log.manifest.log_bytes, log.end_offset
        print(f"Reading an archive of {size / 1e6:.0f} MB, {records:,} records")
        for place, url in archives.items():
            by_bytes = {f"{place}, bytes": partial(read_bytes, url), "a plain read": partial(read_plain, url)}
            show(size, take_turns(by_bytes, rounds * 3, size))  # each is over in no time, which another process may well take
        by_records = {f"{place}, records": partial(read_records, url) for place, url in archives.items()}
        if kafka is not None:
            kafka.leave_to_the_remote_tier(records)
            by_records["Kafka's tiered storage"] = partial(kafka.read, records)
        show(size, take_turns(by_records, rounds, records))
    shutil.rmtree(out)


@contextmanager
def log_to_archive(out: Path) -> Iterator[tuple[Path, "tiered_storage.TieredTopic | None"]]:
    """A log directory with topic TOPIC, and the broker that it belongs to, if there can be one."""
    if real_kafka.maven() is None:
        make_log(out / "logs")
        yield out / "logs", None
        return
    with tiered_storage.filled(out / "broker", TOPIC, EVENTS) as kafka:
        yield kafka.log_dir, kafka


def make_log(folder: Path) -> None:
    """A log directory with one partition, as a broker that was killed leaves it."""
    partition = folder / f"{TOPIC}-0"
    partition.mkdir(parents=True)
    body = memoryview(engine.many(BATCH_RECORDS, VALUE_BYTES, SEGMENT_BYTES * SEGMENTS))
    batch_bytes = len(engine.batch(0, BATCH_RECORDS, VALUE_BYTES, 5000, 0))
    batches = SEGMENT_BYTES // batch_bytes
    for number in range(SEGMENTS):
        base, part = number * batches * BATCH_RECORDS, body[number * batches * batch_bytes : (number + 1) * batches * batch_bytes]
        (partition / offset_file(base, LOG)).write_bytes(part)
        (partition / offset_file(base, OFFSET_INDEX)).touch()
    log = engine.ours(partition)  # it makes all indexes anew
    end = log.log_end_offset
    log.close()
    (folder / HIGH_WATERMARK_CHECKPOINT).write_text(f"0\n1\n{TOPIC} 0 {end}\n")


def read_plain(archive: str) -> int:
    """The segments' bytes: of files in pieces, of objects each by one request."""
    store = open_store(archive)
    keys = [meta.key for meta in store.list("") if meta.key.endswith(LOG)]
    if not store.url.startswith("file://"):
        return sum(len(store.get(key)) for key in keys)
    size = 0
    for key in keys:
        with open(Path(archive, key), "rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                size += len(piece)
    return size


def archived(archive: str, pool: Executor | None = None) -> ArchivedLog:
    """The partition in an archive."""
    log = open_tiers(None, archive, open_reading(None, 0, pool)).partition(TOPIC, 0).archived
    if log is None:
        raise AssertionError("the log was archived")
    return log


def read_bytes(archive: str) -> int:
    """The batches' bytes, as a fetch would hand them on, read ahead by threads."""
    with read_ahead_pool(4) as pool:
        log = archived(archive, pool)
        return sum(int(chunk.batches.size.sum()) for chunk in log.chunks(log.log_start_offset, log.end_offset))


def read_records(archive: str) -> int:
    """The records with all their columns, CRCs checked, as any program gets them."""
    with open_reader(archive=archive) as reader:
        return sum(batch.num_rows for batch in reader.read(TOPIC))


def take_turns(contestants: Mapping[str, Reads], rounds: int, expected: int) -> dict[str, float]:
    """Seconds of the fastest round of each; in every one they take turns, and read what there is."""
    fastest = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, read in contestants.items():
            started = time.perf_counter()
            found = read()
            fastest[name] = min(fastest[name], time.perf_counter() - started)
            if found != expected:
                raise AssertionError(f"{name}: {found} of {expected}")
    return fastest


def show(size: int, best: Mapping[str, float]) -> None:
    """Prints the speed of each, and how many times as fast as the last one it is."""
    *_, last = best.values()
    for name, seconds in best.items():
        print(f"  {name:24} {size / 1e6 / seconds:7.0f} MB/s   {last / seconds:6.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="reading", description="This part of make bench alone.")
    parser.add_argument("--rounds", type=int, default=3)
    run(Path("bench-out/archive-reading").absolute(), parser.parse_args().rounds)
