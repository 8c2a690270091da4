"""What a leader keeps as it is sent and what it writes anew, batch by batch."""

from typing import Any

import pyarrow as pa
import pytest
from hand_made import APPEND_TIME, DELETE_HORIZON, TRANSACTIONAL, batch, field, record
from hypothesis import given, settings
from hypothesis import strategies as st
from validated_batches import FIRST, NOW, PRODUCER, TIMES, appended, changed, every_codec, every_target, rows, sent, validated

from local_log.engine.append.validator import Rules, rules_of
from local_log.engine.config import read_config
from local_log.engine.errors import UnknownServerError
from local_log.engine.producers.state import Origin
from local_log.formats.compression import compress, inflate
from local_log.formats.control import ControlType
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.record import Codec, TimestampType
from local_log.formats.record_batch.few_records import write_marker
from local_log.formats.record_batch.header import read_batch_header
from local_log.formats.record_batch.writer import RECORDS

# --- kept ---


@every_codec
def test_a_batch_of_the_topic_s_codec_keeps_its_bytes_but_for_offset_and_epoch(codec: Codec) -> None:
    made = sent(codec, **PRODUCER)
    result = validated(made)
    assert result.records == changed(made, base_offset=FIRST, partition_leader_epoch=40)
    assert (result.is_rebuilt, result.records_rebuilt) == (False, 0)
    assert (result.max_timestamp, result.last_offset) == (NOW + 1, FIRST + 2)
    header, records = appended(result)
    assert [r["offset"] for r in records] == [FIRST, FIRST + 1, FIRST + 2]
    assert [r["timestamp"] for r in records] == list(TIMES)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (1_324, 10, 984, True)


@every_codec
def test_what_is_sent_is_not_written_to(codec: Codec) -> None:
    made = sent(codec)
    buffer = bytearray(made)
    validated(memoryview(buffer), append_time=True)
    assert buffer == made


@every_codec
def test_with_log_append_time_a_kept_batch_has_the_time_of_its_append(codec: Codec) -> None:
    made = sent(codec, rows(times=[1_234] * 3))
    result = validated(made, append_time=True)
    header, records = appended(result)
    assert len(result.records) == len(made)
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 1_234, NOW)
    assert [r["timestamp"] for r in records] == [NOW] * 3
    assert (result.max_timestamp, result.is_rebuilt) == (NOW, False)


@every_codec
def test_a_greatest_timestamp_that_the_header_lies_about_is_corrected(codec: Codec) -> None:
    result = validated(changed(sent(codec), max_timestamp=NOW + 999))
    assert appended(result)[0].max_timestamp == result.max_timestamp == NOW + 1


def test_attributes_that_mean_nothing_are_dropped_only_where_they_are_written_anew() -> None:
    unknown = changed(sent(), attributes=0xFF80)
    assert read_batch_header(validated(unknown).records).attributes == 0xFF80
    anew = read_batch_header(validated(unknown, append_time=True).records).attributes
    assert anew == APPEND_TIME


def test_a_delete_horizon_survives() -> None:
    made = changed(sent(), attributes=DELETE_HORIZON)
    result = validated(made, append_time=True)
    assert read_batch_header(result.records).attributes == APPEND_TIME | DELETE_HORIZON


def test_a_checksum_stays_as_it_is_where_nothing_under_it_changes() -> None:
    assert read_batch_header(validated(changed(sent(), crc=7)).records).crc == 7


@every_codec
def test_another_level_of_the_same_codec_changes_nothing(codec: Codec) -> None:
    words = [b"some text that is worth compressing " * 9] * 3
    made = sent(codec, rows(words), level={Codec.gzip: 9, Codec.lz4: 17, Codec.zstd: 19}.get(codec))
    low = {Codec.gzip: 1, Codec.lz4: 3, Codec.zstd: 1}.get(codec)
    assert validated(made, target=codec, level=low).records == changed(made, base_offset=FIRST, partition_leader_epoch=40)


@every_target
def test_a_marker_is_not_compressed(target: Codec) -> None:
    marker = write_marker(0, NOW, ControlType.COMMIT, producer_id=23_423, producer_epoch=5, coordinator_epoch=0)
    result = validated(marker, target=target, origin=Origin.COORDINATOR)
    assert result.records == changed(marker, base_offset=FIRST, partition_leader_epoch=40)


