"""Reading an archive back: its bytes beside a plain read of the same files, and its records by the Python API.

A log of 256 MB is made, archived in a folder and on a strict S3 server, and read from start to end. `peers` are more contestants
for the records of the same log directory, say a broker with tiered storage and its consumer.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import engine  # beside this file
import strict_s3  # beside the tests
from logs_to_archive import offload_all
from stores import client_of  # beside this file

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG, OFFSET_INDEX, offset_file
from remote.stores import open_store
from tiering.api import open_reader
from tiering.service import open_reading, open_tiers, read_ahead_pool

TOPIC = "reading"
SEGMENTS, SEGMENT_BYTES = 5, 64 << 20
BATCH_RECORDS, VALUE_BYTES = 64, 240
PIECE_BYTES = 8 << 20

Peers = Mapping[str, Callable[[Path], int]]
"""What reads all records of topic TOPIC in a log directory and gives their number, by name."""


def run(out: Path, rounds: int, peers: Peers | None = None) -> None:
    """Prints MB/s of each, and ratios: ours to a plain read, our records to those of each peer."""
    log_dir = out / "logs"
    size, records = make_log(log_dir)
    print(f"Reading an archive of {size / 1e6:.0f} MB, {records:,} records")
    folder = str(out / "archive")
    offload_all(log_dir, open_store(folder))
    files = sorted(Path(folder).rglob("*.log"))
    plain = best(rounds, lambda: read_plain(files), size)
    compare("a folder, bytes", size, best(rounds, lambda: read_bytes(folder), size), "a plain read", plain)
    best_of_peers = {name: best(rounds, lambda read=read: read(log_dir), records) for name, read in (peers or {}).items()}
    ours = {"a folder": best(rounds, lambda: read_records(folder), records)}
    if strict_s3.available():
        with strict_s3.serving(out / "versitygw") as url:
            client_of(url).close()
            store = open_store("s3://bench/reading")
            offload_all(log_dir, store)
            keys = [meta.key for meta in store.list("") if meta.key.endswith(".log")]
            whole = best(rounds, lambda: sum(len(store.get(key)) for key in keys), size)
            compare("versitygw, bytes", size, best(rounds, lambda: read_bytes(store.url), size), "whole objects", whole)
            ours["versitygw"] = best(rounds, lambda: read_records(store.url), records)
    else:
        print("  versitygw is built by Go, which is not here")
    for place, seconds in ours.items():
        print(f"  {f'{place}, records':20} {size / 1e6 / seconds:7.0f} MB/s  {records / seconds / 1e6:6.2f} M records/s")
        for name, of_peer in best_of_peers.items():
            compare(f"{place}, records", size, seconds, name, of_peer)
    shutil.rmtree(out)


def make_log(folder: Path) -> tuple[int, int]:
    """A log directory with one partition, and how many bytes and records of it will be archived."""
    partition = folder / f"{TOPIC}-0"
    partition.mkdir(parents=True)
    body = memoryview(engine.many(BATCH_RECORDS, VALUE_BYTES, SEGMENT_BYTES * SEGMENTS))
    batch_bytes = len(engine.batch(0, BATCH_RECORDS, VALUE_BYTES, 5000, 0))
    batches = SEGMENT_BYTES // batch_bytes
    for number in range(SEGMENTS):
        base, part = number * batches * BATCH_RECORDS, body[number * batches * batch_bytes : (number + 1) * batches * batch_bytes]
        (partition / offset_file(base, LOG)).write_bytes(part)
        (partition / offset_file(base, OFFSET_INDEX)).touch()
    log = engine.ours(partition)  # after a crash, as it were: it makes all indexes anew
    end = log.log_end_offset
    log.close()
    (folder / HIGH_WATERMARK_CHECKPOINT).write_text(f"0\n1\n{TOPIC} 0 {end}\n")
    archived = (SEGMENTS - 1) * batches
    return archived * batch_bytes, archived * BATCH_RECORDS


def read_plain(files: list[Path]) -> int:
    """The files' bytes, in pieces."""
    size = 0
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                size += len(piece)
    return size


def read_bytes(archive: str) -> int:
    """The batches' bytes, as a fetch would hand them on, read ahead by threads."""
    with read_ahead_pool(4) as pool:
        log = open_tiers(None, archive, open_reading(None, 0, pool)).partition(TOPIC, 0).archived
        if log is None:
            raise AssertionError("the log was archived")
        chunks = log.chunks(log.log_start_offset, log.end_offset)
        return sum(int(chunk.batches.size.sum()) for chunk in chunks)


def read_records(archive: str) -> int:
    """The records with all their columns, CRCs checked, as any program gets them."""
    with open_reader(archive=archive) as reader:
        return sum(batch.num_rows for batch in reader.read(TOPIC))


def best(rounds: int, read: Callable[[], int], expected: int) -> float:
    """Seconds of the fastest round; every one has to read what there is."""
    fastest = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        found = read()
        fastest = min(fastest, time.perf_counter() - started)
        if found != expected:
            raise AssertionError(f"{found} of {expected}")
    return fastest


def compare(what: str, size: int, ours: float, other: str, theirs: float) -> None:
    """Prints both speeds and their ratio."""
    print(f"  {what:20} {size / 1e6 / ours:7.0f} MB/s   {other} {size / 1e6 / theirs:7.0f} MB/s   {theirs / ours:6.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="reading", description="This part of make bench alone, without Maven.")
    parser.add_argument("--rounds", type=int, default=3)
    run(Path("bench-out/archive-reading").absolute(), parser.parse_args().rounds)
