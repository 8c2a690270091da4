"""What a leader refuses: a request, a batch by its header, a batch by its records."""

from typing import Any

import pyarrow as pa
import pytest
from hand_made import batch, body, field, record
from hypothesis import given, settings
from hypothesis import strategies as st
from validated_batches import FIRST, NOW, PRODUCER, appended, changed, every_codec, every_target, rows, sent, validated

from local_log.engine.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, Refused, UnknownServerError
from local_log.engine.producers.state import Origin
from local_log.formats.compression import compress
from local_log.formats.control import ControlType
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.record import Codec, TimestampType
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.record_batch.few_records import write_marker
from local_log.formats.record_batch.header import read_batch_header

# --- refused: the request ---


@every_codec
@every_target
def test_a_request_has_one_batch(codec: Codec, target: Codec) -> None:
    with pytest.raises(InvalidRecord, match="more than one batch"):
        validated(sent(codec) + sent(codec), target=target)


def test_a_request_without_a_whole_batch_is_refused() -> None:
    for cut in (0, 5, 11, 16, 60, len(sent()) - 1):
        with pytest.raises(InvalidRecord, match="without a whole batch"):
            validated(sent()[:cut])


def test_bytes_that_are_no_batch_are_corrupt() -> None:
    for bad in (changed(sent(), batch_length=13), changed(sent(), batch_length=-1), changed(sent(), magic=3)):
        with pytest.raises(CorruptMessage):
            validated(bad)
    with pytest.raises(CorruptMessage, match="header"):
        validated(changed(sent(), batch_length=48)[:60])


def test_what_is_left_over_after_the_batch_is_kept_with_it() -> None:
    assert validated(sent() + b"rest").records.endswith(b"rest")


# --- refused: the header ---


@every_codec
@every_target
def test_a_client_s_batch_has_records(codec: Codec, target: Codec) -> None:
    made = batch(section=b"", count=0, last_delta=5, base_timestamp=-1, max_timestamp=NOW)
    with pytest.raises(InvalidRecord):
        validated(made, source=codec, target=target)


def test_a_client_s_batch_that_counts_right_is_accepted() -> None:
    validated(changed(sent(), last_offset_delta=2, records_count=3))


@pytest.mark.parametrize(("last_delta", "count"), [(0, 3), (15, 3), (-3, 3), (2, 0), (-1, 0), (2, -3)])
def test_a_client_s_batch_spans_as_many_offsets_as_it_has_records(last_delta: int, count: int) -> None:
    with pytest.raises(InvalidRecord, match=f"claims {count} records"):
        validated(changed(sent(), last_offset_delta=last_delta, records_count=count))


@every_codec
@pytest.mark.parametrize(("last_delta", "count"), [(5, 6), (1, 2)])
def test_a_batch_has_as_many_records_as_it_claims(last_delta: int, count: int, codec: Codec) -> None:
    made = changed(sent(codec), last_offset_delta=last_delta, records_count=count)
    for target in (codec, Codec.gzip, Codec.none):
        with pytest.raises(InvalidRecord, match=f"record 2 of {count}|record 3 of {count}"):
            validated(made, target=target)


def test_records_that_a_batch_claims_to_lack_are_refused_whoever_wrote_them() -> None:
    with pytest.raises(InvalidRecord, match="claims -1 records"):
        validated(changed(sent(), records_count=-1), origin=Origin.COORDINATOR)


def test_clients_write_no_control_batches() -> None:
    marker = write_marker(0, NOW, ControlType.ABORT, producer_id=23_423, producer_epoch=5, coordinator_epoch=0)
    with pytest.raises(InvalidRecord, match="control"):
        validated(marker)
    validated(marker, origin=Origin.COORDINATOR)


@every_codec
@every_target
def test_a_producer_s_batch_has_a_sequence_number(codec: Codec, target: Codec) -> None:
    made = changed(sent(codec, producer_id=1_234, producer_epoch=0, base_sequence=0), base_sequence=-2)
    with pytest.raises(InvalidRecord, match="sequence number -2"):
        validated(made, target=target)


