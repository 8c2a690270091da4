"""Messages of magic 0 and 1 that hold others: their offsets and times, and what a log finds by them."""

import struct
from pathlib import Path

import lz4.frame
import pytest
from hand_made import APPEND_TIME, GZIP, LZ4, SNAPPY, ZSTD, compressed, xerial
from small_logs import INT32_MAX, NOW, Clock, append, base_offsets, old_compressed, old_records, opened, small_config

from local_log.engine.list_offsets import find_by_timestamp
from local_log.engine.scan import Scanned, scan_any
from local_log.engine.segment import Segment
from local_log.errors import Corrupt
from local_log.formats.list_offsets import MAX_TIMESTAMP
from local_log.os_disk import OsWritableDisk

THREE = old_records(0, time=5) + old_records(1, time=9, key=b"key") + old_records(3, time=7, value=None)


def messages_in(message: bytes) -> list[tuple[int, int]]:
    """Offset and time of each."""
    batches, stop, _ = scan_any(message, len(message))
    assert (len(batches), stop) == (1, len(message))
    offsets, times = Scanned(0, message, batches).old_messages(0)
    return list(zip(offsets.tolist(), times.tolist(), strict=True))


def segment(folder: Path, *messages: bytes) -> Segment:
    one = Segment(OsWritableDisk(), str(folder), 0, small_config(), Clock())
    append(one, *messages)
    return one


def found_offset(one: Segment, offset: int) -> int | None:
    found = one.translate(offset)
    return None if found is None else found.offset


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_that_is_not_compressed_holds_itself(magic: int) -> None:
    time = 77 if magic else -1
    assert messages_in(old_records(12, time=77, magic=magic)) == [(12, time)]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_the_offset_of_a_compressed_message_is_that_of_the_last_one_in_it(codec: int) -> None:
    message = old_records(43, value=compressed(codec, THREE), attributes=codec, key=b"a key")
    assert messages_in(message) == [(40, 5), (41, 9), (43, 7)]


def test_java_s_framing_of_snappy_is_read_too() -> None:
    message = old_records(43, value=xerial(THREE[:20], THREE[20:]), attributes=SNAPPY)
    assert [offset for offset, _ in messages_in(message)] == [40, 41, 43]


def test_in_a_message_of_magic_0_offsets_are_the_log_s() -> None:
    inner = old_records(40, magic=0) + old_records(41, magic=0)
    message = old_records(41, value=compressed(GZIP, inner), attributes=GZIP, magic=0)
    assert messages_in(message) == [(40, -1), (41, -1)]


def test_in_a_message_of_magic_0_the_checksum_of_an_lz4_header_may_be_wrong() -> None:
    frame = bytearray(lz4.frame.compress(old_records(40, magic=0), store_size=False, block_linked=False))
    frame[6] ^= 1
    assert messages_in(old_records(40, value=bytes(frame), attributes=LZ4, magic=0)) == [(40, -1)]


def test_a_compressed_message_of_offset_0_has_the_offsets_of_what_is_in_it() -> None:
    assert [offset for offset, _ in messages_in(old_records(0, value=compressed(GZIP, THREE), attributes=GZIP))] == [0, 1, 3]


def test_where_the_time_is_that_of_the_append_all_have_that_of_the_compressed_message() -> None:
    message = old_records(43, value=compressed(GZIP, THREE), attributes=GZIP | APPEND_TIME, time=99)
    assert {time for _, time in messages_in(message)} == {99}


def test_a_message_cut_at_the_end_of_a_compressed_one_is_none_of_its_own() -> None:
    message = old_records(41, value=compressed(GZIP, THREE[:-1]), attributes=GZIP)
    assert messages_in(message) == [(40, 5), (41, 9)]


