"""Inflating what the real libraries deflate, and frames that claim or become too much; compressing as Kafka does."""

import base64
import gzip
import os
import struct
import tracemalloc
from contextlib import suppress

import lz4.frame
import pytest
import snappy
import zstandard
from hand_made import GZIP, LZ4, SNAPPY, ZSTD, compressed, xerial
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_judge import Judge, oracle

from local_log.errors import Corrupt, Invalid
from local_log.formats.compression import DEFAULT_LEVELS, INFLATED_BYTES_MAX, LEVELS, compress, inflate
from local_log.formats.record import Codec

XERIAL_HEADER = 16
TEXT = b"the quick brown fox jumps over the lazy dog " * 40
FRAMES = {
    "gzip": (GZIP, lambda data: gzip.compress(data, mtime=0)),
    "snappy, raw": (SNAPPY, lambda data: bytes(snappy.compress(data))),
    "snappy, xerial": (SNAPPY, xerial),
    "lz4": (LZ4, lz4.frame.compress),
    "lz4 with content size and checksums": (
        LZ4,
        lambda data: lz4.frame.compress(data, store_size=True, content_checksum=True, block_checksum=True),
    ),
    "lz4 of small linked blocks": (LZ4, lambda data: lz4.frame.compress(data, block_size=4, block_linked=True, store_size=False)),
    "zstd": (ZSTD, lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data)),
    "zstd with content size and checksum": (
        ZSTD,
        zstandard.ZstdCompressor(write_content_size=True, write_checksum=True).compress,
    ),
}

every_frame = pytest.mark.parametrize("frame", FRAMES)


@settings(deadline=None, max_examples=60)
@given(data=st.one_of(st.binary(max_size=3_000), st.binary(max_size=50).map(lambda piece: piece * 3_000)))
def test_what_is_deflated_inflates_to_the_same_bytes(data: bytes) -> None:
    for codec, deflate in FRAMES.values():
        assert bytes(inflate(codec, deflate(data))) == data
        assert bytes(inflate(codec, memoryview(bytearray(deflate(data))))) == data


def test_no_codec_gives_the_bytes_themselves() -> None:
    assert inflate(Codec.none, TEXT) is TEXT


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_corrupt(codec: int) -> None:
    with pytest.raises(Corrupt, match=f"codec {codec} does not exist"):
        inflate(codec, TEXT)


@every_frame
def test_a_frame_may_inflate_to_the_cap_and_not_to_a_byte_more(frame: str) -> None:
    codec, deflate = FRAMES[frame]
    assert bytes(inflate(codec, deflate(TEXT), bytes_max=len(TEXT))) == TEXT
    with pytest.raises(Corrupt, match=f"more than {len(TEXT) - 1} bytes"):
        inflate(codec, deflate(TEXT), bytes_max=len(TEXT) - 1)


