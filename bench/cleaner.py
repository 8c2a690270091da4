"""The log cleaner beside Kafka's own: MB/s of the log that one round cleans, whose every second record is outdated."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from engine import best, done, seconds  # beside this file
from kafka_log import NOW, KafkaLog, kafka_log

from local_log.engine.cleaner import OffsetMap, clean
from local_log.engine.config import read_config
from local_log.engine.unified_log import open_log
from local_log.formats.record import Codec
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch
from local_log.os_disk import OsWritableDisk

T0 = 1_700_000_000_000
MB = 1_000_000
VALUE_BYTES = 130
MAP_BYTES = 64 << 20
SETTINGS = {"segment.bytes": str(16 << 20), "cleanup.policy": "compact"}
CASES = (
    ("batches of 100 records", 100, Codec.none, False, 60),
    ("batches of 100 records, half of them whole", 100, Codec.none, True, 60),
    ("batches of one record", 1, Codec.none, False, 30),
    ("lz4, batches of 100 records", 100, Codec.lz4, False, 30),
    ("lz4, batches of one record", 1, Codec.lz4, False, 10),
    ("zstd, batches of 100 records", 100, Codec.zstd, False, 30),
    ("gzip, batches of 100 records", 100, Codec.gzip, False, 15),
    ("snappy, batches of 100 records", 100, Codec.snappy, False, 30),
)


def batches(records: int, codec: Codec, whole: bool, size: int) -> Iterator[bytes]:
    """About `size` bytes of records. Every key comes twice: in any two places of the log or, if `whole`, in whole batches."""
    count = size // (VALUE_BYTES + 30)
    count -= count % (2 * records)
    r = np.random.default_rng(1)
    keys = np.tile(np.arange(count // 2), 2) if whole else r.permutation(np.repeat(np.arange(count // 2), 2))
    words = np.frombuffer(r.bytes(1 << 16).hex().encode(), np.uint8)  # of which a codec saves about half
    for first in range(0, count, records):
        places = r.integers(0, len(words) - VALUE_BYTES, records).tolist()
        rows = [
            {
                "offset": first + i,
                "timestamp": T0 + first + i,
                "key": b"key-%016d" % keys[first + i],
                "value": words[place : place + VALUE_BYTES].tobytes(),
                "headers": [],
            }
            for i, place in enumerate(places)
        ]
        yield write_batch(
            NewBatch(first, codec=codec, partition_leader_epoch=0), pa.RecordBatch.from_pylist(rows, schema=RECORDS)
        )


def cases(out: Path, kafka: KafkaLog, rounds: int) -> Iterator[tuple[str, float, float]]:
    """What was cleaned, and how many MB/s by us and by Kafka."""
    source, folder = out / "source-0", out / "cleaned-0"
    offsets = OffsetMap(MAP_BYTES)  # one for all rounds, as a thread of the cleaner has it
    for what, records, codec, whole, size in CASES:
        log = open_log(OsWritableDisk(), str(source), read_config(SETTINGS), lambda: NOW, lambda: 0.0, clean=True)
        for one in batches(records, codec, whole, size * MB):
            log.append_as_follower(one, 0)
        log.roll()
        end, read = log.log_end_offset, log.local.segments.size
        log.close()

        def by_us(end: int = end) -> float:
            shutil.copytree(source, folder)
            log = open_log(OsWritableDisk(), str(folder), read_config(SETTINGS), lambda: NOW, lambda: 0.0, clean=True)
            log.update_high_watermark(end)
            spent = seconds(lambda: clean(log, 0, end, offsets, io_bytes=256 << 10))
            log.close()
            shutil.rmtree(folder)
            return spent

        def by_kafka(end: int = end) -> float:
            shutil.copytree(source, folder)
            done(kafka, "open", folder, 0, 0, "clean", *(f"{name}={value}" for name, value in SETTINGS.items()))
            done(kafka, "watermark", end)
            spent = float(str(done(kafka, "clean", 0, end, MAP_BYTES, 0.9)["seconds"]))
            done(kafka, "close")
            shutil.rmtree(folder)
            return spent

        us, them = best(by_us, by_kafka, rounds)
        yield what, read / MB / us, read / MB / them
        shutil.rmtree(source)


def run(out: Path, rounds: int) -> None:
    """Prints every figure with the ratio ours / Kafka's: above 1, we are the faster."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    print(f"{'The log cleaner, MB/s of the log':64} {'ours':>9} {'Kafka':>9} {'ratio':>7}")
    with kafka_log() as kafka:
        for what, us, them in cases(out, kafka, rounds):
            print(f"{what:64} {us:9.1f} {them:9.1f} {us / them:7.2f}", flush=True)
    shutil.rmtree(out)
