"""Times, durations and sizes as people write them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_log.formats.primitives import INT64_MAX
from local_log.quantities import duration_text, number_of, parse_duration, parse_rate, parse_size, parse_time, size_text

NOW_MS = 1_795_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        (" 2026-11-20T10:00Z ", 1_795_168_800_000),
        ("2026-11-20T10:00:00.000Z", 1_795_168_800_000),
        ("2026-11-20T10:00", 1_795_168_800_000),
        ("2026-11-20 10:00:00", 1_795_168_800_000),
        ("2026-11-20T12:30+02:30", 1_795_168_800_000),
        ("2026-11-20", 1_795_132_800_000),
        ("2026-11-20T10:00:00.0001", 1_795_168_800_001),
        ("now", NOW_MS),
        ("-2h", NOW_MS - 2 * HOUR_MS),
        ("-1d12h", NOW_MS - 36 * HOUR_MS),
        ("-1.5 h", NOW_MS - 90 * 60_000),
        ("-500ms", NOW_MS - 500),
    ],
)
def test_a_time_is_a_number_an_iso_time_or_one_before_now(text: str, expected: int) -> None:
    assert parse_time(text, NOW_MS) == expected


@pytest.mark.parametrize(
    "text",
    ["", "-", "-5", "2h", "yesterday", "20.11.2026", "2026-13-01", "2026-11-20T25:00", "1969-12-31", "0001-01-01T00:00+05:00",
     "-99999w", str(1 << 63), "9" * 101, "-2x", "1_000", "٣"],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_the_forms_that_are_valid(text: str) -> None:
    with pytest.raises(ValueError, match="2026-11-20T10:00Z"):
        parse_time(text, NOW_MS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("604800000", 7 * DAY_MS), ("7d", 7 * DAY_MS), ("1w", 7 * DAY_MS), ("1h30m", 90 * 60_000), ("90min", 90 * 60_000),
        ("1 h 30 m", 90 * 60_000), ("0.5s", 500), ("250ms", 250), ("2H", 2 * HOUR_MS), ("0", 0),
    ],
)  # fmt: skip
def test_a_duration_is_a_number_of_ms_or_amounts_with_units(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1048576", 1 << 20), ("500kB", 500_000), ("50MB", 50_000_000), ("1.5GiB", 3 << 29), ("128m", 128 << 20),
        ("1 TiB", 1 << 40), ("2g", 2 << 30), ("12B", 12), ("0.5KB", 500), ("1PB", 10**15),
    ],
)  # fmt: skip
def test_a_size_is_a_number_of_bytes_or_an_amount_with_a_unit(text: str, expected: int) -> None:
    assert parse_size(text) == expected
    assert parse_rate(f"{text}/s") == expected
    assert parse_rate(text) == expected


@pytest.mark.parametrize("text", ["", "-1", "7 days", "d", "1.2.3h", "0.1ms", "7d!", f"{1 << 63}", "9" * 30 + "w"])
def test_what_is_no_duration_is_refused_with_the_forms_that_are_valid(text: str) -> None:
    with pytest.raises(ValueError, match="30s, 12h, 7d"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "-1", "many", "10/s", "10 bits", "0.1B", "8EiB"])
def test_what_is_no_size_is_refused_with_the_forms_that_are_valid(text: str) -> None:
    with pytest.raises(ValueError, match="50MB"):
        parse_size(text)


@given(st.integers(0, INT64_MAX))
def test_a_number_alone_is_itself(number: int) -> None:
    assert (parse_time(str(number), NOW_MS), parse_duration(str(number)), parse_size(str(number))) == (number,) * 3


@given(st.text(max_size=30))
def test_any_other_text_is_a_value_error(text: str) -> None:
    for parse in (parse_duration, parse_size, parse_rate, lambda value: parse_time(value, NOW_MS)):
        with suppress(ValueError):
            assert 0 <= parse(text) <= INT64_MAX


@pytest.mark.parametrize(
    ("setting", "text", "expected"),
    [
        ("retention.ms", "7d", str(7 * DAY_MS)),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "often", "often"),
        ("retention.bytes", "50GB", "50000000000"),
        ("remote.log.manager.copy.max.bytes.per.second", "50MB/s", "50000000"),
        ("fetch.chunk.cache.size", "256MiB", str(256 << 20)),
        ("group.max.size", "10k", "10k"),
        ("cleanup.policy", "7d", "7d"),
    ],
)
def test_a_setting_is_read_by_the_unit_that_its_name_ends_in(setting: str, text: str, expected: str) -> None:
    assert number_of(setting, text) == expected


def test_a_setting_with_an_unknown_unit_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"retention\.ms='7 days' is not valid; expected ms, or a duration such as 30s"):
        number_of("retention.ms", "7 days")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"), (999, "0 s"), (6_958, "6 s"), (60_000, "1 m"), (306_000, "5 m 6 s"), (HOUR_MS, "1 h"),
        (HOUR_MS + 5_000, "1 h"), (26 * HOUR_MS, "1 d 2 h"), (95_471_420_000, "1104 d 23 h"),
    ],
)  # fmt: skip
def test_a_duration_is_told_in_its_two_greatest_units(ms: int, text: str) -> None:
    assert duration_text(ms) == text
    assert parse_duration(text) <= ms


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (32_310, "32.3 kB"), (999_940, "999.9 kB"), (999_950, "1.0 MB"),
        (7_192_901, "7.2 MB"), (1 << 40, "1.1 TB"), (9 * 10**18, "9000.0 PB"),
    ],
)  # fmt: skip
def test_a_size_is_told_in_the_unit_that_it_is_some_of(size: int, text: str) -> None:
    assert size_text(size) == text
    assert size < 1000 or abs(parse_size(text) - size) <= size / 20
