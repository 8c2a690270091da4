"""Small lz4 frames that one call inflates: as the library does, or not at all."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32c
from local_log.formats.compression import compress, inflate
from local_log.formats.header_layout import ATTRIBUTES_AT, BATCH_HEADER_BYTES, CRC_AT
from local_log.formats.kernels import inflate_lz4
from local_log.formats.record import Codec
from local_log.formats.record_batch import columns
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.record_batch.header import read_batch_header
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch, write_emptied

PARTS = st.lists(st.binary(max_size=9) | st.sampled_from([b"abc", bytes(40), b"-" * 300]), max_size=40).map(b"".join)


def inflated(sections: list[bytes], codecs: list[int] | None = None) -> list[bytes]:
    """The sections that the kernel inflates, up to the first that it leaves to others."""
    ends = np.cumsum([len(section) for section in sections], dtype=np.uint64)
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    out = np.zeros((len(sections) + 1) * inflate_lz4.INFLATED_BYTES_MAX, np.uint8)
    out_starts, out_ends = np.zeros(len(sections), np.uint64), np.zeros(len(sections), np.uint64)
    data = np.frombuffer(b"".join(sections), np.uint8)
    kinds = np.array(codecs or [Codec.lz4] * len(sections), np.uint8)
    done = int(inflate_lz4.inflate_frames(data, 0, kinds, starts, ends, out_starts, out_ends, out))
    return [out[int(a) : int(b)].tobytes() for a, b in zip(out_starts[:done], out_ends[:done], strict=True)]


@given(st.lists(PARTS, min_size=1, max_size=8))
def test_frames_of_one_small_block_become_what_was_compressed(plain: list[bytes]) -> None:
    frames = [compress(Codec.lz4, part) for part in plain]
    small = [len(frame) <= inflate_lz4.FRAME_BYTES_MAX and len(part) > 0 for frame, part in zip(frames, plain, strict=True)]
    until = small.index(False) if False in small else len(small)
    assert inflated(frames) == plain[:until]


@given(PARTS.filter(bool), st.data())
def test_a_damaged_frame_is_left_to_the_library_or_inflated_as_it_does(plain: bytes, data: st.DataObject) -> None:
    frame = bytearray(compress(Codec.lz4, plain))
    for at in data.draw(st.lists(st.integers(0, len(frame) - 1), min_size=1, max_size=3)):
        frame[at] = data.draw(st.integers(0, 255))
    frame = frame[: data.draw(st.integers(1, len(frame)) | st.just(len(frame)))]
    found = inflated([bytes(frame)])
    assert found == [] or found == [bytes(inflate(Codec.lz4, bytes(frame)))]


def test_other_codecs_large_frames_and_several_blocks_are_left_to_the_library() -> None:
    small = compress(Codec.lz4, b"small")
    for codec, section in (
        (Codec.gzip, compress(Codec.gzip, b"small")),
        (Codec.lz4, compress(Codec.lz4, np.random.default_rng(1).bytes(inflate_lz4.FRAME_BYTES_MAX))),
        (Codec.lz4, compress(Codec.lz4, bytes(1 << 17))),
        (Codec.lz4, compress(Codec.lz4, bytes(inflate_lz4.INFLATED_BYTES_MAX + 1))),
    ):
        assert inflated([small, section, small], [Codec.lz4, codec, Codec.lz4]) == [b"small"]
    assert inflated([small, b"as it is", small], [Codec.lz4, Codec.none, Codec.lz4]) == [b"small", b"as it is", b"small"]


BATCH_VALUES = st.lists(st.binary(max_size=30) | st.sampled_from([bytes(50), bytes(40_000)]), max_size=3)
BATCHES = st.lists(st.tuples(st.sampled_from([Codec.lz4] * 5 + [Codec.none, Codec.zstd]), BATCH_VALUES), min_size=1, max_size=20)


def batch(offset: int, codec: Codec, values: list[bytes]) -> bytes:
    """A batch of these values; without any, one that compaction has emptied."""
    rows = [
        {"offset": offset + n, "timestamp": n, "key": b"k", "value": value, "headers": [{"key": "h", "value": value[:3]}]}
        for n, value in enumerate(values or [b"gone"])
    ]
    made = write_batch(NewBatch(offset, codec=codec), pa.RecordBatch.from_pylist(rows, schema=RECORDS))
    return made if values else write_emptied(read_batch_header(made, 0))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BATCHES)
def test_batches_decode_as_when_each_is_inflated_by_the_library(
    monkeypatch: pytest.MonkeyPatch, made: list[tuple[Codec, list[bytes]]]
) -> None:
    buffer = b"".join(batch(10 * n, codec, values) for n, (codec, values) in enumerate(made))
    batches, _ = scan(buffer)

    def decoded() -> list[Any]:
        return [row for _, part in columns.decode(buffer, batches) for row in part.to_pylist()]

    monkeypatch.setattr(columns, "_SMALL_FRAMES_MIN", 1)
    together = decoded()
    monkeypatch.setattr(columns, "_SMALL_FRAMES_MIN", len(made) + 1)
    assert together == decoded()
    assert len(together) == sum(len(values) for _, values in made)


def test_a_small_frame_that_does_not_inflate_is_corrupt_at_its_batch() -> None:
    sound = [batch(10 * n, Codec.lz4, [b"value of one record"]) for n in range(9)]
    frame = bytearray(sound[5])
    frame[BATCH_HEADER_BYTES + 7] ^= 1  # the size of its block
    frame[CRC_AT:ATTRIBUTES_AT] = crc32c(bytes(frame[ATTRIBUTES_AT:])).to_bytes(4, "big")
    buffer = b"".join([*sound[:5], bytes(frame), *sound[6:]])
    with pytest.raises(Corrupt) as raised:
        list(columns.decode(buffer, scan(buffer)[0]))
    assert raised.value.position == sum(map(len, sound[:5]))
