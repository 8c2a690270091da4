"""Messages of magic 0 and 1 written: the same bytes that Kafka wrote, and nothing that its builder would refuse."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden_logs import segments
from hand_made import GZIP, LZ4, SNAPPY, ZSTD, decoded, message
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_judge import Judge, oracle
from message_sets import rows

from local_log.errors import Invalid
from local_log.formats.messages.magic_0_1 import held_set, read_message
from local_log.formats.messages.message_set import scan_messages
from local_log.formats.messages.writer import NewMessages, write_messages
from local_log.formats.record import Codec, TimestampType
from local_log.formats.record_batch.batch_v2 import Batches
from local_log.formats.record_batch.writer import RECORDS

T = 1_700_000_000_000
FORMS = [(magic, codec) for magic in (0, 1) for codec in (Codec.none, GZIP, SNAPPY, LZ4)]
every_form = pytest.mark.parametrize(("magic", "codec"), FORMS)


def records(*of: tuple[int, int, bytes | None, bytes | None]) -> pa.RecordBatch:
    made = [{"offset": o, "timestamp": t, "key": k, "value": v, "headers": [{"key": b"h", "value": b"v"}]} for o, t, k, v in of]
    return pa.RecordBatch.from_pylist(made, schema=RECORDS)


def messages_of(log: bytes) -> Iterator[tuple[bytes, Batches]]:
    """Each message of magic 0 and 1 at the log's start, and its header."""
    batches, _ = scan_messages(log)
    for row in range(len(batches)):
        one = batches[row : row + 1]
        yield log[int(one.positions[0]) : int(one.end[0])], Batches(one.positions - one.positions, one.header)


def same(made: bytes, wrote: bytes, codec: int) -> bool:
    """Whether they are the same bytes; snappy's blocks differ from those of Kafka's library, and so sizes and checksum."""
    if codec != SNAPPY:
        return made == wrote
    ours, kafkas = read_message(made)[0], read_message(wrote)[0]
    of_both = [(m.offset, m.magic, m.attributes, m.timestamp, m.key, bytes(held_set(m))) for m in (ours, kafkas)]
    return ours.is_valid and of_both[0] == of_both[1]


def test_every_message_of_kafka_is_written_again_as_it_was(legacy: Path, legacy_partition: str) -> None:
    written = 0
    for _, log in segments(legacy, legacy_partition)[:3]:
        for one, header in messages_of(log):
            is_append_time = bool(header.timestamp_type[0] == TimestampType.LOG_APPEND_TIME)
            new = NewMessages(int(header.header["magic"][0]), Codec(int(header.codec[0])), is_append_time=is_append_time)
            assert same(write_messages(new, decoded(one, header)), one, new.codec)
            written += 1
    assert written


def test_messages_without_a_wrapper_follow_each_other() -> None:
    made = write_messages(NewMessages(1), records((5, T, b"k", b"v"), (9, T + 1, None, b""), (10, -1, b"", None)))
    assert made == (
        message(1, b"v", offset=5, key=b"k", timestamp=T)
        + message(1, b"", offset=9, timestamp=T + 1)
        + message(1, None, offset=10, key=b"", timestamp=-1)
    )


def test_offsets_in_a_wrapper_are_absolute_in_magic_0_and_count_from_the_first_in_magic_1() -> None:
    of = records((5, T, b"k", b"v"), (9, T + 1, None, b"w"))
    for magic, offsets in ((0, (5, 9)), (1, (0, 4))):
        wrapper, _ = read_message(write_messages(NewMessages(magic, GZIP), of))
        assert held_set(wrapper) == b"".join(
            message(magic, value, offset=offset, key=key, timestamp=T + n)
            for n, (offset, key, value) in enumerate(zip(offsets, (b"k", None), (b"v", b"w"), strict=True))
        )
        assert (wrapper.offset, wrapper.timestamp, wrapper.has_key) == (9, T + 1 if magic else -1, False)


@every_form
@settings(deadline=None, max_examples=25)
@given(
    of=st.lists(
        st.tuples(st.integers(1, 9), st.integers(-1, T), st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=300)),
        max_size=8,
    ),
    start=st.integers(0, 1 << 40),
)
def test_what_is_written_is_read(magic: int, codec: Codec, of: list[tuple], start: int) -> None:
    offsets = [start + sum(gap for gap, *_ in of[: n + 1]) for n in range(len(of))]
    made = write_messages(NewMessages(magic, codec), records(*((o, *rest) for o, (_, *rest) in zip(offsets, of, strict=True))))
    if not of:
        assert made == b""
        return
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE
    assert rows(made) == [(o, t if magic else -1, kind, k, v) for o, (_, t, k, v) in zip(offsets, of, strict=True)]


def test_a_slice_of_columns_is_written_as_its_own_columns_are() -> None:
    of = [(n, T + n, None if n % 3 else b"k" * n, None if n % 5 == 2 else b"v" * (7 * n)) for n in range(40)]
    for magic, codec in FORMS:
        new = NewMessages(magic, codec)
        assert write_messages(new, records(*of).slice(11, 17)) == write_messages(new, records(*of[11:28]))


@pytest.mark.parametrize(
    ("new", "of", "problem"),
    [
        (NewMessages(2), [(0, T, None, b"v")], "magic is 0 or 1"),
        (NewMessages(1, ZSTD), [(0, T, None, b"v")], "zstd came with magic 2"),
        (NewMessages(0), [(3, T, None, b"v"), (3, T, None, b"v")], "record 1 .* not above the one before"),
        (NewMessages(1), [(3, -2, None, b"v")], "record 0 .* negative"),
        (NewMessages(1, LZ4), [(0, T, None, b"v"), (1 << 31, T, None, b"v")], "up to 2147483647 apart"),
    ],
)
def test_what_kafka_s_builder_refuses_is_refused(new: NewMessages, of: list[tuple], problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        write_messages(new, records(*of))


@oracle
@every_form
@pytest.mark.parametrize("is_append_time", [False, True])
def test_the_bytes_are_those_of_kafka_s_builder(kafka: Judge, magic: int, codec: Codec, is_append_time: bool) -> None:
    of = [
        (7 + 3 * n, T + n * 71 % 13, None if n % 4 == 1 else b"k%d" % n, None if n % 7 == 3 else b"value %d " % n * n)
        for n in range(60)
    ]
    of += [(1_000_000, -1, b"", b""), (1_000_001, T, b"k" * 70_000, bytes(range(256)) * 400)]
    if is_append_time:
        of = [(o, T, k, v) for o, _, k, v in of]
    kind = "NO_TIMESTAMP_TYPE" if not magic else "LOG_APPEND_TIME" if is_append_time else "CREATE_TIME"
    new = NewMessages(magic, codec, is_append_time=is_append_time)
    for part in (of[:1], of[:5], of):
        asked = [",".join((str(o), str(t), _text(k), _text(v))) for o, t, k, v in part]
        answer, wrote = kafka.ask("messages", magic, codec.name, kind, T, *asked)
        assert answer == "ok", wrote
        assert same(write_messages(new, records(*part)), base64.b64decode(wrote), codec)


def _text(data: Any) -> str:
    return "-" if data is None else base64.b64encode(data).decode()
