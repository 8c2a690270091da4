"""Every version of the protocol's messages: Kafka's own classes read ours as they are meant, and write the same bytes."""

import base64
import json
from random import Random  # noqa: TID251  # seeded

from kafka_judge import Judge, judge_of_messages, oracle
from random_messages import as_json, encoded, random_message

from tiering.endpoint.protocol.api_keys import APIS, FETCH, LIST_OFFSETS, PRODUCE, Api
from tiering.endpoint.protocol.reading import read_message

_OLD = {PRODUCE: range(3), FETCH: range(4), LIST_OFFSETS: range(1)}
"""Versions that Kafka 4 no longer has."""
_MESSAGES_EACH = 3


def _compare(judge: Judge, api: Api, version: int) -> None:
    random, flexible = Random(f"{api.name} {version}"), api.is_flexible(version)
    for of in (api.request, api.response) * _MESSAGES_EACH:
        message = random_message(of, version, random)
        data = encoded(message, version, flexible=flexible)
        state, *found = judge.ask(of.__name__, version, data)
        assert state == "ok", (of, version, message, found)
        left, text, written = found
        assert left == "0", (of, version)
        assert json.loads(base64.b64decode(text)) == as_json(message, version)
        assert base64.b64decode(written) == data, (of, version, message)
        assert read_message(of, version, data, flexible=flexible) == message


@oracle
def test_kafka_reads_and_writes_every_version_of_every_message_as_we_do():
    with judge_of_messages() as judge:
        for api in APIS.values():
            for version in range(api.first, api.last + 1):
                if version not in _OLD.get(api, ()):
                    _compare(judge, api, version)


@oracle
def test_kafka_3_9_reads_and_writes_the_versions_that_kafka_4_has_dropped_as_we_do():
    with judge_of_messages(of_3_9=True) as judge:
        for api, versions in _OLD.items():
            for version in versions:
                _compare(judge, api, version)
