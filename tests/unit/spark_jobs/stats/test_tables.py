"""Sums as rows, tables, lines of blocks, and a picture."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_log.formats.record import Codec
from spark_jobs.stats.picture import BARS_MAX, PARTITIONS_MAX, draw, figure_of, step_of
from spark_jobs.stats.sums import HOUR_MS, HourSums, OffsetSums, PartitionSums
from spark_jobs.stats.tables import HOURS, PARTITIONS, Measured, hour_rows, line, partition_rows, table

NOON = 1_700_000_000_000 // HOUR_MS * HOUR_MS


def some(name: str = "t", number: int = 0, factor: int = 1) -> Measured:
    early = HourSums(10 * factor, 2, 400, 800, 1, 2, 300, 5, 90, {Codec.zstd: 2}, frozenset({7, 8}))
    late = HourSums(30, 3, 600, 600, 0, 0, 500, 1, 70, {Codec.none: 3}, frozenset({8}))
    timeless = HourSums(1, 1, 50, 50, 0, 0, 20, 20, 20, {Codec.none: 1})
    sums = PartitionSums(OffsetSums(45 + 10 * (factor - 1), 2), {NOON: early, NOON + 3 * HOUR_MS: late, None: timeless})
    return Measured(name, number, 100, 160, 15, sums)


def test_hours_come_in_order_and_what_has_none_first() -> None:
    rows = hour_rows([some()], with_records=True)
    assert [(r["hour"], r["records"]) for r in rows] == [(None, 1), (NOON, 10), (NOON + 3 * HOUR_MS, 30)]
    assert (rows[1]["compression_ratio"], rows[1]["record_bytes_avg"], rows[1]["producers"]) == (2.0, 30.0, 2)
    assert (rows[1]["batches_zstd"], rows[1]["batches_none"], rows[1]["batches_lz4"]) == (2, 0, 0)


def test_a_partition_is_the_sum_of_its_hours_with_what_is_missing() -> None:
    [row] = partition_rows([some()], with_records=True)
    assert (row["records"], row["batches"], row["stored_bytes"], row["producers"]) == (41, 6, 1050, 2)
    assert (row["record_bytes_min"], row["record_bytes_max"]) == (1, 90)
    assert (row["first_hour"], row["last_hour"]) == (NOON, NOON + 3 * HOUR_MS)
    assert (row["control_records"], row["missing_offsets"], row["gap_offsets"]) == (2, 2, 15)


def test_what_only_records_tell_is_null_where_none_was_decoded() -> None:
    for row in (*hour_rows([some()], with_records=False), *partition_rows([some()], with_records=False)):
        nulls = {name for name, value in row.items() if value is None} - {"hour"}
        assert nulls == {
            "decoded_bytes", "compression_ratio", "null_keys", "null_values", "record_bytes", "record_bytes_min",
            "record_bytes_max", "record_bytes_avg",
        }  # fmt: skip


def test_an_empty_partition_has_a_row_without_ratios() -> None:
    [row] = partition_rows([Measured("t", 3, 5, 5, 0, PartitionSums())], with_records=True)
    assert (row["records"], row["compression_ratio"], row["record_bytes_avg"], row["first_hour"]) == (0, None, None, None)


def test_rows_fit_their_tables() -> None:
    hours = table(hour_rows([some()], with_records=True), HOURS)
    partitions = table(partition_rows([some()], with_records=True), PARTITIONS)
    assert hours.column("records").to_pylist() == [1, 10, 30]
    assert [h and round(h.timestamp() * 1000) for h in hours.column("hour").to_pylist()] == [None, NOON, NOON + 3 * HOUR_MS]
    assert partitions.column("gap_offsets").to_pylist() == [15]
    assert set(hours.schema.names) == set(hour_rows([some()], with_records=True)[0])
    assert set(partitions.schema.names) == set(partition_rows([some()], with_records=True)[0])


def test_a_line_has_a_column_for_each_hour_that_fits() -> None:
    assert line({NOON: 10, NOON + HOUR_MS: 80, NOON + 3 * HOUR_MS: 1, None: 99}, 72) == "▂█ ▁"
    assert line({NOON: 1, NOON + 9 * HOUR_MS: 1}, 5) == "█   █"
    assert line({None: 4}, 10) == line({}, 10) == ""


def test_the_picture_has_a_bar_for_each_hour_of_each_partition(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra")
    figure = figure_of([some(), some("u")])
    above, below = figure.axes
    assert [bar.get_height() for bars in above.containers for bar in bars] == [10, 30, 10, 30]
    assert [bar.get_y() for bar in above.containers[1]] == [10, 30]
    assert [bar.get_height() for bars in below.containers for bar in bars] == [400, 600, 400, 600]
    draw([some()], str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_partitions_beyond_the_largest_are_drawn_as_one() -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra")
    (legend,) = figure_of([some(number=n) for n in range(14)]).legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(names) == PARTITIONS_MAX + 1
    assert names[-1] == "5 others"


def test_the_picture_says_what_it_shows_and_its_legend_covers_no_bar() -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    long = figure_of([some(f"{word}.with-a-name-that-goes-on-and-on", n) for word in ("orders", "bills") for n in range(4)])
    FigureCanvasAgg(long).draw()
    assert not long.legends[0].get_window_extent().overlaps(long.texts[0].get_window_extent()), "nor the title"
    figure = figure_of([some(number=n, factor=100_000) for n in range(12)])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (legend,) = figure.legends
    assert not any(legend.get_window_extent().overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert figure.get_suptitle() == "Records and stored bytes of t by the time of the records"
    assert {label.get_text()[-2:] for label in figure.axes[0].get_yticklabels()[1:]} == {" M"}
    assert {label.get_text()[-1] for label in figure.axes[1].get_yticklabels()} == {"B"}
    assert figure.axes[1].get_xlabel() == "time of the records, 2023-11-14T22:00Z to 2023-11-15T02:00Z"
    first, *_, last = (text.get_window_extent() for text in long.legends[0].get_texts())
    assert 0 < first.x0 < last.x1 < long.bbox.width


def test_few_records_are_counted_in_whole_ones_and_none_in_words() -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    few = figure_of([of_hours([NOON])])
    FigureCanvasAgg(few).draw()
    assert [label.get_text() for label in few.axes[0].get_yticklabels()][:2] == ["0", "1"]
    assert [text.get_text() for text in figure_of([]).texts][-1] == "no record with a time"


DAY_MS = 24 * HOUR_MS


def of_hours(hours: list[int]) -> Measured:
    return Measured("t", 0, 0, 1, 0, PartitionSums(OffsetSums(1), {hour: HourSums(1, 1, 100) for hour in hours}))


@pytest.mark.parametrize(
    ("days", "unit", "bars"),
    [(10, "hour", 240), (17, "day", 18), (300, "day", 301), (2 * 365, "week", 105), (20 * 365, "4 weeks", 261)],
)
@pytest.mark.slow
def test_bars_grow_longer_rather_than_many(days: int, unit: str, bars: int) -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra")
    above, below = figure_of([of_hours([NOON + n * HOUR_MS for n in range(days * 24)])]).axes
    assert above.get_ylabel() == f"records per {unit}"
    assert below.get_ylabel() == f"stored bytes per {unit}"
    heights = [bar.get_height() for bar in above.containers[0]]
    assert abs(len(heights) - bars) <= 1
    assert sum(heights) == days * 24
    assert sum(bar.get_height() for bar in below.containers[0]) == days * 2400


@given(st.lists(st.integers(0, 9_000 * 365 * 24), min_size=1, max_size=60))
def test_no_picture_has_more_bars_than_can_be_told_apart(numbers: list[int]) -> None:
    hours = [number * HOUR_MS for number in numbers]
    step = step_of(hours)
    assert (max(hours) - min(hours)) // step <= BARS_MAX


def test_a_week_begins_on_a_monday_and_a_timestamp_of_no_calendar_is_left_out(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra")
    from matplotlib.dates import num2date

    hours = [NOON + n * DAY_MS for n in range(500)]
    bars = figure_of([of_hours([*hours, 2**62])]).axes[0].containers[0]
    assert {num2date(bar.get_x()).weekday() for bar in bars} == {0}
    assert sum(bar.get_height() for bar in bars) == 500
    draw([of_hours([0, NOON, 2**62])], str(tmp_path / "picture.png"))
