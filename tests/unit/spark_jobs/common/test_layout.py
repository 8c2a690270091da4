"""Rows in folders by topic and time: each row in one folder, in its order, whatever the times are."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.common.layout import NO_DATE, By, file_name, folder, parts

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_MS = 3_600_000
LAST_MS = (2**63 - 1) // 1000


def batch(times_ms: list[int]) -> pa.RecordBatch:
    timestamps = pa.array([t * 1000 for t in times_ms], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_arrays([pa.array(range(len(times_ms)), pa.int64()), timestamps], names=["offset", "timestamp"])


def folders(times_ms: list[int], by: By) -> list[tuple[str, list[int]]]:
    return [(name, part.column("offset").to_pylist()) for name, part in parts(batch(times_ms), "orders", by)]


def test_a_batch_of_one_day_stays_whole() -> None:
    whole = batch([HOUR_MS, 5, 23 * HOUR_MS])
    ((name, part),) = parts(whole, "orders", By.date)
    assert name == "topic=orders/date=1970-01-01"
    assert part is whole


def test_midnight_utc_parts_two_days() -> None:
    assert folders([24 * HOUR_MS - 1, 24 * HOUR_MS], By.date) == [
        ("topic=orders/date=1970-01-01", [0]),
        ("topic=orders/date=1970-01-02", [1]),
    ]


def test_hours_are_folders_below_their_date() -> None:
    assert folders([HOUR_MS * 23, HOUR_MS * 24 + 1], By.hour) == [
        ("topic=orders/date=1970-01-01/hour=23", [0]),
        ("topic=orders/date=1970-01-02/hour=00", [1]),
    ]


def test_without_a_time_there_is_the_topic_alone() -> None:
    assert folders([0, 10**15], By.none) == [("topic=orders", [0, 1])]


def test_a_record_without_a_timestamp_is_where_its_timestamp_column_says() -> None:
    assert folders([-1], By.hour) == [("topic=orders/date=1969-12-31/hour=23", [0])]


@pytest.mark.parametrize("time_ms", [LAST_MS, -LAST_MS])
def test_times_that_no_calendar_has_are_in_hives_folder_for_null(time_ms: int) -> None:
    ((name, _),) = folders([time_ms], By.date)
    assert name == f"topic=orders/date={NO_DATE}"


def test_files_of_a_split_that_begins_anew_in_a_folder_are_numbered() -> None:
    assert file_name("topic=t", 3, 0, 12, 0) == "topic=t/3-00000000000000000000-00000000000000000012.parquet"
    assert file_name("topic=t", 3, 0, 12, 1) == "topic=t/3-00000000000000000000-00000000000000000012.1.parquet"


@given(
    times=st.lists(st.integers(-5, 200).map(lambda hours: hours * HOUR_MS // 2), min_size=1, max_size=300),
    by=st.sampled_from([By.date, By.hour]),
)
def test_each_row_is_in_the_folder_of_its_time_and_rows_of_a_folder_keep_their_order(times: list[int], by: By) -> None:
    found: dict[str, list[int]] = {}
    for name, offsets in folders(times, by):
        found.setdefault(name, []).extend(offsets)
    wanted: dict[str, list[int]] = {}
    for offset, time_ms in enumerate(times):
        moment = EPOCH + timedelta(milliseconds=time_ms)
        hour = f"/hour={moment.hour:02}" if by is By.hour else ""
        wanted.setdefault(f"topic=orders/date={moment.date().isoformat()}{hour}", []).append(offset)
    assert found == wanted


def test_a_folders_name_is_the_same_for_every_row_of_its_hour() -> None:
    assert folder("orders", By.hour, 24 * 365 + 7) == "topic=orders/date=1971-01-01/hour=07"
