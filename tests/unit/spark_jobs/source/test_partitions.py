"""The splits of a read: each offset once, within the bounds asked for, planned from manifests."""

import json
from itertools import pairwise

import pytest
from golden_logs import live

from local_log.errors import NotFound, OffsetOutOfRange
from remote.store.api import ObjectStore
from remote.store.open import open_store
from spark_jobs.errors import OptionError
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import Split, plan_splits


@pytest.fixture
def store(archive: str) -> ObjectStore:
    return open_store(archive)


def splits(store: ObjectStore, *topics: str, **options: object) -> tuple[Split, ...]:
    given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    return plan_splits(store, parse({"archive": store.url, "subscribe": ",".join(topics), **given}))


def ranges(found: tuple[Split, ...]) -> list[tuple[int, int]]:
    return [(s.span.start, s.span.end) for s in found]


def test_a_segment_is_a_split_and_splits_follow_topics_and_offsets(store: ObjectStore) -> None:
    found = splits(store, "g-txn", "g-codec-none")
    assert [(s.topic, s.partition) for s in found] == [("g-txn", 0)] * 3 + [("g-codec-none", 0)] * 2
    assert ranges(found) == [(0, 102), (102, 2683), (2683, 2744), (0, 1657), (1657, 2500)]


def test_a_log_that_was_trimmed_starts_at_its_log_start_offset(store: ObjectStore) -> None:
    assert ranges(splits(store, "g-trimmed")) == [(1234, 2222), (2222, 3000)]
    assert ranges(splits(store, "g-trimmed", startingOffsets={"g-trimmed": {"0": -2}})) == [(1234, 2222), (2222, 3000)]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 2500, [(0, 1657), (1657, 2500)]),
        (1000, 1001, [(1000, 1001)]),
        (1656, 1658, [(1656, 1657), (1657, 1658)]),
        (1657, 2500, [(1657, 2500)]),
        (0, 1657, [(0, 1657)]),
        (-2, -1, [(0, 1657), (1657, 2500)]),
    ],
)
def test_offsets_bound_a_read_the_end_not_included(
    store: ObjectStore, start: int, end: int, expected: list[tuple[int, int]]
) -> None:
    bounds = {"startingOffsets": {"g-codec-none": {"0": start}}, "endingOffsets": {"g-codec-none": {"0": end}}}
    assert ranges(splits(store, "g-codec-none", **bounds)) == expected


@pytest.mark.parametrize("parts", [None, 1, 4])
@pytest.mark.parametrize(("start", "end"), [(5, 5), (1657, 1657), (2500, 2500)])
def test_a_range_without_offsets_has_no_splits(store: ObjectStore, start: int, end: int, parts: int | None) -> None:
    bounds = {"startingOffsets": {"g-codec-none": {"0": start}}, "endingOffsets": {"g-codec-none": {"0": end}}}
    assert splits(store, "g-codec-none", **bounds, **({"minPartitions": parts} if parts else {})) == ()


@pytest.mark.parametrize("topic", ["g-codec-none", "g-trimmed", "g-appendtime", "g-mixed"])
def test_timestamps_bound_a_read_where_kafka_would(store: ObjectStore, topic: str) -> None:
    answers = live(f"{topic}-0")["offset_for_timestamp"]
    last = live(f"{topic}-0")["latest"][0]
    for asked, offset, *_ in answers[::9]:
        started = splits(store, topic, startingTimestamp=asked, startingOffsetsByTimestampStrategy="latest")
        assert (ranges(started)[0][0] if started else last) == (last if offset < 0 else offset)
        ended = splits(store, topic, endingTimestamp=asked)
        assert (ranges(ended)[-1][1] if ended else live(f"{topic}-0")["earliest"][0]) == (last if offset < 0 else offset)


def test_a_timestamp_comes_before_offsets(store: ObjectStore) -> None:
    asked, offset, *_ = live("g-codec-none-0")["offset_for_timestamp"][40]
    found = splits(store, "g-codec-none", startingTimestamp=asked, startingOffsets={"g-codec-none": {"0": 2499}})
    assert ranges(found)[0][0] == offset != 2499


def test_a_start_after_every_record_is_refused_unless_latest_is_asked_for(store: ObjectStore) -> None:
    with pytest.raises(OptionError, match=r"startingTimestamp 4000000000000: g-codec-none-0 .*Strategy to latest"):
        splits(store, "g-codec-none", startingTimestamp=4000000000000)
    assert splits(store, "g-codec-none", startingTimestamp=4000000000000, startingOffsetsByTimestampStrategy="latest") == ()


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 64, 1000, 5000])
@pytest.mark.parametrize("topics", [("g-codec-none",), ("g-txn", "g-tiny", "g-codec-zstd")])
def test_min_partitions_gives_that_many_splits_if_there_are_offsets_for_them_and_each_offset_once(
    store: ObjectStore, topics: tuple[str, ...], parts: int
) -> None:
    whole, divided = splits(store, *topics), splits(store, *topics, minPartitions=parts)
    offsets = sum(s.span.end - s.span.start for s in whole)
    assert len(divided) >= min(parts, offsets)
    assert all(s.span.start < s.span.end for s in divided)
    for topic in topics:
        of_topic = [s for s in divided if s.topic == topic]
        wanted = ranges(tuple(s for s in whole if s.topic == topic))
        assert (of_topic[0].span.start, of_topic[-1].span.end) == (wanted[0][0], wanted[-1][1])
        assert all(a.span.end == b.span.start for a, b in pairwise(of_topic))
        assert all(s.span.entry.base_offset <= s.span.start and s.span.end <= s.span.entry.end_offset for s in of_topic)


def test_a_split_carries_no_more_of_the_manifest_than_its_segment(store: ObjectStore) -> None:
    assert all(s.manifest.entries == (s.span.entry,) for s in splits(store, "g-txn"))


def test_a_topic_that_is_not_archived_is_not_found_and_others_are_named(store: ObjectStore) -> None:
    with pytest.raises(NotFound, match=r"g-nowhere is not in the archive .*g-codec-none"):
        splits(store, "g-nowhere")


def test_a_topic_of_which_nothing_is_archived_yet_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(NotFound, match=r"nothing of topic g-empty is in the archive .* yet"):
        splits(store, "g-empty")


def test_offsets_that_leave_a_partition_out_are_refused(store: ObjectStore) -> None:
    with pytest.raises(OptionError, match="endingOffsets has no offset for g-txn-0"):
        splits(store, "g-txn", endingOffsets={"g-txn": {"1": 1}})


@pytest.mark.parametrize(
    ("topic", "bounds", "message"),
    [
        ("g-codec-none", {"startingOffsets": {"g-codec-none": {"0": 2501}}}, r"offset 2501 is outside \[0, 2500\)"),
        ("g-codec-none", {"endingOffsets": {"g-codec-none": {"0": 2501}}}, r"offset 2501 is outside \[0, 2500\)"),
        ("g-trimmed", {"startingOffsets": {"g-trimmed": {"0": 1233}}}, r"offset 1233 is outside \[1234, 3000\)"),
    ],
)
def test_offsets_that_are_not_there_are_data_loss_unless_that_is_allowed(
    store: ObjectStore, topic: str, bounds: dict[str, object], message: str
) -> None:
    with pytest.raises(OffsetOutOfRange, match=message):
        splits(store, topic, **bounds)
    allowed = splits(store, topic, **bounds, failOnDataLoss="false")
    assert allowed == (() if "2501" in message and "startingOffsets" in bounds else splits(store, topic))