def test_a_coordinator_is_held_to_no_rule_for_clients() -> None:
    made = changed(sent(), producer_id=4, base_sequence=-1, last_offset_delta=9)
    assert validated(made, origin=Origin.COORDINATOR).last_offset == FIRST + 2


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_refused(codec: int) -> None:
    with pytest.raises(UnknownServerError, match=f"codec {codec}"):
        validated(changed(sent(), attributes=codec))
    with pytest.raises(UnknownServerError, match=f"codec {codec}"):
        validated(changed(sent(), attributes=codec), source=Codec.none)


# --- refused: the records ---


@every_codec
@every_target
def test_a_compacted_topic_takes_no_record_without_a_key(codec: Codec, target: Codec) -> None:
    made = sent(codec, rows(times=[-1, -1, -1], key=None))
    with pytest.raises(InvalidRecord) as caught:
        validated(made, target=target, compacted=True)
    assert [e.row for e in caught.value.record_errors] == [0, 1, 2]
    assert all("key" in e.problem for e in caught.value.record_errors)
    validated(made, target=target)


@every_codec
@every_target
@pytest.mark.parametrize("time", [NOW - 1_001, NOW + 1_001, 0, 2**62])
def test_a_time_too_far_from_the_append_is_refused_with_the_record_s_place(codec: Codec, target: Codec, time: int) -> None:
    with pytest.raises(InvalidTimestamp) as caught:
        validated(sent(codec, rows(times=[NOW, time, time])), target=target)
    assert [e.row for e in caught.value.record_errors] == [1, 2]
    assert f"timestamp {time}, outside [{NOW - 1_000}, {NOW + 1_000}]" in caught.value.record_errors[0].problem


@every_codec
def test_a_time_as_far_from_the_append_as_may_be_is_accepted(codec: Codec) -> None:
    made = sent(codec, rows(times=[NOW - 1_000, NOW + 1_000, -1]))
    assert validated(made).max_timestamp == NOW + 1_000


def test_a_day_back_and_an_hour_ahead() -> None:
    hour, minute = 3_600_000, 60_000
    about = {"before": 24 * hour, "after": hour}
    for time in (NOW - 24 * hour - 5 * minute, NOW + hour + 5 * minute):
        with pytest.raises(InvalidTimestamp, match="outside"):
            validated(sent(Codec.gzip, rows(times=[time] * 3)), **about)
    for time in (NOW - 24 * hour + 5 * minute, NOW + hour - 5 * minute):
        validated(sent(Codec.gzip, rows(times=[time] * 3)), **about)


def test_times_are_not_checked_where_the_log_sets_them() -> None:
    validated(sent(Codec.none, rows(times=[0, 1, 2])), append_time=True)


@every_codec
def test_a_producer_does_not_set_the_time_of_its_append(codec: Codec) -> None:
    made = sent(codec, append_time_ms=NOW)
    with pytest.raises(InvalidTimestamp) as caught:
        validated(made, append_time=True)
    assert [e.row for e in caught.value.record_errors] == [0, 1, 2]
    # Where records have times of their own, Kafka looks only at how far that one time is off.
    assert appended(validated(made))[0].timestamp_type == TimestampType.CREATE_TIME
    with pytest.raises(InvalidTimestamp):
        validated(sent(codec, append_time_ms=-1))


def test_a_wrong_time_outweighs_a_missing_key() -> None:
    columns = rows(times=[NOW, 0, NOW], key=None).set_column(2, "key", pa.array([None, b"k", None], pa.binary()))
    with pytest.raises(InvalidTimestamp) as caught:
        validated(sent(Codec.none, columns), compacted=True)
    assert [e.row for e in caught.value.record_errors] == [0, 1, 2]


