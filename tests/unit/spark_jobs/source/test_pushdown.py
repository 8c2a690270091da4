"""What is not wanted is not read: windows of time, ranges of offsets, topics and partitions, counted in bytes and requests."""

import random  # noqa: TID251  # seeded
from collections.abc import Sequence
from pathlib import Path

import pytest
from made_archive import made

from local_log.ranges import Ranges, bounding_range
from remote.clock import stopwatch
from remote.store.api import ObjectStore
from remote.store.folder.store import FolderStore
from remote.store.instrumented import Instrumented, Meter
from spark_jobs.source import plan_report
from spark_jobs.source.options import ReadOptions, parse
from spark_jobs.source.partitions import plan_splits
from spark_jobs.source.pushdown import Pushdown
from spark_jobs.source.rows import read_split

T0 = 1_700_000_000_000
RECORDS = 8
"""In a batch; of 1 KB each."""


def options(store: ObjectStore, **more: str) -> ReadOptions:
    return parse({"archive": store.url, "subscribe": "made", **more})


def times_in_order(segments: int, batches: int) -> list[list[list[int]]]:
    """A record every 10 ms."""
    at = iter(range(T0, T0 + segments * batches * RECORDS * 10, 10))
    return [[[next(at) for _ in range(RECORDS)] for _ in range(batches)] for _ in range(segments)]


def read(store: ObjectStore, asked: ReadOptions, wanted: Pushdown) -> tuple[list[tuple[int, int]], Meter]:
    """The offsets and timestamps of the rows that Spark would be given, and what it took to get them, planning and all."""
    meter = Meter()
    counted = Instrumented(store, meter, stopwatch)
    rows = [
        (offset, round(timestamp.timestamp() * 1000))
        for split in plan_splits(counted, asked, wanted)
        for batch in read_split(counted, split, ("offset", "timestamp"), read_committed=False, first_bytes=1 << 20)
        for offset, timestamp in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    return rows, meter


def bytes_of(meter: Meter, *verbs: str) -> int:
    return sum(c.bytes for verb, c in meter.snapshot().items() if verb in verbs)


def log_sizes(store: ObjectStore) -> list[int]:
    return [meta.size for meta in store.list("") if meta.key.endswith(".log")]


def flat(segments: Sequence[Sequence[Sequence[int]]]) -> list[int]:
    return [time for batches in segments for times in batches for time in times]


def matching(segments: Sequence[Sequence[Sequence[int]]], times: Ranges) -> list[tuple[int, int]]:
    return [(offset, t) for offset, t in enumerate(flat(segments)) if bounding_range(times, t, t + 1)]


def filtered(rows: list[tuple[int, int]], times: Ranges) -> list[tuple[int, int]]:
    return [row for row in rows if bounding_range(times, row[1], row[1] + 1)]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[FolderStore, list[list[list[int]]]]:
    """32 MB in 100 segments, in order of time."""
    store, times = FolderStore(str(tmp_path_factory.mktemp("many"))), times_in_order(100, 40)
    made(store, times)
    return store, times


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> tuple[FolderStore, list[list[list[int]]]]:
    """96 MB in one segment, in order of time."""
    store, times = FolderStore(str(tmp_path_factory.mktemp("one"))), times_in_order(1, 12_000)
    made(store, times)
    return store, times


@pytest.mark.parametrize("world", ["many", "one"])
@pytest.mark.parametrize("at", [0.0, 0.37, 0.5, 0.99])
@pytest.mark.slow
def test_a_window_of_one_percent_reads_less_than_three_percent(world: str, at: float, request: pytest.FixtureRequest) -> None:
    store, times = request.getfixturevalue(world)
    all_times = flat(times)
    low = all_times[int(at * len(all_times))]
    window: Ranges = ((low, low + (all_times[-1] - T0) // 100),)
    rows, meter = read(store, options(store), Pushdown(times_ms=window))
    assert filtered(rows, window) == matching(times, window)
    total = sum(log_sizes(store))
    assert bytes_of(meter, "get_range") < 0.03 * total
    assert bytes_of(meter, "get_range", "get") < 0.04 * total


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_times_out_of_order_lose_no_row(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    spread = (50, 3_000, 100_000)[seed % 3]
    times = [[[t + r.randrange(-spread, spread) for t in batch] for batch in segment] for segment in times_in_order(6, 30)]
    store = FolderStore(str(tmp_path))
    made(store, times)
    for _ in range(12):
        low, high = sorted(r.choice(flat(times)) + r.randrange(-2, 3) for _ in range(2))
        window: Ranges = ((low, high),)
        rows, _ = read(store, options(store, bytesPerSplit="50000"), Pushdown(times_ms=window))
        assert filtered(rows, window) == matching(times, window)
        assert len(rows) == len(set(rows))


def test_several_moments_read_no_more_than_their_segments(many: tuple[FolderStore, list[list[list[int]]]]) -> None:
    store, times = many
    moments = [flat(times)[n] for n in (5, 16_000, 31_999)]
    wanted: Ranges = tuple((t, t + 1) for t in moments)
    rows, meter = read(store, options(store), Pushdown(times_ms=wanted))
    assert [t for _, t in filtered(rows, wanted)] == moments
    assert bytes_of(meter, "get_range") < 3 * 400_000


def test_offsets_that_are_not_wanted_are_not_read(one: tuple[FolderStore, list[list[list[int]]]]) -> None:
    store, _ = one
    rows, meter = read(store, options(store), Pushdown(offsets=((50_000, 50_003), (50_100, 50_101))))
    assert rows[0][0] == 50_000
    assert rows[-1][0] == 50_100
    assert bytes_of(meter, "get_range") < 1_000_000


def test_what_no_record_can_be_costs_manifests_and_nothing_else(many: tuple[FolderStore, list[list[list[int]]]]) -> None:
    store, _ = many
    for nothing in (Pushdown(times_ms=((0, 5),)), Pushdown(times_ms=()), Pushdown(offsets=()), Pushdown(topics=frozenset(["x"]))):
        rows, meter = read(store, options(store), nothing)
        assert rows == []
        assert "get_range" not in meter.snapshot()


def test_planning_asks_for_no_index_unless_a_window_begins_or_ends_in_a_segment(
    many: tuple[FolderStore, list[list[list[int]]]],
) -> None:
    store, times = many
    for wanted, indexes in (
        (Pushdown(), 0),
        (Pushdown(offsets=((100, 20_000),)), 0),
        (Pushdown(times_ms=((times[3][0][0], times[9][0][0]),)), 0),
        (Pushdown(times_ms=((times[3][5][0], times[9][7][0]),)), 2),
    ):
        meter = Meter()
        plan_splits(Instrumented(store, meter, stopwatch), options(store, bytesPerSplit="100000"), wanted)
        counted = meter.snapshot()
        assert (counted["get_range"].calls if "get_range" in counted else 0) == indexes
        assert sum(c.calls for c in counted.values()) <= 5 + indexes


def test_the_report_of_a_plan_says_what_is_left_to_read(many: tuple[FolderStore, list[list[list[int]]]]) -> None:
    store, times = many
    report = plan_report(store, options(store), Pushdown(times_ms=((times[3][0][0], times[4][0][0]),)))
    assert (report.partitions, report.segments, report.segments_of) == (1, 1, 100)
    assert report.bytes_of == sum(log_sizes(store))
    assert report.bytes == log_sizes(store)[3]
    assert report.splits == 1
    assert 0 < report.requests < 8
