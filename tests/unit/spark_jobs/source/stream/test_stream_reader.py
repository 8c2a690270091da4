"""The stream reader, asked as Spark asks it: offsets first, then what lies between them."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock
from growing import GrowingArchive
from keyed_logs import KeyedLog
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from replaced import run

from local_log.errors import NotFound, OffsetOutOfRange
from remote.archive import create_archive, newest_manifests
from remote.clock import RandomIds, SystemClock
from remote.keys import PartitionPath
from remote.manifest.losses import Seen, local_deletions_recorded, source_gone
from remote.manifest.model import never_archived
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter, claim
from remote.manifest.transitions import first_seen, source_seen, topic_deleted
from remote.manifest.truncation import truncation
from remote.read.plan import MissingRange
from remote.store.open import Meter, open_store
from spark_jobs.source.stream import reader as stream_reader
from spark_jobs.source.stream.options import parse_stream
from spark_jobs.source.stream.plan import DataLoss
from spark_jobs.source.stream.reader import StreamReader

TOPIC = "g-codec-none"
Json = dict[str, Any]


@pytest.fixture
def growing(tmp_path: Path) -> GrowingArchive:
    """Twelve segments of 2500 records, of which four are archived."""
    made = GrowingArchive(tmp_path, TOPIC)
    made.grow(4)
    return made


def reader(archive: GrowingArchive, clock: FixedClock | None = None, **options: str) -> StreamReader:
    known = {"archive": archive.url, "subscribe": TOPIC, "startingOffsets": "earliest"}
    if "assign" in options or "subscribePattern" in options:
        del known["subscribe"]
    return StreamReader(parse_stream({**known, **options}), ("partition", "offset"), clock)


def offsets(stream: StreamReader, start: Json, end: Json, partition: int = 0) -> list[int]:
    """What the tasks of a micro-batch read, sorted; each of them with a reader of its own."""
    found = [row for p in stream.partitions(start, end) for batch in stream.read(p) for row in batch.to_pylist()]
    return sorted(row["offset"] for row in found if row["partition"] == partition)


def at(offsets: Json) -> dict[str, int]:
    numbers: dict[str, int] = offsets.get(TOPIC, {})
    return numbers


def topic_id_of(offsets: Json) -> str:
    return next(name.partition("@")[2] for name in offsets if name.startswith(f"{TOPIC}@"))


ALL = ReadAllAvailable()


def test_it_follows_the_archive_and_every_offset_comes_once(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.initialOffset()
    first = stream.latestOffset(start, ALL)
    assert (at(start), at(first)) == ({"0": 0}, {"0": growing.bases[4]})
    assert stream.latestOffset(first, ALL) == first
    growing.grow(9)
    second = stream.latestOffset(first, ALL)
    assert at(second) == {"0": growing.bases[9]}
    assert stream.reportLatestOffset() == second
    assert offsets(stream, start, first) + offsets(stream, first, second) == list(range(growing.bases[9]))
    assert stream.partitions(second, second) == []


def test_a_reader_after_a_restart_reads_the_same_between_the_same_offsets(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(700))
    growing.grow(7)
    assert offsets(reader(growing), start, end) == offsets(stream, start, end) == list(range(700))


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({"startingOffsets": "latest"}, 896),
        ({"startingOffsets": '{"g-codec-none":{"0":17}}'}, 17),
        ({"startingOffsets": '{"g-codec-none":{"0":-1}}'}, 896),
        ({"startingOffsets": '{"g-codec-none":{"0":-2}}'}, 0),
        ({"startingTimestamp": "0"}, 0),
        ({"startingTimestamp": "9000000000000", "startingOffsetsByTimestampStrategy": "latest"}, 896),
        ({"startingOffsets": "latest", "assign": '{"g-codec-none":[0]}'}, 896),
        ({"subscribePattern": "g-codec-.*"}, 0),
        ({"stopAtOffsets": '{"g-codec-none":{"0":5}}', "startingOffsets": "latest"}, 5),
    ],
)
def test_a_new_query_starts_where_it_is_told_to(growing: GrowingArchive, options: dict[str, str], start: int) -> None:
    assert growing.bases[4] == 896
    assert at(reader(growing, **options).initialOffset()) == {"0": start}


def test_the_first_micro_batch_begins_where_its_end_was_planned_from_though_spark_asks_for_the_start_again(
    growing: GrowingArchive,
) -> None:
    stream = reader(growing, startingOffsets="latest")
    start = stream.initialOffset()
    growing.grow(6)
    end = stream.latestOffset(start, ALL)
    growing.grow(9)
    for again in (stream, reader(growing, startingOffsets="latest")):
        assert offsets(again, again.initialOffset(), end) == list(range(growing.bases[4], growing.bases[6]))
    second = stream.latestOffset(end, ALL)
    assert offsets(stream, end, second) == list(range(growing.bases[6], growing.bases[9]))
    assert [name for name in end if name.startswith("@")] == [f"@{TOPIC}@{topic_id_of(end)}-0=896"]
    assert not any(name.startswith("@") for name in second)


def test_what_retention_took_of_the_first_micro_batch_before_it_was_committed_is_a_loss(growing: GrowingArchive) -> None:
    stream = reader(growing)
    end = stream.latestOffset(stream.initialOffset(), ALL)
    growing.retain(growing.bases[2])
    restarted = reader(growing)
    start = restarted.initialOffset()
    assert at(start) == {"0": growing.bases[2]}
    with pytest.raises(DataLoss, match=rf"has not read offsets \[0, {growing.bases[2]}\)"):
        restarted.partitions(start, end)


def test_a_topic_made_anew_before_the_first_micro_batch_is_another_one(growing: GrowingArchive) -> None:
    stream = reader(growing, startingOffsets="latest")
    start = stream.initialOffset()
    growing.delete_topic()
    growing.grow(2, topic_id="n" * 22)
    end = stream.latestOffset(start, ALL)
    again = reader(growing, startingOffsets="latest")
    with pytest.raises(DataLoss, match=r"from 896 on, .* topic g-codec-none was deleted and created again"):
        again.partitions(again.initialOffset(), end)
    lenient = reader(growing, startingOffsets="latest", failOnDataLoss="false")
    assert offsets(lenient, lenient.initialOffset(), end) == list(range(growing.bases[2]))


def test_a_first_micro_batch_that_has_to_wait_is_empty_wherever_the_query_would_begin_now(growing: GrowingArchive) -> None:
    stream = reader(growing, FixedClock(0), startingOffsets="latest", minOffsetsPerTrigger="500")
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    growing.grow(9)
    assert stream.partitions(stream.initialOffset(), end) == []
    assert at(stream.latestOffset(end, ALL)) == {"0": growing.bases[9]}


def test_a_start_outside_of_the_archive_is_refused_unless_data_loss_is_allowed(growing: GrowingArchive) -> None:
    too_late = {"startingOffsets": '{"g-codec-none":{"0":897}}'}
    with pytest.raises(OffsetOutOfRange, match=r"offset 897 is outside \[0, 896\)"):
        reader(growing, **too_late).initialOffset()
    assert at(reader(growing, failOnDataLoss="false", **too_late).initialOffset()) == {"0": 896}


def test_a_topic_that_is_not_there_is_refused_at_the_start(growing: GrowingArchive) -> None:
    with pytest.raises(NotFound, match="topic g-nothing is not in the archive"):
        reader(growing, subscribe="g-nothing").initialOffset()


def test_an_idle_question_costs_listings_and_no_object(growing: GrowingArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Meter()
    monkeypatch.setattr(stream_reader, "open_store", lambda url: open_store(url, meter=meter))
    growing.grow(4, partition=1)
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    before = Counter({verb: counts.calls for verb, counts in meter.snapshot().items()})
    assert stream.latestOffset(start, ALL) == start
    after = Counter({verb: counts.calls for verb, counts in meter.snapshot().items()})
    assert after - before == {"list_folders": 2, "list": 2}  # ids and partitions of the topic, and the newest of two manifests


def test_a_limit_is_shared_among_partitions_and_reached_in_the_end(growing: GrowingArchive) -> None:
    growing.grow(2, partition=1)  # 446 beside 896
    stream = reader(growing, maxOffsetsPerTrigger="300")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(300)
    seen = [stream.initialOffset()]
    while (end := stream.latestOffset(seen[-1], limit)) != seen[-1]:
        seen.append(end)
    assert at(seen[1]) == {"0": 200, "1": 99}  # 300 × 896 / 1342, 300 × 446 / 1342
    assert at(seen[-1]) == {"0": 896, "1": 446}
    assert len(seen) == 6
    for partition, end in ((0, 896), (1, 446)):
        found = [o for a, b in pairwise(seen) for o in offsets(stream, a, b, partition)]
        assert found == list(range(end))


def test_all_means_all_whatever_the_options_say(growing: GrowingArchive) -> None:
    stream = reader(growing, maxOffsetsPerTrigger="10", minOffsetsPerTrigger="5")
    assert at(stream.latestOffset(stream.initialOffset(), ALL)) == {"0": 896}


def test_a_micro_batch_waits_for_enough_offsets_but_not_for_ever(growing: GrowingArchive) -> None:
    clock = FixedClock()
    stream = reader(growing, clock, minOffsetsPerTrigger="300", maxOffsetsPerTrigger="600", maxTriggerDelay="10s")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMinRows(300)
    first = stream.latestOffset(stream.initialOffset(), limit)
    assert at(first) == {"0": 600}
    assert stream.latestOffset(first, limit) == first  # 296 are left
    clock.now += 9_999
    assert stream.latestOffset(first, limit) == first
    clock.now += 1
    second = stream.latestOffset(first, limit)
    assert at(second) == {"0": 896}
    growing.grow(6)
    assert at(stream.latestOffset(second, limit)) == {"0": growing.bases[6]}  # 497 came at once


def test_available_now_reads_what_there_was_when_it_began_and_waits_for_nothing(growing: GrowingArchive) -> None:
    stream = reader(growing, FixedClock(), minOffsetsPerTrigger="500", maxOffsetsPerTrigger="600")
    limit = stream.getDefaultReadLimit()
    stream.prepareForTriggerAvailableNow()
    growing.grow(9)
    growing.grow(3, partition=1)
    seen = [stream.initialOffset()]
    while (end := stream.latestOffset(seen[-1], limit)) != seen[-1]:
        seen.append(end)
    assert at(seen[-1])["0"] == 896
    assert len(seen) == 3


def compacted_while_read(tmp_path: Path, loss: str) -> tuple[list[int], list[int]]:
    """What two micro-batches of a query read; between them the log was compacted, archived again and its old objects deleted."""
    (tmp_path / "logs").mkdir()
    log, url = KeyedLog(tmp_path / "logs"), str(tmp_path / "archive")
    (tmp_path / "archive").mkdir()
    store = open_store(url)
    create_archive(store, FixedClock(), CountingIds("c"))
    log.fill(6)
    run(store, log.reader(), "a")
    given = {"archive": url, "subscribe": "keyed", "startingOffsets": "earliest", "failOnDataLoss": loss}
    stream = StreamReader(parse_stream(given), ("partition", "offset"))
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    middle = stream.latestOffset(start, ReadMaxRows(6))
    first = offsets(stream, start, middle)
    log.clean()
    log.fill(1, begin=6)
    run(store, log.reader(), "b")
    (newest,) = newest_manifests(store, "keyed")
    for waiting in newest.deleting:
        assert isinstance(waiting.item, SegmentEntry)
        store.delete(newest.path.segment(waiting.item.log_name))
        store.delete(newest.path.segment(waiting.item.aux_name))
    end = stream.latestOffset(middle, ReadMaxRows(10_000))
    assert stream.latestOffset(end, ALL) == end
    return first, offsets(stream, middle, end)


@pytest.mark.parametrize("loss", ["true", "false"])
def test_available_now_reads_each_micro_batch_from_the_segments_that_are_there_by_then(tmp_path: Path, loss: str) -> None:
    first, second = compacted_while_read(tmp_path, loss)
    assert first == [0, 1, 2, 3, 4, 5]
    assert second == [10, 21, 32, 43, 54, 62, 63, 64, 65]  # what compaction has left, and nothing that came after the start


def test_available_now_goes_on_with_the_topic_of_its_start_when_one_of_the_same_name_is_archived(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    growing.grow(2, topic_id="n" * 22)
    end = stream.latestOffset(start, ALL)
    assert topic_id_of(end) != "n" * 22
    assert offsets(stream, start, end) == list(range(896))


def test_a_micro_batch_of_available_now_costs_a_listing_for_each_partition_and_no_object(
    growing: GrowingArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter()
    monkeypatch.setattr(stream_reader, "open_store", lambda url: open_store(url, meter=meter))
    growing.grow(4, partition=1)
    stream = reader(growing)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    before = Counter({verb: counts.calls for verb, counts in meter.snapshot().items()})
    middle = stream.latestOffset(start, ReadMaxRows(600))
    assert Counter({verb: counts.calls for verb, counts in meter.snapshot().items()}) == before
    stream.partitions(start, middle)
    after = Counter({verb: counts.calls for verb, counts in meter.snapshot().items()})
    assert after - before == {"list_folders": 1, "list": 2}  # the partitions of the topic, and the newest of two manifests


def test_available_now_that_begins_at_latest_may_begin_behind_its_end(growing: GrowingArchive) -> None:
    stream = reader(growing, startingOffsets="latest")
    stream.prepareForTriggerAvailableNow()
    growing.grow(9)
    start = stream.initialOffset()
    assert at(start) == {"0": growing.bases[9]}
    assert at(stream.latestOffset(start, ALL)) == at(start)


def test_a_new_partition_is_read_from_its_first_offset(growing: GrowingArchive) -> None:
    stream = reader(growing, startingOffsets="latest")
    start = stream.initialOffset()
    growing.grow(2, partition=1)
    end = stream.latestOffset(start, ALL)
    assert at(end) == {"0": 896, "1": 446}
    assert offsets(stream, start, end, 1) == list(range(446))
    assert offsets(stream, start, end, 0) == []


def test_a_new_partition_whose_first_offsets_are_gone_is_a_loss(growing: GrowingArchive) -> None:
    start = reader(growing).latestOffset(reader(growing).initialOffset(), ALL)
    growing.grow(3, partition=1)
    growing.retain(446, partition=1)
    strict, lenient = reader(growing), reader(growing, failOnDataLoss="false")
    end = strict.latestOffset(start, ALL)
    with pytest.raises(DataLoss, match=r"g-codec-none-1: this stream has not read offsets \[0, 446\)"):
        strict.partitions(start, end)
    assert offsets(lenient, start, end, 1) == list(range(446, 679))


def test_what_retention_took_before_it_was_read_is_a_loss_that_says_what_to_do(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ReadMaxRows(100))
    growing.retain(446)
    end = stream.latestOffset(start, ALL)
    with pytest.raises(DataLoss) as caught:
        stream.partitions(start, end)
    assert (caught.value.partition, caught.value.start, caught.value.end) == ("g-codec-none-0", 100, 446)
    assert "start the query again from its checkpoint with failOnDataLoss=false" in str(caught.value)
    assert offsets(reader(growing, failOnDataLoss="false"), start, end) == list(range(446, 896))


def test_a_micro_batch_that_retention_took_whole_is_empty_where_loss_is_allowed(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(100))
    growing.retain(446)
    assert reader(growing, failOnDataLoss="false").partitions(start, end) == []
    with pytest.raises(DataLoss, match=r"offsets \[0, 100\)"):
        reader(growing).partitions(start, end)


def test_what_retention_takes_behind_the_stream_is_nobodys_loss(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ReadMaxRows(500))
    growing.retain(446)
    assert offsets(stream, start, stream.latestOffset(start, ALL)) == list(range(500, 896))


def test_a_gap_in_the_archive_ends_the_query_or_is_passed_over(tmp_path: Path) -> None:
    growing = GrowingArchive(tmp_path, TOPIC)
    growing.grow(6, without=[2])
    stream = reader(growing)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    low, high = growing.bases[2:4]
    with pytest.raises(MissingRange, match=rf"the archive lacks offsets \[{low}, {high}\)"):
        stream.partitions(start, end)
    there = [o for o in range(growing.bases[6]) if not low <= o < high]
    assert offsets(reader(growing, failOnDataLoss="false"), start, end) == there


def test_a_deleted_topic_is_a_loss_and_is_passed_over_where_that_is_allowed(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ReadMaxRows(10))
    growing.delete_topic()
    end = stream.latestOffset(start, ALL)
    assert end == {}
    with pytest.raises(DataLoss, match=r"g-codec-none-0: .* from 10 on, .* the partition is gone from the archive"):
        stream.partitions(start, end)
    lenient = reader(growing, failOnDataLoss="false")
    assert lenient.partitions(start, end) == []
    assert lenient.latestOffset(end, ALL) == end


def test_a_topic_made_anew_under_the_same_name_is_another_one_and_read_from_its_first_offset(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    growing.delete_topic()
    growing.grow(9, topic_id="B" * 22)  # its end is past the place that the stream had reached: offsets alone tell nothing
    end = stream.latestOffset(start, ALL)
    assert end == {TOPIC: {"0": growing.bases[9]}, f"{TOPIC}@{'B' * 22}": {}}
    with pytest.raises(DataLoss, match="topic g-codec-none was deleted and created again"):
        stream.partitions(start, end)
    assert offsets(reader(growing, failOnDataLoss="false"), start, end) == list(range(growing.bases[9]))


def test_a_partition_of_which_nothing_is_archived_stays_when_its_loss_is_none_any_more(growing: GrowingArchive) -> None:
    """A broker that gave its replica up has it again: until then its offsets had counted as lost, and readers were told."""
    store, ids = open_store(growing.url), RandomIds()
    topic_id = topic_id_of(reader(growing).initialOffset())
    path = PartitionPath(TOPIC, topic_id, 1)
    writer = ManifestWriter(store, path, SystemClock(), ids, "a", 0)
    first = writer.commit(never_archived(TOPIC, topic_id, 1, 0), lambda m: first_seen(m, "a", 0, 5))
    gone = writer.commit(first, lambda m: source_gone(m, "a", 5, 1))
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    assert at(start) == {"0": growing.bases[4], "1": 0}
    back = Seen("a", 0, ((0, 5),))
    there = writer.commit(gone, lambda m: local_deletions_recorded(source_seen(m, "a", 0, 5), back, 2))
    end = stream.latestOffset(start, ALL)
    assert end == start
    assert offsets(stream, start, end, partition=1) == []
    writer.commit(there, lambda m: topic_deleted(m, 3))
    with pytest.raises(DataLoss, match=r"g-codec-none-1: .* the partition is gone from the archive"):
        stream.partitions(start, stream.latestOffset(start, ALL))


def test_an_archive_that_ends_earlier_than_it_did_is_waited_for(growing: GrowingArchive, tmp_path: Path) -> None:
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    again = GrowingArchive(tmp_path / "again", TOPIC)
    again.grow(2)
    behind = reader(again)
    assert behind.latestOffset(start, ALL) == start
    again.grow(6)
    assert offsets(behind, start, behind.latestOffset(start, ALL)) == list(range(896, again.bases[6]))


def test_a_micro_batch_that_the_archive_does_not_hold_any_more_is_a_loss(growing: GrowingArchive, tmp_path: Path) -> None:
    stream = reader(growing)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    again = GrowingArchive(tmp_path / "again", TOPIC)
    again.grow(2)
    with pytest.raises(DataLoss, match=r"offsets \[446, 896\).* has been read up to 896 before, and ends at 446 now"):
        reader(again).partitions(start, end)


def given_up(archive: GrowingArchive, fork: int, again: int) -> None:
    """The archive gives its history up from `fork` on, and offsets up to the segment `again` are archived of another one."""
    store, ids = open_store(archive.url), RandomIds()
    before = newest_manifests(store, TOPIC)[0]
    step = truncation(before, fork, lambda ref: (), ids.new_id)
    writer = claim(store, before, SystemClock(), ids, "tests")
    writer.commit(before, lambda m: replace(step, planned_on=m.put_id).applied(m, "k" * 22, SystemClock().now_ms()))
    archive.grow(again)


def test_another_history_of_what_a_stream_has_read_is_told_and_passed_over_where_that_is_allowed(growing: GrowingArchive) -> None:
    stream = reader(growing)
    start = stream.latestOffset(stream.initialOffset(), ALL)
    given_up(growing, growing.bases[3], again=4)
    assert stream.latestOffset(start, ALL) == start
    growing.grow(6)
    for asked in (stream, reader(growing)):
        end = asked.latestOffset(start, ALL)
        with pytest.raises(DataLoss, match=r"a history that the archive gave up, .* at 679; to") as caught:
            asked.partitions(start, end)
        assert (caught.value.partition, caught.value.start, caught.value.end) == ("g-codec-none-0", 679, 896)
    lenient = reader(growing, failOnDataLoss="false")
    assert offsets(lenient, start, end) == list(range(896, growing.bases[6]))
    growing.grow(8)
    stream = reader(growing)
    assert offsets(stream, end, stream.latestOffset(end, ALL)) == list(range(growing.bases[6], growing.bases[8]))


def test_a_stream_that_has_not_come_to_where_histories_part_or_begins_later_reads_the_one_that_is_there(
    growing: GrowingArchive,
) -> None:
    behind = reader(growing)
    start = behind.latestOffset(behind.initialOffset(), ReadMaxRows(600))
    given_up(growing, growing.bases[3], again=6)
    assert offsets(behind, start, behind.latestOffset(start, ALL)) == list(range(600, growing.bases[6]))
    later = reader(growing, startingOffsets="latest")
    begun = [later.initialOffset()]
    for segments in (8, 10):
        growing.grow(segments)
        begun.append(later.latestOffset(begun[-1], ALL))
    found = [o for a, b in pairwise(begun) for o in offsets(later, a, b)]
    assert found == list(range(growing.bases[6], growing.bases[10]))


def test_a_stream_that_stops_reads_up_to_there_and_only_the_partitions_that_it_names(growing: GrowingArchive) -> None:
    growing.grow(2, partition=1)
    stream = reader(growing, stopAtOffsets='{"g-codec-none":{"0":1000}}')
    start = stream.initialOffset()
    first = stream.latestOffset(start, ALL)
    assert (at(start), at(first)) == ({"0": 0}, {"0": 896})
    growing.grow(9)
    second = stream.latestOffset(first, ALL)
    assert at(second) == {"0": 1000}
    assert offsets(stream, first, second) == list(range(896, 1000))
    growing.grow(11)
    assert stream.latestOffset(second, ALL) == second


def test_compacted_logs_are_followed_over_their_holes(tmp_path: Path) -> None:
    growing = GrowingArchive(tmp_path, "g-compacted", 8)
    growing.grow(1)
    options = {"archive": growing.url, "subscribe": "g-compacted", "startingOffsets": "earliest"}
    stream = StreamReader(parse_stream(options), ("offset", "partition"))
    batches = [stream.initialOffset()]
    for segments in range(1, len(growing.bases)):
        growing.grow(segments)
        batches.append(stream.latestOffset(batches[-1], ALL))
    found = [o for a, b in pairwise(batches) for o in offsets(stream, a, b)]
    assert found == offsets(stream, batches[0], batches[-1])
    assert len(found) == len(set(found)) < growing.bases[-1]
