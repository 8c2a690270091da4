"""`make bench`: what reading and a log engine cost, beside Kafka's and Spark's own way, in one run on the same data.

A real broker on loopback is filled once; then the peers take turns, several rounds, and the best of each counts, since
neighbours on the machine only ever slow things down. What matters are the ratios.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import engine  # beside this file
import events  # beside this file
import manifest  # beside this file
import reading  # beside this file
import real_kafka  # beside the tests, not in the package
import stores  # beside this file
import transforms  # beside this file
from confluent_kafka import Consumer, TopicPartition

from local_log.formats.batch_v2 import scan
from local_log.formats.columns import GROUP_BYTES, Projection, decode
from remote.archive import create_archive
from remote.clock import RandomIds, SystemClock
from remote.stores import open_store
from spark_jobs.jobs import backfill
from spark_jobs.jobs.target import Target
from spark_jobs.session import session
from spark_jobs.source.options import parse
from tiering import offload
from tiering.service import log_dir

OUT = Path("bench-out").absolute()
TOPIC = "bench"


@dataclass(frozen=True)
class Figure:
    """What one contestant read in how long."""

    records: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        rate = f"{self.records / self.seconds / 1e6:7.2f} M records/s"
        return f"{rate}  {self.bytes / self.seconds / 1e9:6.2f} GB/s" if self.bytes else rate


def main() -> None:
    """Lets the contestants take turns and prints their figures and ratios."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--only", choices=["engine", "manifest", "reading", "stores", "transforms"], help="a part of it")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if real_kafka.maven() is None and args.only in (None, "engine"):
        sys.exit("make bench needs Maven, which brings the broker that it measures against")
    shutil.rmtree(OUT, ignore_errors=True)
    if args.only in (None, "engine"):
        engine.run(OUT / "engine", args.rounds)
    if args.only in (None, "manifest"):
        manifest.run()
    if args.only in (None, "stores"):
        stores.run(OUT / "stores", args.rounds)
    if args.only in (None, "transforms"):
        transforms.run(OUT / "transforms", args.rounds)
    if args.only in (None, "reading"):
        reading.run(OUT / "reading", args.rounds)
        if real_kafka.maven() is None:
            sys.exit("the rest needs Maven, which brings the broker that it measures against")
        kernels_and_spark(args)


def kernels_and_spark(args: argparse.Namespace) -> None:
    """Fills a broker and has everybody read what is in it."""
    with real_kafka.broker(OUT / "broker") as address:
        events.fill(address, TOPIC, args.records)
        segments = sorted((OUT / "broker" / "data" / f"{TOPIC}-0").glob("*.log"))
        size = sum(s.stat().st_size for s in segments)
        print(f"{args.records:,} records of {size / args.records:.0f} bytes, uncompressed, in {len(segments)} segments\n")
        kernel = [
            ("kernel: offset, timestamp, key, value, headers", lambda: read_kernel(segments, Projection())),
            ("kernel: offset, timestamp, key, value", lambda: read_kernel(segments, Projection(headers=False))),
            ("confluent-kafka from the broker", lambda: read_confluent(address, args.records, size)),
        ]
        print("Reading every record, CRC checked, one core")
        compare(kernel, args.rounds)
        archived = archive()
        spark = spark_session()
        jobs = [
            ("our backfill to Parquet", lambda: run_backfill(archived)),
            ("Spark's Kafka source to Parquet", lambda: run_kafka_source(spark, address, archived)),
            ("our data source, rows dropped", lambda: run_source(spark, archived)),
            ("Spark's Kafka source, rows dropped", lambda: run_kafka_source(spark, address, archived, write=False)),
        ]
        print(f"\nSpark on two cores, the same {archived:,} records, snappy Parquet")
        compare(jobs, args.rounds + 1)
        spark.stop()


def compare(contestants: list[tuple[str, Callable[[], Figure]]], rounds: int) -> None:
    """Lets them take turns; prints the best figure of each, and how many times faster than it the first one is."""
    best: dict[str, Figure] = {}
    for _ in range(rounds):
        for name, run in contestants:
            figure = run()
            if name not in best or figure.seconds < best[name].seconds:
                best[name] = figure
    first = best[contestants[0][0]]
    for name, figure in best.items():
        ratio = first.records / first.seconds / (figure.records / figure.seconds)
        print(f"  {name:48} {figure!s:44} {ratio:6.2f}")


