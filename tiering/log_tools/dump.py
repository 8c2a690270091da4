"""Prints the content of a partition's folder as rows, with the field names of Kafka's own classes."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np

from local_log.errors import NotFound, placed
from local_log.formats.chunks import Chunk
from local_log.formats.filenames import LOG, SNAPSHOT, TopicPartition, parse_offset_file
from local_log.formats.primitives import INT32_MAX
from local_log.formats.producer_snapshot import read_producer_snapshot
from local_log.formats.record import NO_SEQUENCE, Codec
from local_log.formats.record_batch.batch_v2 import Batches, crcs
from local_log.formats.record_batch.columns import per_record
from local_log.log_0_7 import Log07, open_log_0_7
from local_log.log_reader import LogReader, open_log
from tiering.machine import local_disk

Row = dict[str, Any]

_CODECS = {codec.value: codec.name for codec in Codec}


def batches(folder: str) -> Iterator[Row]:
    """A row for each batch header, or for each message of Kafka 0.7, and whether its checksum is right. Raises NotFound,
    Corrupt.
    """
    if (log_0_7 := open_log_0_7(local_disk(), folder)).segments:
        yield from _messages_0_7(log_0_7)
        return
    for segment, chunk in _chunks(folder):
        yield from _batch_rows(segment, chunk)


def records(folder: str) -> Iterator[Row]:
    """A row for each record, including control records. Raises NotFound, Corrupt."""
    if (log_0_7 := open_log_0_7(local_disk(), folder)).segments:
        yield from _records_0_7(log_0_7)
        return
    for _, chunk in _chunks(folder):
        for of, decoded in chunk.records():
            control = per_record(of, of.is_control).tolist()
            sequences = _sequences(of, decoded.column("offset").to_numpy()).tolist()
            for r, sequence, is_control in zip(decoded.to_pylist(), sequences, control, strict=True):
                yield {
                    "offset": r["offset"],
                    "timestamp": r["timestamp"],
                    "sequence": sequence,
                    "control": is_control,
                    **payload(r),
                }


_PRODUCER = (
    "producer_id", "producer_epoch", "first_sequence", "last_sequence", "last_offset", "last_timestamp", "coordinator_epoch",
    "current_txn_first_offset",
)  # fmt: skip


def snapshots(folder: str) -> Iterator[Row]:
    """A row for each producer in each snapshot. Raises NotFound, Corrupt."""
    disk = local_disk()
    _partition(folder)
    for name in disk.names(folder):
        parsed = parse_offset_file(name)
        if parsed and parsed[1] == SNAPSHOT:
            with placed(f"{folder}/{name}"):
                producers = read_producer_snapshot(disk.read(f"{folder}/{name}"))
            for producer in producers:
                yield {"file": name} | {field: getattr(producer, field) for field in _PRODUCER}


def _chunks(folder: str) -> Iterator[tuple[str, Chunk]]:
    for segment in _partition(folder).segments:
        for chunk in segment.chunks():
            yield segment.path(LOG).rpartition("/")[2], chunk


def _partition(folder: str) -> LogReader:
    log = open_log(local_disk(), folder, TopicPartition("", 0))
    if not log.segments:
        raise NotFound(f"{folder}: no segment files there; name one partition's folder, such as orders-0 in a log directory")
    return log


def _batch_rows(segment: str, chunk: Chunk) -> Iterator[Row]:
    b = chunk.batches
    columns = {
        "position": b.positions + np.uint64(chunk.position),
        "size": b.size,
        "magic": b.header["magic"],
        "base_offset": b.base_offset,
        "last_offset": b.last_offset,
        "count": [None] * len(b) if b.are_messages else b.count,
        "codec": [_CODECS.get(c, str(c)) for c in b.codec.tolist()],
        "timestamp_type": b.timestamp_type,
        "max_timestamp": b.max_timestamp,
        "leader_epoch": b.header["partition_leader_epoch"],
        "producer_id": b.header["producer_id"],
        "producer_epoch": b.header["producer_epoch"],
        "base_sequence": b.header["base_sequence"],
        "last_sequence": b.last_sequence,
        "transactional": b.is_transactional,
        "control": b.is_control,
        "delete_horizon_ms": [None if ms < 0 else ms for ms in b.delete_horizon_ms.tolist()],
        "crc": [None] * len(b) if b.are_messages else b.header["crc"],
        "valid": np.fromiter(crcs(chunk.buffer, b), np.uint32) == b.header["crc"],
    }
    lists = [c if isinstance(c, list) else c.tolist() for c in columns.values()]
    for values in zip(*lists, strict=True):
        yield {"segment": segment, **dict(zip(columns, values, strict=True))}


def _messages_0_7(log: Log07) -> Iterator[Row]:
    for span in log.spans(log.log_start_offset):
        for message in span.messages:
            yield {
                "segment": span.file.rpartition("/")[2],
                "position": span.position + message.position,
                "size": message.size,
                "magic": message.magic,
                "base_offset": span.offset + message.position,
                "next_offset": span.offset + message.next_position,
                "codec": _CODECS.get(message.codec, str(message.codec)),
                "crc": message.crc,
                "valid": message.is_valid,
            }


def _records_0_7(log: Log07) -> Iterator[Row]:
    for records in log.records(log.log_start_offset):
        for r in records.to_pylist():
            yield {**r, "value": _base64(r["value"])}


def _sequences(b: Batches, offsets: Any) -> Any:
    base = per_record(b, b.header["base_sequence"].astype(np.int64))
    return np.where(base < 0, NO_SEQUENCE, (base + offsets - per_record(b, b.base_offset)) & INT32_MAX)


def payload(record: Row) -> Row:
    """Key, value and headers of a decoded record for JSON, in base64; None for null."""
    headers = [[_base64(h["key"]), _base64(h["value"])] for h in record["headers"]]
    return {"key": _base64(record["key"]), "value": _base64(record["value"]), "headers": headers}


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()
