"""Stored batches as older clients get them: the bytes that Kafka sent them, a limited part at a time."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_logs import segments
from hand_made import APPEND_TIME, COMMIT_KEY, CONTROL, GZIP, LZ4, SNAPPY, TRANSACTIONAL, ZSTD, batch, message, record, wrapper
from kafka_judge import Judge, judge_of_down_conversion, oracle

from local_log.errors import Corrupt, Invalid, UnsupportedCompressionType
from local_log.formats.batches import scan
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.down_conversion import READ_BYTES_MAX, down_convert, down_converted
from local_log.formats.messages.magic_0_1 import held_set, read_message
from local_log.formats.record import Codec

T = 1_000


@pytest.fixture(scope="module")
def kafka_3_9() -> Iterator[Judge]:
    with judge_of_down_conversion() as asked:
        yield asked


def chunks(log: bytes, first_bytes: int = 1 << 20) -> Iterator[Chunk]:
    return read_chunks(lambda start, end: log[start:end], "f.log", 0, len(log), first_bytes=first_bytes)


def converted(log: bytes, to_magic: int, first_offset: int = 0) -> bytes:
    return b"".join(down_converted(chunks(log), to_magic, first_offset))


def test_records_of_a_plain_batch_become_messages_without_headers() -> None:
    log = batch(record(0, headers=[(b"h", b"v")]), record(1, timestamp_delta=5, key=None, value=b"w"), base_offset=40)
    assert converted(log, 1) == message(1, b"value", offset=40, key=b"key") + message(1, b"w", offset=41, timestamp=T + 5)
    assert converted(log, 0) == message(0, b"value", offset=40, key=b"key") + message(0, b"w", offset=41)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("to_magic", [0, 1])
def test_a_compressed_batch_becomes_one_compressed_message(codec: Codec, to_magic: int) -> None:
    log = batch(record(0), record(2, timestamp_delta=5), base_offset=40, attributes=codec | APPEND_TIME, max_timestamp=T + 9)
    made, end = read_message(converted(log, to_magic, first_offset=42))
    assert end == len(made.buffer)
    assert (made.magic, made.codec, made.offset, made.is_append_time) == (to_magic, codec, 42, to_magic == 1)
    assert made.timestamp == (T + 9 if to_magic else -1)
    first = 0 if to_magic else 40
    of = {"key": b"key", "timestamp": T + 9, "attributes": APPEND_TIME if to_magic else 0}
    assert held_set(made) == message(to_magic, offset=first, **of) + message(to_magic, offset=first + 2, **of)


def test_what_a_client_knows_stays_as_it_is() -> None:
    old = message(0, offset=1) + wrapper(0, GZIP, message(0, offset=2), offset=2)
    newer = message(1, offset=3, timestamp=T) + wrapper(1, GZIP, message(1, offset=0), message(1, offset=1), offset=5)
    assert converted(old + newer, 1) == old + newer
    made = converted(old + newer, 0)
    assert made.startswith(old + message(0, offset=3))
    assert held_set(read_message(made, len(old + message(0)))[0]) == message(0, offset=4) + message(0, offset=5)


def test_messages_before_the_offset_that_was_asked_for_are_left_out_unless_they_are_compressed_together() -> None:
    log = batch(record(0), record(1), record(2), base_offset=40)
    assert converted(log, 1, first_offset=41) == b"".join(message(1, offset=o, key=b"key") for o in (41, 42))
    assert converted(log, 1, first_offset=43) == b""


def test_markers_and_emptied_batches_are_left_out() -> None:
    marker = batch(record(key=COMMIT_KEY, value=bytes(6)), attributes=TRANSACTIONAL | CONTROL, base_offset=3, producer_id=1)
    empty = batch(base_offset=4, last_delta=2)
    one = batch(record(), base_offset=7, attributes=TRANSACTIONAL, producer_id=1)
    assert list(down_converted(chunks(marker + empty + one + marker), 1, 0)) == [message(1, offset=7, key=b"key")]
    assert list(down_converted(chunks(marker + empty), 1, 0)) == []


def test_zstd_ends_what_is_sent_and_is_refused_when_it_comes_first() -> None:
    zstd, plain = batch(record(), attributes=ZSTD, base_offset=1), batch(record())
    with pytest.raises(UnsupportedCompressionType, match="zstd") as caught:
        converted(zstd + plain, 1)
    assert caught.value.code == 76
    assert converted(plain + zstd + plain, 1) == message(1, key=b"key")


def test_the_first_part_is_one_batch_and_each_other_one_has_up_to_the_limit_or_one_batch() -> None:
    small = [batch(record(), base_offset=n) for n in range(12)]
    log = b"".join(small) + batch(record(value=bytes(9_000)), base_offset=12) + batch(record(), base_offset=13)
    parts = list(down_converted(chunks(log), 1, 0, bytes_max=4 * len(small[0]) + 1))
    each = len(message(1, key=b"key"))
    assert [len(part) // each for part in parts[:4]] == [1, 4, 4, 3]
    assert [len(part) for part in parts[4:]] == [each - 5 + 9_000, each]
    assert b"".join(parts) == converted(log, 1)
    assert b"".join(down_converted(chunks(log, 100), 1, 0)) == converted(log, 1)


def test_no_more_is_read_than_is_asked_for() -> None:
    log = b"".join(batch(record(value=bytes(1_000)), base_offset=n) for n in range(2_000))
    read: list[int] = []

    def of_log(start: int, end: int) -> bytes:
        read.append(end - start)
        return log[start:end]

    parts = down_converted(read_chunks(of_log, "f.log", 0, len(log), first_bytes=READ_BYTES_MAX), 1, 0)
    assert len(next(parts)) < 2_000
    assert sum(read) <= READ_BYTES_MAX
    next(parts)
    assert sum(read) <= READ_BYTES_MAX


def test_damage_is_placed_in_the_file() -> None:
    good, bad = batch(record()), bytearray(batch(record(), base_offset=1))
    bad[-1] ^= 1
    with pytest.raises(Corrupt, match=f"f.log at byte {len(good)}"):
        converted(good + bytes(bad), 1)
    negative = batch(record(timestamp_delta=-2_000))
    with pytest.raises(Corrupt, match=r"cannot be converted: .* negative"):
        converted(negative, 1)


def test_there_is_no_conversion_to_the_current_format() -> None:
    with pytest.raises(Invalid, match="magic 2"):
        down_convert(b"", scan(b"")[0], 2, 0)


SENT = ["none", "gzip", "snappy", "lz4"]
STORED = [f"g-codec-{codec}-0" for codec in SENT] + [
    "g-mixed-0",
    "g-appendtime-0",
    "g-txn-0",
    "g-compacted-0",
    "g-compacted-txn-0",
]


def broken_up(part: bytes) -> list[bytes]:
    """The messages of a part, of snappy's without what depends on the library's release: sizes and checksum."""
    found, pos = [], 0
    while pos < len(part):
        one, end = read_message(part, pos)
        assert one.is_valid
        found.append(part[pos:end])
        if one.codec == SNAPPY:
            found[-1] = bytes((one.magic, one.attributes)) + part[pos : pos + 8] + bytes(held_set(one))
            found[-1] += one.timestamp.to_bytes(8, "big", signed=True)
        pos = end
    return found


@oracle
@pytest.mark.parametrize("to_magic", [0, 1])
@pytest.mark.parametrize("stored", STORED)
def test_every_part_is_kafka_s_own(kafka_3_9: Judge, broker: Path, stored: str, to_magic: int) -> None:
    _, log = segments(broker, stored)[0]
    batches, _ = scan(log)
    batches = batches[batches.codec != ZSTD]  # zstd would end it
    # Kafka sends the first batch twice if something before it was left out; clients skip what they have.
    first = int(((batches.count > 1) & ~batches.is_control).argmax())
    batches = batches[first : first + 60]
    log = b"".join(log[start:end] for start, end in zip(batches.positions.tolist(), batches.end.tolist(), strict=True))
    middle = int(batches.base_offset[0]) + 1
    for first_offset, bytes_max in ((0, READ_BYTES_MAX), (middle, 5_000), (middle, 1 << 30)):
        answer, *parts = kafka_3_9.ask(to_magic, first_offset, bytes_max, log)
        assert answer == "ok"
        ours = list(down_converted(chunks(log, 1 << 30), to_magic, first_offset, bytes_max=bytes_max))
        assert [broken_up(part) for part in ours] == [broken_up(base64.b64decode(part)) for part in parts]


@oracle
def test_older_messages_are_converted_as_kafka_converts_them(kafka_3_9: Judge, legacy: Path, legacy_partition: str) -> None:
    for _, log in segments(legacy, legacy_partition)[:2]:
        for to_magic in (0, 1):
            answer, *parts = kafka_3_9.ask(to_magic, 0, 1 << 30, log)
            assert answer == "ok"
            ours = converted(log, to_magic)
            assert broken_up(ours) == broken_up(b"".join(map(base64.b64decode, parts)))


@oracle
def test_zstd_is_refused_as_kafka_refuses_it(kafka_3_9: Judge, broker: Path) -> None:
    _, log = segments(broker, "g-codec-zstd-0")[0]
    assert kafka_3_9.ask(1, 0, READ_BYTES_MAX, log[:400_000])[:2] == ["refused", str(UnsupportedCompressionType.code)]
    with pytest.raises(UnsupportedCompressionType):
        converted(log, 1)