@pytest.mark.parametrize(
    ("value", "attributes", "problem"),
    [
        (None, GZIP, "null value"),
        (compressed(GZIP, b""), GZIP, "without inner"),
        (compressed(GZIP, THREE[:-1][:20]), GZIP, "without inner"),
        (b"no gzip", GZIP, "gzip"),
        (compressed(ZSTD, THREE), ZSTD, "zstd"),
        (THREE, 7, "codec 7"),
        (compressed(GZIP, struct.pack(">qi", 0, 13) + bytes(13)), GZIP, "message's size"),
        (compressed(GZIP, old_records(0, value=compressed(GZIP, THREE), attributes=GZIP)), GZIP, "within a compressed"),
        (compressed(GZIP, old_records(44)), GZIP, "last inner"),
    ],
    ids=["null", "empty", "cut", "not gzip", "zstd", "no codec", "too small", "nested", "too high"],
)
def test_what_cannot_be_taken_apart_is_corrupt(value: bytes | None, attributes: int, problem: str) -> None:
    with pytest.raises(Corrupt, match=problem):
        messages_in(old_records(43, value=value, attributes=attributes))


def test_a_compressed_message_is_found_by_every_offset_in_it(tmp_path: Path) -> None:
    one = segment(tmp_path, old_compressed(40, 3), old_compressed(43, 4), old_records(47))
    assert [found_offset(one, offset) for offset in range(39, 49)] == [40, 40, 40, 40, 43, 43, 43, 43, 47, None]
    assert one.read_next_offset() == 48


def test_a_compressed_message_that_cannot_be_taken_apart_is_corrupt_by_file_and_place(tmp_path: Path) -> None:
    one = segment(tmp_path, old_records(0), old_records(5, value=b"no gzip", attributes=GZIP))
    with pytest.raises(Corrupt) as e:
        one.translate(3)
    assert (e.value.file, e.value.position) == (one.log_file, len(old_records(0)))


def test_messages_are_found_by_their_time(tmp_path: Path) -> None:
    one = segment(tmp_path, old_records(0, time=100), old_compressed(1, 4, time=200), old_records(5, time=300))
    asked = {99: 0, 100: 0, 101: 1, 200: 1, 202: 3, 203: 4, 204: 5, 300: 5}
    for time, offset in asked.items():
        found = find_by_timestamp(one, time, 0)
        assert found is not None
        assert (found.offset, found.leader_epoch) == (offset, -1)
    assert find_by_timestamp(one, 301, 0) is None
    found = find_by_timestamp(one, 200, 3)
    assert found is not None
    assert (found.offset, found.timestamp) == (3, 202)


def test_the_message_with_the_greatest_time_is_found_in_a_compressed_one(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for message in (old_records(0), old_compressed(1, 4, time=NOW + 5), old_records(5, time=NOW + 2)):
        log.append_as_follower(message, 0)
    found = log.offset_for(MAX_TIMESTAMP)
    assert found is not None
    assert (found.offset, found.timestamp) == (4, NOW + 8)


def test_messages_of_magic_0_have_no_greatest_time(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_as_follower(old_records(0, magic=0), 0)
    assert log.offset_for(MAX_TIMESTAMP) is None


@pytest.mark.parametrize("time", [0, NOW])
def test_messages_of_magic_0_are_found_by_no_time(tmp_path: Path, time: int) -> None:
    # Kafka up to 3.9 refused the question by a topic's message.format.version, which Kafka 4.0 does not have any more (KIP-724).
    log = opened(tmp_path)
    log.append_as_follower(old_records(0, magic=0), 0)
    assert log.offset_for(time) is None
    log.append_as_follower(old_records(1, magic=1, time=NOW), 0)
    found = log.offset_for(time)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, NOW)


def test_a_segment_is_split_at_the_first_offset_in_a_compressed_message(tmp_path: Path) -> None:
    far = INT32_MAX + 10
    (tmp_path / f"{0:020d}.log").write_bytes(old_compressed(0, 2) + old_compressed(far, 3))
    log = opened(tmp_path)
    assert log.local.segments.base_offsets == (0, far)
    assert base_offsets(log.local.segments) == [1, far + 2]
    assert log.log_end_offset == far + 3
