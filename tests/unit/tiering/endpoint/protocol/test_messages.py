from dataclasses import replace
from random import Random  # noqa: TID251  # seeded

import pytest
from random_messages import encoded, random_message

from local_log.errors import Corrupt
from tiering.endpoint.protocol.api_keys import APIS, FETCH, METADATA, Api
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.reading import STRING_BYTES_MAX, Budget, read_message, reader

CASES = [
    (api, of, version)
    for api in APIS.values()
    for of in (api.request, api.response)
    for version in range(api.first, api.last + 1)
]


def message_and_bytes(api: Api, of: type, version: int) -> tuple[object, bytes]:
    message = random_message(of, version, Random(f"{of.__name__} {version}"))
    return message, encoded(message, version, flexible=api.is_flexible(version))


def test_every_message_of_every_version_is_read_as_it_was_written():
    for api, of, version in CASES:
        message, data = message_and_bytes(api, of, version)
        assert read_message(of, version, data, flexible=api.is_flexible(version)) == message


def test_a_message_that_is_cut_anywhere_is_corrupt():
    for api, of, version in CASES:
        _, data = message_and_bytes(api, of, version)
        for size in range(min(len(data), 300)):
            with pytest.raises(Corrupt):
                read_message(of, version, data[:size], flexible=api.is_flexible(version))


def test_bytes_after_a_message_are_ignored_since_librdkafka_sends_some():
    data = encoded(MetadataRequest(topics=None), 13, flexible=True)
    assert read_message(MetadataRequest, 13, data + b"\0\0\0", flexible=True) == MetadataRequest(topics=None)


def test_tagged_fields_that_nobody_knows_are_skipped():
    data = encoded(MetadataRequest(topics=None), 13, flexible=True)
    with_tags = data[:-1] + b"\x02" + b"\x05\x03abc" + b"\xff\x01\x00"
    assert read_message(MetadataRequest, 13, with_tags, flexible=True) == MetadataRequest(topics=None)


def test_a_tagged_field_that_ends_elsewhere_than_its_size_says_is_corrupt():
    data = encoded(FetchRequest(), 12, flexible=True)
    cluster_id_of_two = data[:-1] + b"\x01" + b"\x00\x04\x03ab\x00"
    with pytest.raises(Corrupt, match="tagged field 0"):
        read_message(FetchRequest, 12, cluster_id_of_two, flexible=True)


def test_a_field_that_a_version_lacks_has_its_default():
    asked = FetchRequest(topics=(FetchTopic("orders", partitions=(FetchPartition(3, 7, fetch_offset=9),)),), rack_id="a")
    data = encoded(asked, 4, flexible=False)
    found = read_message(FetchRequest, 4, data, flexible=False)
    assert found.topics[0].partitions == (FetchPartition(3, -1, fetch_offset=9),)
    assert found == replace(asked, rack_id="", topics=(replace(asked.topics[0], partitions=found.topics[0].partitions),))


def test_a_null_where_none_may_be_is_corrupt():
    with pytest.raises(Corrupt, match="topics is null"):
        read_message(MetadataRequest, 0, b"\xff\xff\xff\xff", flexible=False)
    assert read_message(MetadataRequest, 1, b"\xff\xff\xff\xff", flexible=False).topics is None


def test_an_array_that_the_bytes_cannot_hold_is_refused_before_it_is_read():
    with pytest.raises(Corrupt, match=r"topics with 2147483647 elements takes 4294967294 bytes, 0 are left"):
        read_message(MetadataRequest, 1, b"\x7f\xff\xff\xff", flexible=False)


def test_a_text_is_not_longer_than_in_kafka_where_its_size_could_say_so():
    for size in (STRING_BYTES_MAX, STRING_BYTES_MAX + 1):
        data = encoded(MetadataRequest((MetadataRequestTopic(name="x" * size),)), 13, flexible=True)
        if size == STRING_BYTES_MAX:
            assert len(read_message(MetadataRequest, 13, data, flexible=True).topics[0].name) == size
        else:
            with pytest.raises(Corrupt, match="name has 32768 bytes, where a text has 32767 at most"):
                read_message(MetadataRequest, 13, data, flexible=True)


def test_all_arrays_of_a_message_share_one_budget():
    topics = tuple(MetadataRequestTopic(name="t") for _ in range(4))
    data = encoded(MetadataRequest(topics=topics), 1, flexible=False)
    read = reader(MetadataRequest, 1, flexible=False)
    assert read(data, 0, Budget(4))[0].topics == topics
    with pytest.raises(Corrupt, match="more than 3 array elements"):
        read(data, 0, Budget(3))


def test_text_that_is_not_utf_8_is_read_with_replacements_as_java_does():
    data = b"\0\0\0\1" + b"\0\2" + b"\xff\xfe"
    assert read_message(MetadataRequest, 1, data, flexible=False).topics[0].name == "��"


def test_batches_are_handed_over_and_never_copied():
    batches = (memoryview(b"first"), memoryview(b"second"))
    response = replace(random_message(FetchResponse, 17, Random(1)), responses=(of_one_topic(batches),))
    from tiering.endpoint.protocol.writing import Output, writer

    out = Output()
    writer(FETCH.response, 17, flexible=True)(out, response)
    parts, size = out.finish()
    assert [part for part in parts if isinstance(part, memoryview)] == list(batches)
    assert size == sum(map(len, parts))


def of_one_topic(batches: tuple[memoryview, ...]):
    from tiering.endpoint.protocol.messages.fetch import FetchableTopicResponse, PartitionData

    return FetchableTopicResponse(partitions=(PartitionData(records=batches, aborted_transactions=()),))


def test_no_api_has_a_flexible_version_before_its_first():
    assert METADATA.is_flexible(9)
    assert not METADATA.is_flexible(8)
    assert list(APIS) == sorted(APIS)


def test_tagged_fields_that_nobody_knows_count_against_the_budget_of_a_message():
    data = encoded(MetadataRequest(topics=None), 9, flexible=True)[:-1] + b"\x04" + b"".join(bytes((90 + n, 0)) for n in range(4))
    read = reader(MetadataRequest, 9, flexible=True)
    assert read(data, 0, Budget(4))[1] == len(data)
    with pytest.raises(Corrupt, match="more than 3 array elements"):
        read(data, 0, Budget(3))