@every_codec
def test_a_batch_without_records_that_no_client_wrote_is_kept(codec: Codec) -> None:
    made = batch(attributes=codec, count=0, last_delta=4)
    result = validated(made, origin=Origin.COORDINATOR)
    assert read_batch_header(result.records).last_offset == result.last_offset == FIRST - 1
    assert result.max_timestamp == -1


def test_offsets_within_an_uncompressed_batch_are_not_looked_at() -> None:
    made = batch(record(0), record(0), base_timestamp=NOW, max_timestamp=NOW)
    assert not validated(made).is_rebuilt


# --- rebuilt ---


@every_codec
@every_target
def test_another_codec_means_another_batch_of_the_same_records(codec: Codec, target: Codec) -> None:
    headers = [(b"a", None), (b"", b""), ("ä".encode(), b"1")]
    made = sent(codec, rows(headers=headers), **PRODUCER)
    result = validated(made, target=target)
    header, records = appended(result)
    assert result.is_rebuilt == (codec != target)
    assert result.records_rebuilt == (3 if codec != target else 0)
    assert (result.max_timestamp, result.last_offset) == (NOW + 1, FIRST + 2)
    assert (header.codec, header.base_timestamp, header.max_timestamp) == (target, NOW - 1, NOW + 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (1_324, 10, 984, True)
    assert (header.partition_leader_epoch, header.timestamp_type) == (40, TimestampType.CREATE_TIME)
    expected = [r | {"offset": r["offset"] + FIRST} for r in rows(headers=headers).to_pylist()]
    assert records == expected


def test_a_rebuilt_batch_is_compressed_at_the_topic_s_level() -> None:
    words = [b"%d" % n * n for n in range(300)]
    columns = rows(words, [NOW] * 300)
    for target, level in ((Codec.gzip, 1), (Codec.gzip, 9), (Codec.lz4, 12), (Codec.zstd, 5)):
        made = validated(sent(Codec.snappy, columns), target=target, level=level)
        assert made.records[BATCH_HEADER_BYTES:] == compress(target, sent(Codec.none, columns)[BATCH_HEADER_BYTES:], level)


@every_codec
def test_with_log_append_time_a_rebuilt_batch_keeps_the_records_own_times_under_it(codec: Codec) -> None:
    target = Codec.gzip if codec != Codec.gzip else Codec.none
    result = validated(sent(codec, rows(times=[5, 9, 7])), target=target, append_time=True)
    header, records = appended(result)
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 5, NOW)
    assert [r["timestamp"] for r in records] == [NOW] * 3
    assert (
        inflate(header.codec, result.records[BATCH_HEADER_BYTES:]) == sent(Codec.none, rows(times=[5, 9, 7]))[BATCH_HEADER_BYTES:]
    )
    assert result.max_timestamp == NOW


def test_a_compressed_batch_with_wrong_inner_offsets_is_rebuilt_where_it_would_be_anyway() -> None:
    made = batch(record(0), record(7), attributes=Codec.gzip, last_delta=1, base_timestamp=NOW, max_timestamp=NOW)
    result = validated(made, target=Codec.none)
    assert [r["offset"] for r in appended(result)[1]] == [FIRST, FIRST + 1]


def test_a_compressed_batch_with_wrong_inner_offsets_is_refused_where_it_would_be_kept() -> None:
    made = batch(record(0), record(7), attributes=Codec.gzip, last_delta=1, base_timestamp=NOW, max_timestamp=NOW)
    with pytest.raises(UnknownServerError):
        validated(made)


def test_a_rebuilt_batch_has_the_shortest_varints_and_one_kind_of_null() -> None:
    loose = b"\0" + b"\x80\0" + b"\x80\x80\0" + b"\x05" + b"\x82\x80\0" + b"v" + b"\x80\0"
    made = batch(field(loose), base_timestamp=NOW, max_timestamp=NOW)
    result = validated(made, target=Codec.gzip)
    assert inflate(Codec.gzip, result.records[BATCH_HEADER_BYTES:]) == record(key=None, value=b"v")