def read_kernel(segments: list[Path], want: Projection) -> Figure:
    """Decodes segments that are in memory; reading them from the file system is not timed."""
    records = size = 0
    seconds = 0.0
    for segment in segments:
        buffer = segment.read_bytes()
        started = time.perf_counter()
        position = 0
        while position < len(buffer):
            batches, stop = scan(buffer, position)
            if stop == position:
                break
            for group in batches.split(GROUP_BYTES):
                records += sum(r.num_rows for _, r in decode(buffer, group, want))
            position = stop
        seconds += time.perf_counter() - started
        size += position
    return Figure(records, size, seconds)


def read_confluent(address: str, count: int, size: int) -> Figure:
    """librdkafka's consumer, with large fetches and CRCs checked, from its first message on."""
    config = {
        "bootstrap.servers": address,
        "group.id": "bench",
        "enable.auto.commit": False,
        "fetch.message.max.bytes": 10 << 20,
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 1 << 20,
        "check.crcs": True,
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    records = 0
    started = None
    while records < count:
        messages = consumer.consume(10_000, 10)
        started = started or time.perf_counter()
        records += len(messages)
        for message in messages:
            message.key(), message.value()
    seconds = time.perf_counter() - (started or 0)
    consumer.close()
    return Figure(records, size, seconds)


def archive() -> int:
    """Offloads what the broker no longer writes to; gives the offset after the last archived one."""
    deadline = time.monotonic() + 60
    source, store, clock, ids = (
        log_dir(str(OUT / "broker" / "data")),
        open_store(str(OUT / "archive")),
        SystemClock(),
        RandomIds(),
    )
    create_archive(store, clock, ids)
    while True:
        log = next(log for log in source.logs() if log.partition.topic == TOPIC)
        if log.high_watermark >= log.segments[-1].base_offset or time.monotonic() > deadline:
            break
        time.sleep(0.5)  # the broker writes its high watermarks down every 5 s
    due = offload.plan(log, store)
    errors = [d.error for d in offload.offload(due, store, clock, ids, "bench", lambda _: None) if d.error]
    if errors:
        raise errors[0]
    return offload.plan(log, store).manifest.end_offset


def spark_session():  # the type would import Spark here
    """Two cores, with Spark's own Kafka source on the class path."""
    jars = ",".join(map(str, real_kafka.jars(real_kafka.SPARK_SOURCE)))
    return session("bench", master="local[2]", conf={"spark.jars": jars, "spark.driver.memory": "4g"})


def run_backfill(archived: int) -> Figure:
    """The job `backfill`."""
    target = OUT / "parquet-ours"
    shutil.rmtree(target, ignore_errors=True)
    options = parse({"archive": str(OUT / "archive"), "subscribe": TOPIC})
    started = time.perf_counter()
    report = backfill.run(options, Target(str(target)), "snappy")
    return checked(report["rows"], archived, time.perf_counter() - started)


def run_source(spark, archived: int) -> Figure:
    """The format `tiering`, read to the end."""
    frame = spark.read.format("tiering").option("archive", str(OUT / "archive")).option("subscribe", TOPIC).load()
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return Figure(archived, 0, time.perf_counter() - started)


def run_kafka_source(spark, address: str, archived: int, *, write: bool = True) -> Figure:
    """Spark's Kafka source over the same offsets, with a task for each core and large fetches."""
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", TOPIC)
        .option("endingOffsets", json.dumps({TOPIC: {"0": archived}}))
        .option("minPartitions", os.cpu_count() or 2)
        .option("kafka.max.partition.fetch.bytes", 10 << 20)
        .load()
    )
    target = str(OUT / "parquet-spark")
    started = time.perf_counter()
    if write:
        frame.write.mode("overwrite").parquet(target)
    else:
        frame.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - started
    return checked(spark.read.parquet(target).count(), archived, seconds) if write else Figure(archived, 0, seconds)


def checked(rows: int, expected: int, seconds: float) -> Figure:
    """A figure of a run that read what it should."""
    if rows != expected:
        raise AssertionError(f"{rows} rows of {expected}")
    return Figure(rows, 0, seconds)


if __name__ == "__main__":
    main()
