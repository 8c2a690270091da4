"""The load of a process that owns a log directory: its topics, the batches that it produces, and what it notes of them."""

import functools
import os
import sys
from pathlib import Path
from struct import Struct

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent), str(HERE)]

import hand_made  # noqa: E402

from local_log.errors import Unavailable, Unknown  # noqa: E402
from local_log.formats.filenames import TopicPartition  # noqa: E402
from local_log.formats.record import Codec  # noqa: E402
from tiering.machine import CLOCK  # noqa: E402

TOPICS = {"plain": 25, "transactional": 15, "compacted": 10}
TIERED_PARTITIONS = TOPICS["plain"] + TOPICS["transactional"]
SEGMENT_BYTES, LOCAL_BYTES = 512 << 10, 64 << 20
CONFIG = {"segment.bytes": str(1 << 20), "internal.segment.bytes": str(SEGMENT_BYTES), "file.delete.delay.ms": "1000"}
TIERED = {"remote.storage.enable": "true", "retention.ms": "-1"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3", "segment.ms": "10000"}
KEYS, KEYS_EACH = 2_000, 40
BATCH_BYTES = 40 << 10
ENTRY = Struct(">HqqIq")
"""Which of `PARTITIONS`, base offset, end offset, CRC of the batch, and its number among those of its partition."""
PARTITIONS = tuple(TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count))
MAYBE = (Unavailable, Unknown)
FAILS_MAX = 20
"""Reads in a row of one offset that the store may fail."""

Known = dict[int, tuple[int, int, int]]
"""Of one partition: end offset, CRC and number by base offset."""


def settings_of(topic: str) -> dict[str, str]:
    """The topic's own settings: so many bytes locally that all partitions have LOCAL_BYTES with their active segments."""
    if topic == "compacted":
        return CONFIG | COMPACTED
    return CONFIG | TIERED | {"local.retention.bytes": str(LOCAL_BYTES // TIERED_PARTITIONS - 2 * SEGMENT_BYTES)}


def acknowledged(folder: Path) -> list[Known]:
    """What all processes so far have acknowledged, by partition."""
    found: list[Known] = [{} for _ in PARTITIONS]
    for file in sorted((folder / "acknowledged").glob("*")):
        body = file.read_bytes()
        for which, base, end, crc, number in ENTRY.iter_unpack(body[: len(body) // ENTRY.size * ENTRY.size]):
            found[which][base] = end, crc, number
    return found


RECORDS = 4
SECTIONS = 32


def batch(topic: str, which: int, number: int, producer: int, sequence: int) -> bytes:
    """The batch of this number in its partition: half of it cannot be compressed."""
    codec = Codec(which % len(Codec))
    now = CLOCK.now_ms()
    compacted = topic == "compacted"
    made = section(codec, KEYS_EACH, number) if compacted else repeated_section(codec, number % SECTIONS)
    return hand_made.batch(
        section=made, count=KEYS_EACH if compacted else RECORDS, last_delta=(KEYS_EACH if compacted else RECORDS) - 1,
        attributes=codec | (hand_made.TRANSACTIONAL if producer >= 0 else 0), base_timestamp=now, max_timestamp=now,
        producer_id=producer, producer_epoch=0 if producer >= 0 else -1, base_sequence=sequence if producer >= 0 else -1,
    )  # fmt: skip


def section(codec: Codec, count: int, number: int) -> bytes:
    """So many compressed records; each value begins with the number."""
    filler = os.urandom(BATCH_BYTES // count // 2)
    filler += bytes(len(filler))
    keys = (b"%d" % ((number * KEYS_EACH + n) % KEYS) for n in range(count))
    return hand_made.compressed(
        codec, b"".join(hand_made.record(n, key=key, value=number.to_bytes(8, "big") + filler) for n, key in enumerate(keys))
    )


@functools.cache
def repeated_section(codec: Codec, number: int) -> bytes:
    """Made once: the load is the log's and the archive's, not that of a producer."""
    return section(codec, RECORDS, number)


def marker(producer: int, epoch: int, *, commits: bool) -> bytes:
    """A coordinator's end of a transaction."""
    now = CLOCK.now_ms()
    key = hand_made.COMMIT_KEY if commits else hand_made.ABORT_KEY
    return hand_made.batch(
        hand_made.record(0, key=key, value=bytes(6)), attributes=hand_made.TRANSACTIONAL | hand_made.CONTROL,
        base_timestamp=now, max_timestamp=now, producer_id=producer, producer_epoch=epoch,
    )  # fmt: skip
