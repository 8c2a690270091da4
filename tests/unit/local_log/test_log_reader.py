"""A partition's log: the offsets that bound it and what lies between them, as the broker that wrote it answered."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from golden_logs import broker_logs, expected_batches, expected_records, live, segments
from hand_made import batch, decoded, record
from read_logs import NAMED, break_, golden, hand_made, offsets_of
from small_logs import follow, opened, records

from local_log.errors import Corrupt, NoSuchFile, NotFound, OffsetOutOfRange
from local_log.formats.filenames import TopicPartition, offset_file
from local_log.formats.list_offsets import TimestampOffset
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.visible_records import record_batches
from local_log.log_reader import LogReader, open_log
from local_log.os_disk import OsDisk


def at(found: TimestampOffset | None) -> list[int]:
    return [-1, -1, -1] if found is None else [found.offset, found.timestamp, found.leader_epoch]


def test_the_offsets_that_bound_it_are_the_broker_s(broker: Path, partition: str) -> None:
    log, answers = golden(broker, partition), live(partition)
    assert log.log_start_offset == answers["earliest"][0] == answers["earliest_local"][0]
    assert log.high_watermark == log.log_end_offset == answers["latest"][0]
    assert log.last_stable_offset == answers["last_stable_offset"]
    assert at(log.at(log.log_start_offset)) == answers["earliest"]
    assert at(log.at(log.high_watermark)) == answers["latest"]


def test_timestamps_lead_to_the_offsets_that_the_broker_gave(broker: Path, partition: str) -> None:
    log, answers = golden(broker, partition), live(partition)
    assert at(log.latest_timestamp()) == answers["max_timestamp"]
    for asked, *answer in answers["offset_for_timestamp"]:
        assert at(log.offset_for_time(asked, log.log_start_offset, log.high_watermark)) == answer, asked


def test_a_log_of_older_messages_answers_as_kafka_does(legacy: Path, legacy_partition: str) -> None:
    log, answers = golden(legacy, legacy_partition), live(legacy_partition)
    assert at(log.at(log.log_start_offset)) == answers["earliest"]
    assert at(log.at(log.high_watermark)) == answers["latest"]
    assert log.log_end_offset == log.last_stable_offset == answers["last_stable_offset"]
    assert at(log.latest_timestamp()) == answers["max_timestamp"]
    for asked, *answer in answers["offset_for_timestamp"]:
        assert at(log.offset_for_time(asked, log.log_start_offset, log.high_watermark)) == answer, asked


def test_reading_older_messages_from_any_offset_gives_the_records_from_there(legacy: Path, legacy_partition: str) -> None:
    log = golden(legacy, legacy_partition)
    whole = offsets_of(log, 0, log.log_end_offset)
    assert len(whole) == len(expected_records(legacy_partition))
    for start in range(0, log.log_end_offset, 97):
        end = start + 61
        assert offsets_of(log, start, end) == [offset for offset in whole if start <= offset < end]


def test_an_active_segment_of_older_messages_ends_before_its_torn_tail(legacy: Path, tmp_path: Path) -> None:
    for name in ("g-v0-gzip-0", "g-v1-none-create-0", "g-upgraded-0"):
        lines = [line for line in expected_batches(name) if line["segment"] == f"{0:020d}.log"]
        data = dict(segments(legacy, name))[lines[0]["segment"]]
        before, last = lines[-2:]
        for left in (1, 12, 16, 17, 25, 26, 33, last["size"] - 1):
            open_it = hand_made(tmp_path, (0, data[: last["position"] + left]))
            assert open_it().log_end_offset == before["last_offset"] + 1


def test_read_uncommitted_gives_as_many_records_as_the_broker_gave(broker: Path, partition: str) -> None:
    log = golden(broker, partition)
    assert len(offsets_of(log, log.log_start_offset, log.high_watermark)) == live(partition)["read_uncommitted_count"]


@pytest.mark.slow
def test_reading_from_any_offset_gives_the_records_from_there(broker: Path, partition: str) -> None:
    log = golden(broker, partition)
    start, end = log.log_start_offset, log.high_watermark
    wholes = []
    for _, buffer in segments(broker, partition):
        batches, _ = scan(buffer)
        wholes.append(decoded(buffer, batches[~batches.is_control]))
    whole = pa.Table.from_batches(wholes).combine_chunks()
    offsets = whole.column("offset").to_pylist()
    for first in range(start, end + 1, 97):
        for last in (first + 150, end):
            found = list(record_batches(log.chunks(first, last), first, last))
            rows = [row for row, offset in enumerate(offsets) if first <= offset < last]
            expected = whole.slice(rows[0], len(rows)) if rows else whole.slice(0, 0)
            assert pa.Table.from_batches(found, whole.schema).equals(expected)


def test_offsets_outside_the_log_are_out_of_range(broker: Path, partition: str) -> None:
    log = golden(broker, partition)
    for offset in (log.log_start_offset - 1, log.log_end_offset + 1, -1, 2**62):
        with pytest.raises(OffsetOutOfRange) as caught:
            list(log.chunks(offset, offset + 10))
        assert (caught.value.partition, caught.value.offset) == (partition, offset)
        assert (caught.value.start, caught.value.end) == (log.log_start_offset, log.log_end_offset)
    assert offsets_of(log, log.log_end_offset, log.log_end_offset) == []


def test_the_log_start_offset_may_lie_inside_a_segment(broker: Path) -> None:
    log = golden(broker, "g-trimmed-0")
    assert (log.segments[0].base_offset, log.log_start_offset) == (0, 1234)
    assert offsets_of(log, 1234, 1240) == list(range(1234, 1240))


def test_the_topic_s_id_and_lineage_come_from_its_folder(broker: Path) -> None:
    log = golden(broker, "g-epochs-0")
    assert log.topic_id in (broker / "g-epochs-0" / "partition.metadata").read_text()
    assert [(e.epoch, e.start_offset) for e in log.leader_epochs] == [(0, 0), (2, 700), (4, 1400)]
    assert [log.at(offset).leader_epoch for offset in (0, 699, 700, 1399, 1400, 2100)] == [0, 0, 2, 2, 4, 4]


def test_a_folder_from_before_topics_had_ids_has_the_zero_id_and_no_lineage(tmp_path: Path) -> None:
    log = hand_made(tmp_path, (0, batch(record())))()
    assert (log.topic_id, log.leader_epochs) == (ZERO_TOPIC_ID, ())
    assert at(log.at(1)) == [1, -1, -1]


def test_a_folder_that_is_gone_has_no_topic_id(tmp_path: Path) -> None:
    """It is not that of a topic from before topic ids: the broker has moved or deleted the partition since it was listed."""
    log = hand_made(tmp_path, (0, batch(record())))()
    shutil.rmtree(log.folder)
    with pytest.raises(NoSuchFile):
        log.topic_id  # noqa: B018


@pytest.mark.parametrize(
    ("name", "ask"),
    [("partition.metadata", lambda log: log.topic_id), ("leader-epoch-checkpoint", lambda log: log.leader_epochs)],
)
def test_broken_files_beside_the_segments_are_corrupt_by_name(
    tmp_path: Path, name: str, ask: Callable[[LogReader], object]
) -> None:
    log = hand_made(tmp_path, (0, batch(record())))()
    (tmp_path / name).write_bytes(b"rubbish")
    with pytest.raises(Corrupt) as caught:
        ask(log)
    assert caught.value.file == str(tmp_path / name)


def test_a_folder_without_segments_is_an_empty_log(tmp_path: Path) -> None:
    log = hand_made(tmp_path)()
    assert (log.log_start_offset, log.high_watermark, log.last_stable_offset, log.log_end_offset) == (0, 0, 0, 0)
    assert log.latest_timestamp() is None
    assert list(log.chunks(0, 10)) == []


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_log(OsDisk(), str(tmp_path / "missing"), NAMED)


def test_a_segment_that_was_just_rolled_ends_where_it_starts(tmp_path: Path) -> None:
    log = hand_made(tmp_path, (0, batch(record(), record(1))), (2, b""))(high_watermark=2)
    assert (log.log_end_offset, log.high_watermark) == (2, 2)
    assert offsets_of(log, 0, 2) == [0, 1]


def test_without_a_checkpointed_high_watermark_nothing_is_known_to_be_replicated(tmp_path: Path) -> None:
    log = hand_made(tmp_path, (5, batch(record(), base_offset=5)))()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (5, 5, 6)


@pytest.mark.parametrize(("checkpointed", "expected"), [(0, 5), (5, 5), (6, 6), (7, 7), (8, 7), (100, 7)])
def test_the_high_watermark_stays_inside_the_log(tmp_path: Path, checkpointed: int, expected: int) -> None:
    log = hand_made(tmp_path, (5, batch(record(), record(1), base_offset=5)))(high_watermark=checkpointed)
    assert log.high_watermark == expected


def test_files_that_are_on_their_way_out_or_in_are_no_segments(tmp_path: Path) -> None:
    make = hand_made(tmp_path, (3, batch(record(), base_offset=3)))
    for name in ("log.deleted", "log.swap", "log.cleaned", "index.deleted"):
        (tmp_path / f"{0:020d}.{name}").write_bytes(b"rubbish")
    assert [segment.base_offset for segment in make().segments] == [3]


def test_a_log_cut_at_any_byte_of_its_last_batch_ends_before_it(tmp_path: Path) -> None:
    good = batch(record(), record(1))
    torn = batch(record(), base_offset=2)
    for cut in range(len(torn)):
        log = hand_made(tmp_path, (0, good + torn[:cut]))(high_watermark=3)
        assert (log.log_end_offset, log.high_watermark) == (2, 2)
        assert offsets_of(log, 0, 3) == [0, 1]


@pytest.mark.parametrize("left", [1.0, 0.99, 0.7, 0.3, 0.01, 0.0])
def test_a_torn_tail_in_the_active_segment_is_ignored_wherever_it_starts(tmp_path: Path, left: float) -> None:
    logs = broker_logs(tmp_path, "g-mixed-0")
    file = logs / "g-mixed-0" / offset_file(0, ".log")
    data = file.read_bytes()
    cut = int(len(data) * left)
    file.write_bytes(data[:cut])
    lines = [line for line in expected_batches("g-mixed-0") if line["position"] + line["size"] <= cut]
    log = golden(logs, "g-mixed-0")
    assert log.log_end_offset == log.high_watermark == (lines[-1]["last_offset"] + 1 if lines else 0)
    assert len(offsets_of(log, 0, 10**9)) == sum(line["count"] for line in lines)


@pytest.mark.parametrize("harm", [Path.unlink, break_], ids=["missing", "broken"])
@pytest.mark.parametrize("name", ["g-mixed-0", "g-txn-0", "g-epochs-0"])
def test_missing_or_broken_indexes_only_cost_reading(tmp_path: Path, name: str, harm: Callable[[Path], None]) -> None:
    logs, answers = broker_logs(tmp_path, name), live(name)
    for suffix in ("*.index", "*.timeindex"):
        for file in (logs / name).glob(suffix):
            harm(file)
    log = golden(logs, name)
    for asked, *answer in answers["offset_for_timestamp"][::10]:
        assert at(log.offset_for_time(asked, 0, answers["latest"][0])) == answer
    assert log.log_end_offset == answers["latest"][0]
    assert log.last_stable_offset == answers["last_stable_offset"]
    assert offsets_of(log, 0, log.last_stable_offset, committed=True) == answers["read_committed_offsets"]


def test_preallocated_indexes_of_a_broker_that_was_killed_give_the_same_answers(tmp_path: Path) -> None:
    logs, answers = broker_logs(tmp_path, "g-txn-0"), live("g-txn-0")
    for suffix, size in (("*.index", 8), ("*.timeindex", 12)):
        last = max((logs / "g-txn-0").glob(suffix))
        last.write_bytes(last.read_bytes() + bytes(10_000 * size))
    log = golden(logs, "g-txn-0")
    assert log.log_end_offset == answers["latest"][0]
    assert at(log.latest_timestamp()) == answers["max_timestamp"]
    for asked, *answer in answers["offset_for_timestamp"]:
        assert at(log.offset_for_time(asked, 0, log.high_watermark)) == answer


def test_a_segment_that_disappears_is_not_found(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path, "g-codec-none-0")
    log = golden(logs, "g-codec-none-0")
    assert log.log_end_offset == 2500
    reading = log.chunks(0, 2500)
    next(reading)
    (logs / "g-codec-none-0" / offset_file(1657, ".log")).unlink()
    with pytest.raises(NotFound):
        list(reading)
    shutil.rmtree(logs / "g-codec-none-0")
    with pytest.raises(NotFound):
        list(log.chunks(0, 10))


def test_a_corrupt_batch_is_placed_in_its_file(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path, "g-mixed-0")
    file = logs / "g-mixed-0" / offset_file(0, ".log")
    data, line = bytearray(file.read_bytes()), expected_batches("g-mixed-0")[9]
    data[line["position"] + line["size"] - 1] ^= 1
    file.write_bytes(data)
    log = golden(logs, "g-mixed-0")
    with pytest.raises(Corrupt, match="CRC") as caught:
        offsets_of(log, 0, log.high_watermark)
    assert (caught.value.file, caught.value.position) == (str(file), line["position"])


def test_a_log_is_a_picture_of_when_it_was_opened(tmp_path: Path) -> None:
    make = hand_made(tmp_path, (0, batch(record())))
    log = make(high_watermark=1)
    assert log.log_end_offset == 1
    (tmp_path / offset_file(0, ".log")).write_bytes(batch(record()) + batch(record(), base_offset=1))
    (tmp_path / offset_file(2, ".log")).write_bytes(b"")
    assert log.log_end_offset == 1
    assert len(log.segments) == 1
    assert make().log_end_offset == 2


def test_a_time_search_keeps_inside_the_asked_offsets(broker: Path) -> None:
    log = golden(broker, "g-mixed-0")
    times = {}
    for _, buffer in segments(broker, "g-mixed-0"):
        records = decoded(buffer, scan(buffer)[0])
        times |= dict(zip(records.column("offset").to_pylist(), records.column("timestamp").to_pylist(), strict=True))

    def hits(timestamp: int, start: int, end: int) -> Iterator[int]:
        return (offset for offset, time in times.items() if start <= offset < end and time >= timestamp)

    for start, end in ((0, 2319), (500, 501), (1000, 1700), (700, 700), (2318, 2319)):
        for timestamp in sorted(times.values())[::151]:
            found = log.offset_for_time(timestamp, start, end)
            assert (None if found is None else found.offset) == next(hits(timestamp, start, end), None)


def test_entries_that_a_truncation_has_left_in_the_active_segments_index_lead_nowhere(tmp_path: Path) -> None:
    log = opened(tmp_path / "t-0")
    follow(log, *(records(offset) for offset in range(20)))
    log.flush()
    log.truncate_to(4)
    follow(log, *(records(offset, value=b"longer" * 60) for offset in range(4, 9)))
    reader = open_log(OsDisk(), str(tmp_path / "t-0"), TopicPartition("t", 0))
    assert reader.log_end_offset == 9
    for offset in range(9):
        found = [base for chunk in reader.chunks(offset, 9) for base in chunk.batches.base_offset.tolist()]
        assert found[-1] == 8
        assert offset in found
