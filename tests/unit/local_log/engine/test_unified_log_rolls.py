"""When a log begins a new segment, and what is on the device then."""

from pathlib import Path

import pytest
from logs_at_work import Log, batch_of, settings
from small_logs import NOW

from local_log.errors import Invalid
from local_log.formats.record import NO_TIMESTAMP

HOUR_MS = 3_600_000


def append(at: Log, time: int = NOW) -> int:
    """Appends a record of a time as a leader; how many segments there are then."""
    at.log.append_as_leader(batch_of("test", time=time), 0)
    return len(at.bases)


def test_a_segment_is_rolled_before_it_grows_over_its_size(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=10 * (len(batch_of("test")) - 1)))
    assert at.bases == [0]
    assert [append(at) for _ in range(11)] == [1] * 9 + [2] * 2
    assert at.bases == [0, 9]


def test_records_without_timestamps_roll_by_the_wall_clock(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_ms=HOUR_MS, message_timestamp_after_max_ms=2 * HOUR_MS))
    at.clock.sleep(HOUR_MS + 1)
    assert append(at, NO_TIMESTAMP) == 1, "an empty segment is not rolled"
    assert append(at, NO_TIMESTAMP) == 2
    for segments in (3, 4):
        at.clock.sleep(HOUR_MS + 1)
        assert append(at, NO_TIMESTAMP) == segments
    # A segment whose first record has no timestamp goes on by the wall clock, whatever the others say.
    assert append(at, at.clock() + HOUR_MS + 1) == 4
    at.clock.sleep(HOUR_MS + 1)
    assert append(at, at.clock()) == 5


def test_records_with_timestamps_roll_by_the_first_of_them(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_ms=HOUR_MS))
    assert append(at, NOW) == 1
    at.clock.sleep(HOUR_MS + 1)
    assert append(at, NOW + HOUR_MS) == 1
    assert append(at, NOW + HOUR_MS + 1) == 2


def test_an_append_of_nothing_does_not_roll(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_ms=HOUR_MS))
    append(at, NO_TIMESTAMP)
    at.clock.sleep(HOUR_MS + 1)
    at.log.append_as_leader(b"", 0)
    at.log.append_as_follower(b"", 0)
    assert at.bases == [0]


def test_jitter_lets_a_segment_be_rolled_earlier(tmp_path: Path) -> None:
    jitter = 20 * 60_000
    at = Log(tmp_path, settings(segment_ms=HOUR_MS, segment_jitter_ms=jitter))  # of which `Log` draws half
    assert append(at, NOW) == 1
    assert append(at, NOW + HOUR_MS - jitter) == 1
    assert append(at, NOW + HOUR_MS - jitter // 2) == 1
    assert append(at, NOW + HOUR_MS - jitter // 2 + 1) == 2


def test_a_full_index_rolls_and_an_empty_segment_with_a_full_index_is_made_anew(tmp_path: Path) -> None:
    at = Log(tmp_path)
    at.log.roll()
    assert at.bases == [0]
    at.follow(batch_of("v1"), batch_of("v2", offset=1, time=NOW + 10))
    assert (at.bases, at.log.log_end_offset) == ([0], 2)
    assert (at.read(0, 1), at.read(1, 1)) == ([(0, "v1")], [(1, "v2")])
    at.log.roll()
    assert at.bases == [0, 2]
    at.log.local.segments.active.offset_index.resize(0)
    at.follow(batch_of("v3", offset=2, time=NOW + 12))
    assert at.bases == [0, 2]
    assert at.log.local.segments.active.offset_index.entries_max > 1
    assert at.read(2) == [(2, "v3")]


def test_a_roll_puts_what_is_before_it_on_the_device(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=100))
    for number in range(100):
        at.log.append_as_leader(batch_of(f"{number}", time=NOW), 0)
    assert at.bases == list(range(100))
    assert at.log.recovery_point == 99
    offset = 0
    while found := at.read(offset):
        assert found == [(offset, f"{offset}")]
        offset += 1
    assert offset == 100
    at.log.flush()
    assert at.log.recovery_point == 100


def test_a_flush_can_take_the_empty_last_segment_with_it(tmp_path: Path) -> None:
    at = Log(tmp_path)
    at.log.append_as_leader(batch_of("Test"), 0)
    at.log.roll()
    assert (at.files(".log"), at.files(".index")) == ([0, 1], [0])
    at.log.flush()
    assert at.files(".index") == [0]
    at.log.flush(also_active=True)
    assert (at.files(".log"), at.files(".index")) == ([0, 1], [0, 1])


def test_a_flush_is_due_after_as_many_messages_as_are_set(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(flush_messages=3))
    points = []
    for offset in range(4):
        at.follow(batch_of("a", offset=offset))
        points.append(at.log.recovery_point)
    assert points == [0, 0, 3, 3]


def test_a_closed_log_neither_rolls_nor_appends_nor_truncates_nor_starts_later(tmp_path: Path) -> None:
    at = Log(tmp_path)
    at.follow(batch_of("a"))
    at.log.update_high_watermark(1)
    at.log.close()
    at.log.close()
    for act in (
        lambda: at.log.roll(1),
        lambda: at.follow(batch_of("b", offset=1)),
        lambda: at.log.append_as_leader(batch_of("b"), 0),
        lambda: at.log.truncate_to(0),
        lambda: at.log.truncate_fully_and_start_at(0),
        lambda: at.log.maybe_increment_log_start_offset(1),
    ):
        with pytest.raises(Invalid, match="the log is closed"):
            act()


def test_segments_are_found_by_the_offsets_that_they_hold(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=10 * len(batch_of("test"))))
    for _ in range(22):
        append(at)

    def between(start: int, end: int) -> list[int]:
        return [s.base_offset for s in at.log.local.segments.between(start, end)]

    assert at.bases == [0, 10, 20]
    assert between(10, 10) == between(15, 15) == []
    assert between(0, 21) == [0, 10, 20]
    assert between(1, 5) == [0]
    assert between(13, 21) == [10, 20]
    assert between(13, 17) == [10]
    with pytest.raises(Invalid, match="the end is below the start"):
        between(10, 0)
