"""A folder of Kafka 0.7: segments named by position, and the answers that its broker gave."""

import os
from pathlib import Path

import pytest
from hand_made import GZIP, compressed
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log import log_0_7
from local_log.errors import Corrupt, NotFound, OffsetOutOfRange
from local_log.formats.filenames import position_file
from local_log.formats.messages.kafka_0_7 import scan, write_message
from local_log.log_0_7 import EARLIEST_TIME, LATEST_TIME, Log07, open_log_0_7
from local_log.os_disk import OsDisk

START = 700
NOW_MS = 9_000


def made(n: int) -> bytes:
    inner = b"".join(write_message(b"inner %d of %d" % (k, n)) for k in range(3))
    return write_message(compressed(GZIP, inner), codec=GZIP) if n % 5 == 4 else write_message(b"value %d" % n, magic=n % 2)


def segment(*numbers: int) -> bytes:
    return b"".join(made(n) for n in numbers)


SEGMENTS = (segment(*range(10)), segment(*range(10, 13)), segment(*range(13, 20)))
WHOLE = b"".join(SEGMENTS)
STARTS = [START, START + len(SEGMENTS[0]), START + len(SEGMENTS[0] + SEGMENTS[1])]
END = START + len(WHOLE)


def folder_of(folder: Path, *bodies: bytes, start: int = START) -> Log07:
    for body in bodies:
        (folder / position_file(start)).write_bytes(body)
        start += len(body)
    return open_log_0_7(OsDisk(), str(folder))


@pytest.fixture
def log(tmp_path: Path) -> Log07:
    return folder_of(tmp_path, *SEGMENTS)


def records(log: Log07, offset: int) -> list[tuple[int, int, bytes]]:
    return [(r["offset"], r["next_offset"], r["value"]) for part in log.records(offset) for r in part.to_pylist()]


def test_its_bounds_are_positions(log: Log07) -> None:
    assert (log.log_start_offset, log.log_end_offset) == (START, END)
    assert [s.start for s in log.segments] == STARTS


def test_every_message_is_read_from_any_offset_that_one_starts_at(log: Log07) -> None:
    whole = records(log, START)
    assert len(whole) == 16 + 4 * 3
    for message in scan(WHOLE)[0]:
        offset = START + message.position
        assert records(log, offset) == [row for row in whole if row[0] >= offset]
    assert records(log, END) == []


def test_a_reader_that_starts_anew_behind_any_record_misses_none(log: Log07) -> None:
    whole = records(log, START)
    for n, (_, next_offset, _) in enumerate(whole, 1):
        again = records(log, next_offset)
        assert again[len(again) - len(whole[n:]) :] == whole[n:]
        assert len(again) - len(whole[n:]) <= 2  # a wrapper of three is read again from its first


@settings(deadline=None, max_examples=60)
@given(bytes_max=st.integers(0, len(WHOLE) + 10), at=st.integers(0, 19))
def test_a_fetch_gives_the_bytes_as_they_lie_of_one_segment(
    tmp_path_factory: pytest.TempPathFactory, bytes_max: int, at: int
) -> None:
    log = folder_of(tmp_path_factory.mktemp("log"), *SEGMENTS)
    offset = START + scan(WHOLE)[0][at].position
    end = next(end for end in [*STARTS[1:], END] if end > offset)
    assert log.read(offset, bytes_max) == WHOLE[offset - START : min(offset + bytes_max, end) - START]
    assert log.read(END, bytes_max) == b""


@pytest.mark.parametrize("offset", [START - 1, END + 1, -1])
def test_an_offset_outside_the_log_is_out_of_range(log: Log07, offset: int) -> None:
    for ask in (lambda: log.read(offset, 10), lambda: list(log.spans(offset)), lambda: list(log.records(offset))):
        with pytest.raises(OffsetOutOfRange):
            ask()


def test_an_offset_inside_a_message_reads_no_record_that_is_none(log: Log07) -> None:
    sound = {value for *_, value in records(log, START)}
    for offset in range(START, STARTS[1]):
        try:
            found = [value for *_, value in records(log, offset)]
        except Corrupt:
            continue
        assert set(found) <= sound


def test_messages_of_any_size_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = records(folder_of(tmp_path, *SEGMENTS), START)
    for span_bytes in (9, 20, 100):
        monkeypatch.setattr(log_0_7, "SPAN_BYTES", span_bytes)
        assert records(open_log_0_7(OsDisk(), str(tmp_path)), START) == whole


def test_the_newest_segment_ends_after_its_last_sound_message_wherever_it_is_cut(tmp_path: Path) -> None:
    ends = [0, *(message.next_position for message in scan(SEGMENTS[2])[0])]
    for cut in range(len(SEGMENTS[2]) + 1):
        log = folder_of(tmp_path, *SEGMENTS[:2], SEGMENTS[2][:cut])
        assert log.log_end_offset == STARTS[2] + max(end for end in ends if end <= cut)
        assert all(next_offset <= log.log_end_offset for _, next_offset, _ in records(log, START))