def test_a_header_s_name_that_is_not_text_becomes_text_where_the_batch_is_rebuilt() -> None:
    columns = rows(headers=[(b"\xff\xfen", b"\xff"), (b"fine", None)])
    assert [h["key"] for h in appended(validated(sent(Codec.none, columns)))[1][0]["headers"]] == [b"\xff\xfen", b"fine"]
    rebuilt = appended(validated(sent(Codec.none, columns), target=Codec.lz4))[1][0]["headers"]
    assert rebuilt == [{"key": "\ufffd\ufffdn".encode(), "value": b"\xff"}, {"key": b"fine", "value": None}]


def test_a_compressed_marker_that_is_rebuilt_is_no_marker() -> None:
    """So does Kafka; no coordinator compresses its markers."""
    made = sent(Codec.gzip, rows([b"\0\0\0\0\0\5"], [NOW], key=b"\0\0\0\1"), is_control=True)
    result = validated(made, target=Codec.none, origin=Origin.COORDINATOR)
    assert not appended(result)[0].is_control


def test_a_batch_without_records_that_is_rebuilt_is_nothing() -> None:
    made = batch(attributes=Codec.gzip, count=0, last_delta=4)
    result = validated(made, target=Codec.lz4, origin=Origin.COORDINATOR)
    assert (result.records, result.max_timestamp, result.last_offset) == (b"", -1, FIRST - 1)
    with pytest.raises(UnknownServerError):
        validated(made, target=Codec.lz4, origin=Origin.COORDINATOR, append_time=True)


UNBUILDABLE = {
    "a negative timestamp": {"base_timestamp": -5},
    "a transaction without a producer": {"attributes": TRANSACTIONAL},
    "a producer without an epoch": {"producer_id": 4, "base_sequence": 0},
}


@pytest.mark.parametrize("fault", UNBUILDABLE)
def test_what_kafka_cannot_build_a_batch_of_it_keeps_or_refuses(fault: str) -> None:
    made = changed(sent(Codec.none, rows([b"v"], [0])), **UNBUILDABLE[fault])
    assert not validated(made, before=2 * NOW).is_rebuilt
    with pytest.raises(UnknownServerError):
        validated(made, before=2 * NOW, target=Codec.gzip)


def test_a_log_s_settings_are_the_rules() -> None:
    assert rules_of(read_config({})) == Rules(None, None, False, False, 2**63 - 1, 3_600_000)
    settings = {
        "compression.type": "zstd",
        "compression.zstd.level": "7",
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": "5",
        "message.timestamp.after.max.ms": "6",
    }
    assert rules_of(read_config(settings)) == Rules(Codec.zstd, 7, True, True, 5, 6)
    assert rules_of(read_config({"compression.type": "uncompressed"})).codec == Codec.none
    assert rules_of(read_config({"compression.type": "snappy"})).level is None


# --- whatever is sent ---


binary = st.one_of(st.none(), st.binary(max_size=40))
headers = st.lists(st.tuples(st.text(max_size=6).map(str.encode), binary), max_size=3)
sendable = st.lists(st.tuples(st.integers(-1_000, 1_000), binary, binary, headers), min_size=1, max_size=12)


@settings(deadline=None, max_examples=100)
@given(made=sendable, codec=st.sampled_from(Codec), target=st.sampled_from([None, *Codec]), first=st.integers(0, 2**60))
@pytest.mark.slow
def test_whatever_is_sent_is_appended_record_for_record(made: Any, codec: Codec, target: Codec | None, first: int) -> None:
    records = [
        {"offset": n, "timestamp": NOW + t, "key": k, "value": v, "headers": [{"key": name, "value": data} for name, data in h]}
        for n, (t, k, v, h) in enumerate(made)
    ]
    result = validated(sent(codec, pa.RecordBatch.from_pylist(records, schema=RECORDS)), target=target, first=first)
    assert appended(result)[1] == [r | {"offset": r["offset"] + first} for r in records]
    assert result.max_timestamp == max(r["timestamp"] for r in records)
    assert result.last_offset == first + len(records) - 1