def test_the_message_shows_three_records_at_most() -> None:
    with pytest.raises(InvalidRecord, match="20 records are refused") as caught:
        validated(sent(Codec.none, rows([b""] * 20, [NOW] * 20, key=None)), compacted=True)
    assert len(caught.value.record_errors) == 20
    assert str(caught.value).count("has no key") == 3


def headless(count: bytes) -> bytes:
    return field(b"\0\0\0\1\1" + count)


LIES = {
    "a record past the batch": batch(b"\x7e\0\0\0\1\1\0", last_delta=0),
    "a record of negative length": batch(b"\1\0\0\0\1\1\0", last_delta=0),
    "a record of no bytes": batch(b"\0", b"\0\0\0\1\1\0", last_delta=1),
    "a length of 6 bytes": batch(b"\x8c\x80\x80\x80\x80\0" + body(), last_delta=0),
    "a time of 11 bytes": batch(field(b"\0" + b"\x80" * 10 + b"\0" + b"\0\1\1\0"), last_delta=0),
    "a key past the record": batch(field(b"\0\0\0\x08abc"), last_delta=0),
    "a value past the record": batch(field(b"\0\0\0\1\x08abc"), last_delta=0),
    "more headers than bytes": batch(headless(b"\x7e"), last_delta=0),
    "a negative number of headers": batch(headless(b"\1"), last_delta=0),
    "a header without a name": batch(headless(b"\2\1\0"), last_delta=0),
    "a header's name past the record": batch(headless(b"\2\x7e\0"), last_delta=0),
    "a header's value past the record": batch(headless(b"\2\0\x7e"), last_delta=0),
    "bytes after the headers": batch(headless(b"\0\0"), last_delta=0),
    "bytes after the records": batch(record(), section=record() + b"\0", count=1, last_delta=0),
}


@every_codec
@pytest.mark.parametrize("lie", LIES)
def test_records_that_lie_about_their_form_are_refused(lie: str, codec: Codec) -> None:
    header = read_batch_header(LIES[lie])
    section = compress(codec, LIES[lie][BATCH_HEADER_BYTES:])
    made = batch(section=section, attributes=codec, count=header.records_count, last_delta=header.records_count - 1)
    for target in (codec, Codec.gzip, Codec.none):
        with pytest.raises(InvalidRecord, match=r"^record"):
            validated(made, target=target, append_time=True)


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_section_that_does_not_inflate_is_refused(codec: Codec) -> None:
    section = compress(codec, record() * 9)
    for bad in (section[:-1], section[: len(section) // 2], b"x" * 40):
        with pytest.raises(UnknownServerError):
            validated(batch(section=bad, attributes=codec, count=9, last_delta=8))


def test_an_lz4_frame_of_linked_blocks_is_refused_since_kafka_does_not_read_it() -> None:
    import lz4.frame

    values = [bytes([n]) * 30_000 for n in range(9)]
    columns = rows(values, [NOW] * 9)
    section = lz4.frame.compress(sent(Codec.none, columns)[BATCH_HEADER_BYTES:], block_linked=True, block_size=4)
    made = batch(section=section, attributes=Codec.lz4, count=9, last_delta=8, base_timestamp=NOW, max_timestamp=NOW)
    with pytest.raises(UnknownServerError, match="lz4"):
        validated(made)


# --- any byte ---


@settings(deadline=None, max_examples=300)
@given(data=st.data(), codec=st.sampled_from(Codec), target=st.sampled_from([None, *Codec]))
def test_a_byte_that_is_wrong_is_refused_or_makes_another_sound_batch(data: Any, codec: Codec, target: Codec | None) -> None:
    made = bytearray(sent(codec, rows(headers=[(b"name", b"value")]), **PRODUCER))
    made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    try:
        result = validated(bytes(made), target=target, source=codec)
    except Refused:
        return
    batches, _ = scan(result.records)
    assert len(batches) == 1
