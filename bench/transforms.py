"""What compressing and encrypting segments costs: MB of source bytes a second beside segments that stay as they are.

One log of JSON events, uncompressed, is archived in a folder in each encoding and read back. An offload checks every batch and
goes through the segment once more to encode it; what then takes more than `KEPT_BYTES_MAX` is encoded again as it is sent.
"""

import argparse
import random  # noqa: TID251  # seeded: the same data every time
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import engine  # beside this file
import numpy as np
import pyarrow as pa
from logs_to_archive import local_logs

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG, OFFSET_INDEX, offset_file
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch
from remote.archive import create_archive, newest_manifests
from remote.clock import RandomIds, SystemClock, SystemRandomness
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from remote.store.open import open_store
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.encoder import Encryption, Transforms
from remote.transforms.keys import LocalKeyRing
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan

TOPIC = "events"
SEGMENT_BYTES = 64 << 20
BATCH_RECORDS, VALUES = 64, 20_000
KEYS = LocalKeyRing("the bench's keys", "k", {"k": bytes(range(32))})
ENCRYPTION = Encryption(KEYS, SystemRandomness())
WAYS = {
    "as it is": Transforms(),
    "zstd": Transforms(compress=True),
    "AES-256-GCM": Transforms(encryption=ENCRYPTION),
    "zstd, AES-256-GCM": Transforms(compress=True, encryption=ENCRYPTION),
}


def run(out: Path, rounds: int) -> None:
    """Prints MB/s up and down for each encoding, what they are of those without one, and what a byte becomes."""
    log_dir = out / "logs"
    size = make_log(log_dir)
    print(f"Encoding a segment of {size / 1e6:.0f} MB of JSON events; MB/s of source bytes, and the share of that as it is")
    best: dict[str, tuple[float, float]] = {}
    stored: dict[str, int] = {}
    for number in range(rounds):
        for name, how in WAYS.items():
            store = open_store(str(out / f"archive-{number}-{name.replace(', ', '-').replace(' ', '-')}"))
            up = seconds(lambda store=store, how=how: archived(log_dir, store, how))
            down = min(seconds(lambda store=store: read(store, size)) for _ in range(2))
            was = best.get(name, (up, down))
            best[name] = min(was[0], up), min(was[1], down)
            (entry,) = newest_manifests(store, TOPIC)[0].entries
            stored[name] = entry.stored_log.size
            shutil.rmtree(store.url.removeprefix("file://"))
    plain_up, plain_down = best["as it is"]
    for name, (up, down) in best.items():
        rate_up = f"offload {size / 1e6 / up:6.0f} MB/s {plain_up / up:5.2f}"
        rate_down = f"read {size / 1e6 / down:6.0f} MB/s {plain_down / down:5.2f}"
        print(f"  {name:18} {rate_up}   {rate_down}   stored {stored[name] / size:5.2f}")
    shutil.rmtree(out)


def make_log(folder: Path, size: int = SEGMENT_BYTES) -> int:
    """A log directory with one partition, whose first segment is due; gives that one's bytes."""
    partition = folder / f"{TOPIC}-0"
    partition.mkdir(parents=True)
    chance = random.Random(7)  # the same data every time
    values = [event(chance, n) for n in range(VALUES)]
    body, offset = bytearray(), 0
    while len(body) < size:
        body += batch(offset, [values[n % VALUES] for n in range(offset, offset + BATCH_RECORDS)])
        offset += BATCH_RECORDS
    (partition / offset_file(0, LOG)).write_bytes(body)
    (partition / offset_file(offset, LOG)).write_bytes(batch(offset, values[:1]))
    for base in (0, offset):
        (partition / offset_file(base, OFFSET_INDEX)).touch()
    engine.ours(partition).close()  # after a crash, as it were: it makes all indexes anew
    (folder / HIGH_WATERMARK_CHECKPOINT).write_text(f"0\n1\n{TOPIC} 0 {offset + 1}\n")
    return len(body)


def event(chance: random.Random, number: int) -> bytes:
    """A JSON event of about 240 bytes."""
    page = f"https://example.com/{chance.choice(['a', 'bb', 'product', 'search'])}/{chance.randrange(10**6)}"
    what = chance.choice(["click", "view", "buy", "scroll"])
    return (
        f'{{"id":{number},"user":{chance.randrange(10**9)},"event":"{what}","url":"{page}",'
        f'"agent":"Mozilla/5.0 (X11; Linux x86_64)","price":{chance.random() * 1000:.2f},'
        f'"session":"{chance.getrandbits(128):032x}"}}'
    ).encode()


def batch(offset: int, values: list[bytes]) -> bytes:
    """One batch, a record a ms."""
    count = len(values)
    columns = {
        "offset": pa.array(np.arange(offset, offset + count), RECORDS.field("offset").type),
        "timestamp": pa.array(np.arange(offset, offset + count) + engine.T0, RECORDS.field("timestamp").type),
        "key": pa.array([b"user-%08d" % (offset % 1000)] * count, RECORDS.field("key").type),
        "value": pa.array(values, RECORDS.field("value").type),
        "headers": pa.array([[]] * count, RECORDS.field("headers").type),
    }
    return write_batch(NewBatch(base_offset=offset), pa.record_batch([columns[name] for name in RECORDS.names], schema=RECORDS))


def archived(log_dir: Path, store: ObjectStore, how: Transforms) -> None:
    """Offloads the log."""
    (log,) = local_logs(log_dir).values()
    clock, ids = SystemClock(), RandomIds()
    create_archive(store, clock, ids)
    run = OffloadRun(store, clock, ids, "bench", lambda _: None, how)
    errors = [done.error for done in offload(plan(log, store), run) if done.error]
    if errors:
        raise errors[0]


def read(store: ObjectStore, size: int) -> None:
    """Reads every batch's bytes."""
    log = ArchivedLog(store, newest_manifests(store, TOPIC)[0], reading=ReadContext(partial(DecodedBytes, keys=KEYS)))
    found = sum(int(chunk.batches.size.sum()) for chunk in log.chunks(0, log.end_offset))
    if found != size:
        raise AssertionError(f"{found} bytes of {size}")


def seconds(act: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="transforms", description="This part of make bench alone.")
    parser.add_argument("--rounds", type=int, default=3)
    run(Path("bench-out/transforms").absolute(), parser.parse_args().rounds)
