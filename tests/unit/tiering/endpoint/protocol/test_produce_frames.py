"""Frames of appends to one partition, and the same as the readers and writers of all messages have them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiering.endpoint.protocol.api_keys import PRODUCE
from tiering.endpoint.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tiering.endpoint.protocol.produce_frames import VERSIONS, read_one_append, write_one_append
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.protocol.writing import Output, writer

ID = "AAECAwQFBgcICQoLDA0ODw"
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
ANSWER = PartitionProduceResponse(3, 0, 1 << 40, -1, 7)
BODY_AT = 4 + 2 + 2 + 4 + 2 + 4 + 1


def asked(version: int, records: bytes, index: int = 0, name: str = "orders", **more: Any) -> ProduceRequest:
    data = (PartitionProduceData(index, (records,) if records else ()),)
    topic = TopicProduceData("", ID, data) if version >= 13 else TopicProduceData(name, partition_data=data)
    return replace(ProduceRequest(None, -1, 30_000, (topic,)), **more)


def frame_of(version: int, request: ProduceRequest) -> bytes:
    return write_request(RequestHeader(PRODUCE, version, 99, "test"), request)[4:]


def as_any_message(version: int, frame: bytes) -> ProduceRequest:
    found = read_message(ProduceRequest, version, frame, BODY_AT - 4, flexible=True)
    assert isinstance(found, ProduceRequest)
    return found


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(VERSIONS), st.binary(min_size=1, max_size=300), INT32, st.sampled_from([-1, 0, 1, 7]), INT32,
    st.text(max_size=40),
)  # fmt: skip
def test_a_request_is_read_as_any_message_is(
    version: int, records: bytes, index: int, acks: int, timeout_ms: int, name: str
) -> None:
    frame = frame_of(version, asked(version, records, index, name, acks=acks, timeout_ms=timeout_ms))
    found = read_one_append(frame, BODY_AT - 4, version)
    assert found == as_any_message(version, frame) or len(name.encode()) > 126


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [126, 127, 128, 16_383, 16_384, 1 << 21])
def test_the_size_of_records_may_take_several_bytes(version: int, size: int) -> None:
    found = read_one_append(frame_of(version, asked(version, bytes(size))), BODY_AT - 4, version)
    assert found is not None
    assert len(found.topic_data[0].partition_data[0].records[0]) == size  # type: ignore[index]


@pytest.mark.parametrize("version", VERSIONS)
def test_any_other_request_is_left_to_the_reader_of_all(version: int) -> None:
    one = asked(version, b"abc")
    (topic,) = one.topic_data
    others = [
        asked(version, b""), replace(one, transactional_id="t"), replace(one, transactional_id=""), replace(one, topic_data=()),
        replace(one, topic_data=(topic, topic)), replace(one, topic_data=(replace(topic, partition_data=()),)),
        replace(one, topic_data=(replace(topic, partition_data=topic.partition_data * 2),)),
        replace(one, topic_data=(replace(topic, partition_data=(PartitionProduceData(0, None),)),)),
    ]  # fmt: skip
    others += [asked(version, b"abc", name=name) for name in ("n" * 127, "n" * 200) if version < 13]
    for other in others:
        assert read_one_append(frame_of(version, other), BODY_AT - 4, version) is None
    assert read_one_append(frame_of(version, one) + b"\0", BODY_AT - 4, version) is None


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(VERSIONS), st.data())
def test_a_damaged_request_is_read_as_any_message_is_or_left_to_its_reader(version: int, data: st.DataObject) -> None:
    frame = bytearray(frame_of(version, asked(version, b"abcdefgh")))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(BODY_AT - 4, len(frame) - 1))] = data.draw(st.integers(0, 255))
    del frame[data.draw(st.integers(BODY_AT - 4, len(frame))) :]
    found = read_one_append(bytes(frame), BODY_AT - 4, version)
    assert found is None or found == as_any_message(version, bytes(frame))


def test_a_size_that_does_not_end_is_not_followed() -> None:
    frame = frame_of(9, asked(9, b"abc"))
    endless = frame[: -len(b"\x04abc\0\0\0")] + b"\xff" * (1 << 20)
    assert read_one_append(endless, BODY_AT - 4, 9) is None


def response(version: int, one: PartitionProduceResponse, **more: Any) -> ProduceResponse:
    topic = TopicProduceResponse("", ID, (one,)) if version >= 13 else TopicProduceResponse("orders", partition_responses=(one,))
    return ProduceResponse((topic,), **more)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(VERSIONS), INT32, INT64, INT64, INT64, INT32)
def test_an_answer_is_written_as_any_message_is(
    version: int, index: int, offset: int, time: int, start: int, throttle_ms: int
) -> None:
    message = response(version, PartitionProduceResponse(index, 0, offset, time, start), throttle_time_ms=throttle_ms)
    out = Output()
    out.buffer += (99).to_bytes(4, "big") + b"\0"
    writer(ProduceResponse, version, flexible=True)(out, message)
    [body], size = out.finish()
    assert write_one_append(99, version, message) == size.to_bytes(4, "big") + body


@pytest.mark.parametrize("version", VERSIONS)
def test_any_other_answer_is_left_to_the_writer_of_all(version: int) -> None:
    of_error = (BatchIndexAndErrorMessage(0, "no"),)
    found = response(version, ANSWER)
    (topic,) = found.responses
    others = [
        response(version, replace(ANSWER, error_code=3)), response(version, replace(ANSWER, error_message="")),
        response(version, replace(ANSWER, record_errors=of_error)),
        response(version, replace(ANSWER, current_leader=LeaderIdAndEpoch(1, -1))),
        response(version, ANSWER, node_endpoints=(NodeEndpoint(1, "a", 1),)), ProduceResponse(()),
        ProduceResponse((topic, topic)), ProduceResponse((replace(topic, partition_responses=()),)),
    ]  # fmt: skip
    others += [ProduceResponse((replace(topic, name="n" * 127),))] if version < 13 else []
    assert [write_one_append(99, version, other) for other in others] == [None] * len(others)