@every_frame
def test_a_bomb_is_refused_before_it_takes_more_memory_than_the_cap(frame: str) -> None:
    codec, deflate = FRAMES[frame]
    bomb = deflate(bytes(32 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt, match="more than 1048576 bytes"):
            inflate(codec, bomb, bytes_max=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < (8 << 20) + 16 * len(bomb)
    finally:
        tracemalloc.stop()


@every_frame
def test_a_frame_cut_at_any_byte_is_corrupt(frame: str) -> None:
    codec, deflate = FRAMES[frame]
    whole = deflate(TEXT)
    survived = []
    for cut in range(1, len(whole)):
        if frame == "snappy, xerial" and cut == XERIAL_HEADER:
            continue  # a header without blocks is whole: Java writes one for no bytes
        try:
            inflate(codec, whole[:cut])
        except Corrupt:
            continue
        survived.append(cut)
    assert survived == []


@every_frame
def test_a_frame_with_any_bit_flipped_inflates_to_something_or_is_corrupt(frame: str) -> None:
    codec, deflate = FRAMES[frame]
    whole = deflate(TEXT[:90])
    for bit in range(8 * len(whole)):
        bad = bytearray(whole)
        bad[bit // 8] ^= 1 << bit % 8
        with suppress(Corrupt):
            inflate(codec, bad, bytes_max=1 << 16)


@every_frame
def test_garbage_after_a_frame_is_corrupt(frame: str) -> None:
    codec, deflate = FRAMES[frame]
    with pytest.raises(Corrupt):
        inflate(codec, deflate(TEXT) + b"garbage")


@settings(deadline=None, max_examples=200)
@given(codec=st.integers(0, 7), data=st.binary(max_size=100))
def test_any_bytes_inflate_or_are_corrupt(codec: int, data: bytes) -> None:
    with suppress(Corrupt):
        assert len(inflate(codec, data, bytes_max=1 << 16)) <= max(1 << 16, len(data))


def test_gzip_members_follow_each_other() -> None:
    members = [gzip.compress(part) for part in (b"one ", b"", b"two ", TEXT)]
    assert inflate(GZIP, b"".join(members)) == b"one two " + TEXT


def test_nothing_at_all_is_no_gzip_frame() -> None:
    with pytest.raises(Corrupt, match="ends early"):
        inflate(GZIP, b"")


def test_the_cap_counts_all_gzip_members() -> None:
    members = gzip.compress(bytes(600)) + gzip.compress(bytes(600))
    assert len(inflate(GZIP, members, bytes_max=1_200)) == 1_200
    with pytest.raises(Corrupt, match="more than 1199 bytes"):
        inflate(GZIP, members, bytes_max=1_199)


def test_zstd_frames_follow_each_other() -> None:
    assert inflate(ZSTD, compressed(ZSTD, b"one ") + compressed(ZSTD, TEXT)) == b"one " + TEXT


def test_the_cap_counts_all_xerial_blocks() -> None:
    blocks = xerial(bytes(600), bytes(600))
    assert len(inflate(SNAPPY, blocks, bytes_max=1_200)) == 1_200
    with pytest.raises(Corrupt, match="more than 1199 bytes"):
        inflate(SNAPPY, blocks, bytes_max=1_199)


def test_xerial_blocks_follow_each_other() -> None:
    assert inflate(SNAPPY, xerial(b"one ", b"", TEXT)) == b"one " + TEXT


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, 1_000])
def test_a_xerial_block_that_claims_what_is_not_there_is_corrupt(length: int) -> None:
    with pytest.raises(Corrupt, match="snappy block"):
        inflate(SNAPPY, xerial(b"one") + struct.pack(">i", length) + b"\0\0")


def test_raw_snappy_that_claims_gigabytes_is_refused_before_the_library_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: bytes) -> bytes:
        raise AssertionError("this would take 3.9 GiB")

    monkeypatch.setattr("snappy.uncompress", refuse)
    claim = bytes([0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x00, 0x61])
    with pytest.raises(Corrupt, match=f"more than {INFLATED_BYTES_MAX} bytes"):
        inflate(SNAPPY, claim)
    with pytest.raises(Corrupt, match=f"more than {INFLATED_BYTES_MAX} bytes"):
        inflate(SNAPPY, xerial() + struct.pack(">i", len(claim)) + claim)


def test_raw_snappy_whose_length_does_not_end_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="more than 5 bytes"):
        inflate(SNAPPY, b"\xff" * 6)


def test_a_zstd_frame_is_not_believed_about_its_size() -> None:
    # Magic, a descriptor of one segment with a size of 8 bytes, the size 2^62, and an empty last block.
    claim = struct.pack("<IBQ", 0xFD2FB528, 0xE0, 1 << 62) + b"\1\0\0"
    with pytest.raises(Corrupt):
        inflate(ZSTD, claim)


LEVELLED = [
    *((codec, None) for codec in Codec),
    *((codec, level) for codec in LEVELS for level in (LEVELS[codec][0], 2, 9)),  # the highest take their time
]


