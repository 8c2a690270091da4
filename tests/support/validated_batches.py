"""Batches as producers send them to a topic, and what the validator makes of them."""

from typing import Any

import pyarrow as pa
import pytest
from hand_made import decoded

from local_log.engine.append.validator import Rules, Validated, validate
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.record import Codec
from local_log.formats.record_batch.batch_v2 import check_crcs, scan
from local_log.formats.record_batch.header import BatchHeader, read_batch_header
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch

NOW = 1_700_000_000_000
FIRST = 1_234_567
PRODUCER = {"producer_id": 1_324, "producer_epoch": 10, "base_sequence": 984, "is_transactional": True}
WORDS = (b"hello", b"there", b"beautiful")
TIMES = (NOW - 1, NOW + 1, NOW)

every_codec = pytest.mark.parametrize("codec", Codec)
every_target = pytest.mark.parametrize("target", Codec)


def rows(values: Any = WORDS, times: Any = TIMES, key: bytes | None = b"k", headers: Any = ()) -> pa.RecordBatch:
    pairs = [{"key": name, "value": value} for name, value in headers]
    made = [
        {"offset": n, "timestamp": time, "key": key, "value": value, "headers": pairs}
        for n, (value, time) in enumerate(zip(values, times, strict=True))
    ]
    return pa.RecordBatch.from_pylist(made, schema=RECORDS)


def sent(codec: Codec = Codec.none, columns: pa.RecordBatch | None = None, **about: Any) -> bytes:
    """A producer's batch."""
    return write_batch(NewBatch(0, codec, **about), rows() if columns is None else columns)


def validated(records: Any, **about: Any) -> Validated:
    """Validates with what a topic has by default, but for what `about` says."""
    topic = Rules(
        codec=about.get("target"),
        level=about.get("level"),
        is_compacted=about.get("compacted", False),
        is_append_time=about.get("append_time", False),
        before_max_ms=about.get("before", 1_000),
        after_max_ms=about.get("after", 1_000),
    )
    batches = memory_batches(records)
    source = about.get("source", batches[0].codec & 7 if batches else Codec.none)
    origin = about.get("origin", Origin.CLIENT)
    first = about.get("first", FIRST)
    return validate(records, batches, first, NOW, topic, source_codec=source, leader_epoch=40, origin=origin)


def appended(result: Validated) -> tuple[BatchHeader, list[dict[str, Any]]]:
    """The header and the records of the one batch, whose checksum holds."""
    batches, stop = scan(result.records)
    assert (len(batches), stop) == (1, len(result.records))
    check_crcs(result.records, batches)
    return read_batch_header(result.records), decoded(result.records, batches).to_pylist()


def changed(made: bytes, **fields: Any) -> bytes:
    """The batch under a header with other fields; its checksum is not the validator's to check."""
    return read_batch_header(made)._replace(**fields).pack() + made[BATCH_HEADER_BYTES:]
