"""Decoding records to columns on one core, checksums checked, beside the consumers that read the same from their broker."""

import time
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition
from figures import Figure, compare  # beside this file
from filled_broker import CODECS, Filled  # beside this file
from java_consumer import JavaConsumer, of  # beside this file

from local_log.formats.chunks import CHUNK_BYTES, read_chunks
from local_log.formats.compression import Inflater
from local_log.formats.filenames import LOG
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.primitives import Buffer
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.record_batch.projection import Projection
from remote.store.api import ObjectStore
from remote.store.open import open_store


def run(filled: Filled, rounds: int) -> None:
    """Prints GB/s of decoded data, M records/s, and how many times faster than the consumers the decoder is."""
    with of(filled.address) as java:
        for codec in CODECS:
            print(f"Decoding {filled.archived[codec]:,} records, {codec}, on one core; the consumers all {filled.records:,}")
            compare(contestants(filled, codec, java), rounds)


def contestants(filled: Filled, codec: str, java: JavaConsumer) -> dict[str, Callable[[], Figure]]:
    """Who reads one topic."""
    return {
        "kernel: offset, timestamp, key, value": lambda: decoded(filled, codec, Projection(headers=False)),
        "kernel: headers, too": lambda: decoded(filled, codec, Projection()),
        "kernel: offset, timestamp": lambda: decoded(filled, codec, Projection(False, False, False)),
        **({} if codec == "none" else {"only inflating, by the library": lambda: inflated(filled, codec)}),
        "Java's consumer": lambda: by_java(filled, codec, java),
        "confluent-kafka": lambda: by_confluent(filled, codec),
    }


def decoded(filled: Filled, codec: str, want: Projection) -> Figure:
    """The archived segments of a topic, read as a reader reads them; what the reading itself takes is not counted."""
    store, records, took = open_store(filled.archive), 0, 0.0
    for meta in store.list(f"{filled.topic(codec)}/"):
        if not meta.key.endswith(LOG):
            continue
        reading = TimedReading(store, meta.key)
        started = time.perf_counter()
        for chunk in read_chunks(reading, meta.key, 0, meta.size, first_bytes=CHUNK_BYTES):
            records += sum(columns.num_rows for _, columns in chunk.records(want))
        took += time.perf_counter() - started - reading.seconds
    if records != filled.archived[codec]:
        raise AssertionError(f"{records} records of {filled.archived[codec]}")
    return Figure(records, records * filled.record_bytes, took)


def inflated(filled: Filled, codec: str) -> Figure:
    """What the compression library alone takes for the same batches: no decoder that uses it can be faster."""
    store, records, took = open_store(filled.archive), 0, 0.0
    for meta in store.list(f"{filled.topic(codec)}/"):
        if not meta.key.endswith(LOG):
            continue
        body = memoryview(store.get(meta.key))
        batches, _ = scan(body)
        starts, ends = (batches.positions + BATCH_HEADER_BYTES).tolist(), batches.end.tolist()
        codecs, inflate = batches.codec.tolist(), Inflater().inflate
        started = time.perf_counter()
        for of_batch, start, end in zip(codecs, starts, ends, strict=True):
            inflate(of_batch, body[start:end])
        took += time.perf_counter() - started
        records += int(batches.count.sum())
    return Figure(records, records * filled.record_bytes, took)


class TimedReading:
    """Reads an object by ranges, and knows how long that took."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store, self._key = store, key
        self.seconds = 0.0

    def __call__(self, start: int, end: int) -> Buffer:
        """The bytes `[start, end)`."""
        began = time.perf_counter()
        found = self._store.get_range(self._key, start, end)
        self.seconds += time.perf_counter() - began
        return found


def by_java(filled: Filled, codec: str, java: JavaConsumer) -> Figure:
    """Java's consumer, with large fetches."""
    started = time.perf_counter()
    records = java.read(filled.topic(codec), filled.records)
    return Figure(records, records * filled.record_bytes, time.perf_counter() - started)


def by_confluent(filled: Filled, codec: str) -> Figure:
    """librdkafka's consumer, with large fetches and CRCs checked, from its first message on."""
    config = {
        "bootstrap.servers": filled.address,
        "group.id": "bench",
        "enable.auto.commit": False,
        "fetch.message.max.bytes": 10 << 20,
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 1 << 20,
        "check.crcs": True,
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(filled.topic(codec), 0, 0)])
    records, started = 0, None
    while records < filled.records:
        messages = consumer.consume(10_000, 10)
        started = started or time.perf_counter()
        records += len(messages)
        for message in messages:
            message.key(), message.value()
    seconds = time.perf_counter() - (started or 0)
    consumer.close()
    return Figure(records, records * filled.record_bytes, seconds)