@settings(deadline=None, max_examples=40)
@given(data=st.one_of(st.binary(max_size=3_000), st.binary(min_size=1, max_size=50).map(lambda piece: piece * 3_000)))
def test_what_is_compressed_inflates_to_the_same_bytes(data: bytes) -> None:
    for codec, level in LEVELLED:
        assert bytes(inflate(codec, compress(codec, memoryview(data), level))) == data


def test_kafka_s_framings_begin_as_its_own_do() -> None:
    assert compress(Codec.gzip, TEXT).startswith(bytes.fromhex("1f8b08000000000000ff"))
    assert compress(Codec.snappy, TEXT).startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    assert compress(Codec.lz4, TEXT).startswith(bytes.fromhex("04224d18604082"))
    assert compress(Codec.zstd, TEXT).startswith(bytes.fromhex("28b52ffd00"))


def test_snappy_is_cut_into_blocks_of_32_kib() -> None:
    assert compress(Codec.snappy, TEXT * 40) == xerial(
        *((TEXT * 40)[at : at + 32_768] for at in range(0, len(TEXT) * 40, 32_768))
    )


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_a_level_that_a_codec_does_not_have_is_invalid(codec: Codec) -> None:
    for level in (LEVELS[codec][0] - 1, LEVELS[codec][-1] + 1):
        with pytest.raises(Invalid, match=f"{codec.name} has no level {level}"):
            compress(codec, TEXT, level)
    assert compress(codec, TEXT, DEFAULT_LEVELS[codec]) == compress(codec, TEXT)


@pytest.mark.parametrize("codec", [Codec.none, SNAPPY])
def test_a_codec_without_levels_takes_none(codec: Codec) -> None:
    with pytest.raises(Invalid, match="it has none"):
        compress(codec, TEXT, 1)


KAFKA_S_BYTES = {
    GZIP: LEVELS[GZIP],
    LZ4: [level for level in LEVELS[LZ4] if level > 2],
    ZSTD: [1, 2, 5, 9, 12, -1, -5],
}
"""The levels at which our libraries and Kafka's make the same bytes."""


@oracle
@pytest.mark.parametrize("codec", KAFKA_S_BYTES)
def test_the_bytes_are_kafka_s_own(kafka: Judge, codec: Codec) -> None:
    pieces = (b'{"id": %d, "name": "user-%d"}\n' % (n, n * n % 997) for n in range(9_000))
    long = b"".join(pieces)
    for data in (b"a", long[:1_000], long[:65_536], long[:65_537], long, bytes(100_000), os.urandom(70_000)):
        for level in KAFKA_S_BYTES[codec]:
            ours = compress(codec, data, level)
            assert kafka.ask("compress", codec.name, level, data) == ["ok", base64.b64encode(ours).decode()], level


@oracle
@pytest.mark.parametrize("codec", Codec)
def test_kafka_s_frames_inflate(kafka: Judge, codec: Codec) -> None:
    for data in (b"", b"a", TEXT * 100, os.urandom(70_000)):
        _, frame = kafka.ask("compress", codec.name, None, data)
        assert bytes(inflate(codec, base64.b64decode(frame))) == data


@pytest.mark.parametrize("data", [b"a", b"a" * 65_536, bytes(range(256)) * 2, b"a" * 65_537, b"a" * 300_000])
def test_an_lz4_frame_of_one_block_inflates_as_any_other(data: bytes) -> None:
    frame = compress(Codec.lz4, data)
    assert bytes(inflate(Codec.lz4, frame)) == data
    assert bytes(inflate(Codec.lz4, frame, bytes_max=len(data))) == data
    with pytest.raises(Corrupt, match="inflates to more"):
        inflate(Codec.lz4, frame, bytes_max=len(data) - 1)


def test_an_lz4_block_that_does_not_inflate_is_corrupt() -> None:
    frame = bytearray(compress(Codec.lz4, b"ab" * 200))
    frame[11:-4] = b"\xff" * (len(frame) - 15)
    with pytest.raises(Corrupt, match="lz4"):
        inflate(Codec.lz4, frame)
