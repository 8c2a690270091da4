"""What a window of time costs: the bytes and requests of planning and reading it, as its size grows."""

import time

import events  # beside this file
from filled_broker import CODECS, Filled  # beside this file

from local_log.formats.chunks import CHUNK_BYTES
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import splits
from spark_jobs.source.pushdown import Pushdown
from spark_jobs.source.ranges import resolve
from spark_jobs.source.rows import read_split

SHARES = (0.001, 0.01, 0.1, 1.0)
COLUMNS = ("key", "value", "offset", "timestamp")


def run(filled: Filled) -> None:
    """Prints, for windows of several sizes in the middle of each topic, what they cost beside all of it."""
    for codec in CODECS:
        print(f"A window of time in {filled.archived[codec]:,} records, {codec}: rows, bytes, requests, seconds of one core")
        whole = 0
        for share in reversed(SHARES):
            rows, size, requests, seconds = read_window(filled, codec, share)
            whole = whole or size
            print(f"  {share:7.1%}  {rows:9,}  {size / 1e6:8.2f} MB ({size / whole:6.2%})  {requests:4}  {seconds:6.3f} s")


def read_window(filled: Filled, codec: str, share: float) -> tuple[int, int, int, float]:
    """Rows in the window, and bytes, requests and seconds that it took to plan and read, warm."""
    end = filled.archived[codec]
    length = int(end * share)
    first = events.T0 + (end - length) // 2  # a record each ms
    wanted = Pushdown(times_ms=((first, first + length),))
    best = float("inf")
    for _ in range(3):
        meter, started, rows = Meter(), time.perf_counter(), 0
        store = open_store(filled.archive, meter=meter)
        options = parse({"archive": filled.archive, "subscribe": filled.topic(codec)})
        for split in splits(store, resolve(store, options, wanted), options, wanted):
            for batch in read_split(store, split, COLUMNS, read_committed=False, first_bytes=CHUNK_BYTES):
                times = batch.column("timestamp").cast("int64").to_numpy() // 1000
                rows += int(((times >= first) & (times < first + length)).sum())
        best = min(best, time.perf_counter() - started)
    if rows != length:
        raise AssertionError(f"{rows} rows of {length}")
    counted = meter.snapshot().values()
    return rows, sum(c.bytes for c in counted), sum(c.calls for c in counted), best
