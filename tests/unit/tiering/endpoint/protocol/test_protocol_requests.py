import tracemalloc
from random import Random  # noqa: TID251  # seeded

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_messages import random_message

from tiering.endpoint.protocol.api_keys import API_VERSIONS, APIS, FETCH, METADATA, PRODUCE, READING_APIS
from tiering.endpoint.protocol.errors import InvalidRequest
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tiering.endpoint.protocol.reading import ELEMENTS_MAX
from tiering.endpoint.protocol.requests import (
    Request,
    RequestHeader,
    UnknownApiVersions,
    read_request,
    write_request,
    write_response,
)


def frame(key: int, version: int, message: object) -> bytes:
    return write_request(RequestHeader(APIS[key], version, 77, "c"), message)[4:]


def test_a_request_is_its_header_and_its_message():
    asked = FetchRequest(topics=(FetchTopic("orders", partitions=(FetchPartition(2, fetch_offset=5),)),))
    assert read_request(frame(1, 11, asked)) == Request(RequestHeader(FETCH, 11, 77, "c"), asked)
    nobody = RequestHeader(METADATA, 12, 77, None)
    assert read_request(write_request(nobody, MetadataRequest())[4:]) == Request(nobody, MetadataRequest())


def test_the_header_is_as_kafka_has_it():
    assert frame(3, 1, MetadataRequest(topics=None)) == b"\0\3\0\1\0\0\0\x4d\0\1c\xff\xff\xff\xff"
    assert frame(3, 9, MetadataRequest(topics=None)) == b"\0\3\0\x09\0\0\0\x4d\0\1c\0\0\1\0\0\0"


def test_tagged_fields_of_a_header_are_skipped():
    data = frame(3, 9, MetadataRequest(topics=None))
    with_tag = data[:11] + b"\1\x09\2ab" + data[12:]
    assert read_request(with_tag) == read_request(data)


def test_a_response_starts_with_its_size_and_correlation_id():
    parts = write_response(RequestHeader(METADATA, 9, 5, None), MetadataResponse())
    data = b"".join(parts)
    assert data[:9] == (len(data) - 4).to_bytes(4, "big") + b"\0\0\0\5" + b"\0"


def test_a_response_to_api_versions_never_has_tagged_fields_in_its_header():
    data = b"".join(write_response(RequestHeader(API_VERSIONS, 3, 5, None), ApiVersionsResponse()))
    assert data[4:] == b"\0\0\0\5" + b"\0\0" + b"\1" + b"\0\0\0\0" + b"\0"


def test_api_versions_of_an_unknown_version_is_told_from_garbage():
    data = b"\0\x12" + b"\0\x09" + b"\0\0\0\7" + b"\0\1c" + b"\0" + b"whatever it says"
    assert read_request(data) == UnknownApiVersions(7)
    assert isinstance(read_request(frame(18, 4, ApiVersionsRequest("kcat", "1"))), Request)


@pytest.mark.parametrize("rest", [b"\x7f\xffclient", b"\0\6client\1\5\x09"], ids=["client id", "tagged fields"])
def test_api_versions_of_an_unknown_version_has_a_sound_header(rest: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read_request(bytes.fromhex("0012006300000007") + rest)


@pytest.mark.parametrize(
    "data", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03", b"\0\1\0\x7f" + b"\0" * 40]
)
def test_what_is_no_request_is_refused_with_what_was_found(data):
    with pytest.raises(InvalidRequest, match=r"a request of \d+ bytes, byte \d+: .*"):
        read_request(data)


def test_a_request_of_an_api_that_is_not_offered_is_refused():
    asked = frame(METADATA.key, 12, MetadataRequest())
    assert isinstance(read_request(asked, apis=READING_APIS), Request)
    with pytest.raises(InvalidRequest, match="API 3, which ApiVersions does not offer"):
        read_request(asked, apis={FETCH.key: FETCH})


FRAMES = [
    frame(api.key, version, random_message(api.request, version, Random(f"{api.name} {version} {n}")))
    for api in APIS.values()
    for version in range(api.first, api.last + 1)
    for n in range(3)
]


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(FRAMES),
    st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=0, max_size=5)), max_size=4),
    st.integers(0, 400),
)
def test_a_mutated_frame_is_a_request_or_refused(good, mutations, cut):
    data = bytearray(good)
    for place, written in mutations:
        data[place : place + len(written)] = written
    try:
        found = read_request(bytes(data[: max(1, len(data) - cut)] if cut < 100 else data))
    except InvalidRequest:
        return
    assert isinstance(found, Request | UnknownApiVersions)


def test_what_a_request_takes_in_memory_is_bounded_whatever_its_arrays_say():
    def of_empty_topics(count: int) -> bytes:
        return b"\0\3" + b"\0\1" + b"\0\0\0\1" + b"\xff\xff" + count.to_bytes(4, "big") + b"\0\0" * count

    few, too_many = of_empty_topics(100_000), of_empty_topics(ELEMENTS_MAX + 1)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest, match="array elements"):
            read_request(too_many)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        read_request(few)
        assert tracemalloc.get_traced_memory()[1] < (100 << 20) * 100_000 // ELEMENTS_MAX
    finally:
        tracemalloc.stop()


def test_produce_is_read_in_every_version_so_that_it_can_be_refused():
    for version in range(PRODUCE.first, PRODUCE.last + 1):
        found = read_request(frame(0, version, random_message(PRODUCE.request, version, Random(version))))
        assert isinstance(found, Request)
        assert found.header.api is PRODUCE


def test_a_name_that_grows_too_long_to_be_told_is_refused():
    asked = b"\0\3" + b"\0\1" + b"\0\0\0\1" + b"\xff\xff" + b"\0\0\0\1" + b"\x3a\x98" + b"\xff" * 15_000
    found = read_request(asked)
    assert isinstance(found, Request)
    name = found.message.topics[0].name
    with pytest.raises(InvalidRequest, match="a string of 45000 bytes in an answer, where 32767 are the most"):
        write_response(found.header, MetadataResponse(topics=(MetadataResponseTopic(name=name),)))