@pytest.mark.parametrize("nonsense", [bytes(100), b"\xff" * 100, write_message(b"flipped")[:-1] + b"x" + write_message(b"good")])
def test_nonsense_after_a_crash_ends_the_newest_segment(tmp_path: Path, nonsense: bytes) -> None:
    log = folder_of(tmp_path, *SEGMENTS[:2], SEGMENTS[2] + nonsense)
    assert log.log_end_offset == END
    assert records(log, START) == records(folder_of(tmp_path, *SEGMENTS), START)
    assert log.read(STARTS[2], 1 << 20) == SEGMENTS[2]


@pytest.mark.parametrize(("at", "what"), [(4, "magic"), (3, "bytes"), (12, "CRC-32")])
def test_damage_in_a_full_segment_is_corrupt_by_file_and_byte(tmp_path: Path, at: int, what: str) -> None:
    bad = bytearray(SEGMENTS[1])
    damaged = scan(SEGMENTS[1])[0][1].position
    bad[damaged + at] ^= 0x7F
    log = folder_of(tmp_path, SEGMENTS[0], bytes(bad), SEGMENTS[2])
    with pytest.raises(Corrupt, match=what) as caught:
        records(log, START)
    assert (caught.value.file, caught.value.position) == (f"{tmp_path}/{position_file(STARTS[1])}", damaged)


def test_a_full_segment_that_ends_in_part_of_a_message_is_corrupt(tmp_path: Path) -> None:
    body = SEGMENTS[0] + made(10)[:-2]
    log = folder_of(tmp_path, body, SEGMENTS[1])
    with pytest.raises(Corrupt, match="are no message") as caught:
        records(log, START)
    assert caught.value.position == len(SEGMENTS[0])


def test_a_segment_that_is_missing_between_two_is_corrupt(tmp_path: Path) -> None:
    folder_of(tmp_path, *SEGMENTS)
    (tmp_path / position_file(STARTS[1])).unlink()
    with pytest.raises(Corrupt, match=position_file(STARTS[2])):
        open_log_0_7(OsDisk(), str(tmp_path))


def test_other_files_are_no_segments(tmp_path: Path) -> None:
    for name in (position_file(0) + ".deleted", f"{0:020d}.log", "x.kafka"):
        (tmp_path / name).write_bytes(b"?")
    assert open_log_0_7(OsDisk(), str(tmp_path)).segments == ()


def test_an_empty_folder_is_an_empty_log(tmp_path: Path) -> None:
    log = open_log_0_7(OsDisk(), str(tmp_path))
    assert (log.log_start_offset, log.log_end_offset, log.read(0, 10), records(log, 0)) == (0, 0, b"", [])


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_log_0_7(OsDisk(), str(tmp_path / "nowhere"))


# offsets_before


def changed(log: Log07, *times_ms: int) -> None:
    for segment, time_ms in zip(log.segments, times_ms, strict=True):
        os.utime(segment.path, ns=(0, time_ms * 1_000_000))


def before(log: Log07, time_ms: int, count: int = 10) -> list[int]:
    return list(log.offsets_before(time_ms, count, NOW_MS))


def test_offsets_before_a_time_are_starts_of_segments_last_changed_by_then_the_latest_first(log: Log07) -> None:
    changed(log, 1_000, 2_000, 3_000)
    assert before(log, 999) == []
    assert before(log, 1_000) == [STARTS[0]]
    assert before(log, 2_500) == [STARTS[1], STARTS[0]]
    assert before(log, 3_000) == [STARTS[2], STARTS[1], STARTS[0]]
    assert before(log, NOW_MS) == [END, STARTS[2], STARTS[1], STARTS[0]]


def test_no_more_offsets_come_than_were_asked_for(log: Log07) -> None:
    changed(log, 1_000, 2_000, 3_000)
    assert before(log, 3_000, 2) == [STARTS[2], STARTS[1]]
    assert before(log, LATEST_TIME, 1) == [END]
    assert before(log, LATEST_TIME, 0) == []
    assert before(log, LATEST_TIME, -1) == []


def test_the_earliest_offset_is_one_and_the_latest_the_first_of_all(log: Log07) -> None:
    assert before(log, EARLIEST_TIME) == [START]
    assert before(log, LATEST_TIME) == [END, *reversed(STARTS)]


def test_a_segment_changed_late_hides_none_that_lie_behind_it(log: Log07) -> None:
    changed(log, 5_000, 2_000, 3_000)
    assert before(log, 3_000) == [STARTS[2], STARTS[1], STARTS[0]]
    assert before(log, 1_500) == []


def test_the_end_of_an_empty_newest_segment_is_its_start_and_comes_once(tmp_path: Path) -> None:
    log = folder_of(tmp_path, *SEGMENTS[:2], b"")
    assert before(log, LATEST_TIME) == [STARTS[2], STARTS[1], STARTS[0]]


def test_a_log_without_segments_has_only_the_offset_0(tmp_path: Path) -> None:
    log = open_log_0_7(OsDisk(), str(tmp_path))
    assert (before(log, LATEST_TIME), before(log, EARLIEST_TIME), before(log, NOW_MS)) == ([0], [0], [])
