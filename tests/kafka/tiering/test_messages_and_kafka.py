"""Every version of the protocol's messages: Kafka's own classes read ours as they are meant, and write the same bytes."""

import base64
import json
from collections.abc import Iterator
from random import Random  # noqa: TID251  # seeded

import pytest
from kafka_judge import Judge, judge_of_messages, oracle
from random_messages import as_json, encoded, random_message

from tiering.endpoint.coordinator import consumer_group_messages as modern
from tiering.endpoint.coordinator.consumer_protocol import (
    VERSION_MAX,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from tiering.endpoint.coordinator.record_messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tiering.endpoint.protocol.api_keys import APIS, FETCH, LIST_OFFSETS, PRODUCE, Api
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.transactions.record_messages import TransactionLogKey, TransactionLogValue

_OLD = {PRODUCE: range(3), FETCH: range(4), LIST_OFFSETS: range(1)}
"""Versions that Kafka 4 no longer has."""
_MESSAGES_EACH = 3


_RECORDS = {OffsetCommitKey: 1, GroupMetadataKey: 1, OffsetCommitValue: 5, GroupMetadataValue: 5}
"""Of the topic `__consumer_offsets`, with how many versions each has."""
_FLEXIBLE_RECORDS_SINCE = 4
_CONSUMER_GROUP_RECORDS = [of for name, of in vars(modern).items() if name.startswith("ConsumerGroup")]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with judge_of_messages() as asked:
        yield asked


def _compare(judge: Judge, api: Api, version: int) -> None:
    random = Random(f"{api.name} {version}")
    for of in (api.request, api.response) * _MESSAGES_EACH:
        _compare_one(judge, random_message(of, version, random), version, flexible=api.is_flexible(version))


def _compare_one(judge: Judge, message: object, version: int, *, flexible: bool) -> None:
    of, data = type(message), encoded(message, version, flexible=flexible)
    state, *found = judge.ask(of.__name__, version, data)
    assert state == "ok", (of, version, message, found)
    left, text, written = found
    assert left == "0", (of, version)
    assert json.loads(base64.b64decode(text)) == as_json(message, version)
    assert base64.b64decode(written) == data, (of, version, message)
    assert read_message(of, version, data, flexible=flexible) == message


@oracle
def test_kafka_reads_and_writes_every_version_of_every_message_as_we_do(judge: Judge) -> None:
    for api in APIS.values():
        for version in range(api.first, api.last + 1):
            if version not in _OLD.get(api, ()):
                _compare(judge, api, version)


@oracle
def test_kafka_reads_and_writes_every_version_of_the_records_of_groups_as_we_do(judge: Judge) -> None:
    for of, versions in _RECORDS.items():
        for version in range(versions):
            random = Random(f"{of.__name__} {version}")
            for message in (random_message(of, version, random) for _ in range(_MESSAGES_EACH)):
                _compare_one(judge, message, version, flexible=version >= _FLEXIBLE_RECORDS_SINCE)
    assert len(_CONSUMER_GROUP_RECORDS) == 14
    for of in _CONSUMER_GROUP_RECORDS:
        random = Random(of.__name__)
        for message in (random_message(of, 0, random) for _ in range(_MESSAGES_EACH)):
            _compare_one(judge, message, 0, flexible=of.__name__.endswith("Value"))


@oracle
def test_kafka_reads_and_writes_every_version_of_what_consumers_say_and_are_assigned_as_we_do(judge: Judge) -> None:
    for of in (ConsumerProtocolSubscription, ConsumerProtocolAssignment):
        for version in range(VERSION_MAX + 1):
            random = Random(f"{of.__name__} {version}")
            for message in (random_message(of, version, random) for _ in range(_MESSAGES_EACH)):
                _compare_one(judge, message, version, flexible=False)


@oracle
def test_kafka_reads_and_writes_every_version_of_the_records_of_transactions_as_we_do(judge: Judge) -> None:
    for of, version in ((TransactionLogKey, 0), (TransactionLogValue, 0), (TransactionLogValue, 1)):
        random = Random(f"{of.__name__} {version}")
        for message in (random_message(of, version, random) for _ in range(_MESSAGES_EACH)):
            _compare_one(judge, message, version, flexible=version == 1)


@oracle
def test_kafka_3_9_reads_and_writes_the_versions_that_kafka_4_has_dropped_as_we_do():
    with judge_of_messages(of_3_9=True) as judge:
        for api, versions in _OLD.items():
            for version in versions:
                _compare(judge, api, version)
