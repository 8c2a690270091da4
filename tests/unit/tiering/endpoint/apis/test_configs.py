"""DescribeConfigs: Kafka's types and sources of the endpoint's settings, and no settings of topics."""

import pytest
from asked_endpoint import Endpoint
from local_tiers import Host
from tiered_worlds import World
from writing_endpoint import WritingEndpoint

from tiering.endpoint.apis.configs import DESCRIBED_GROUPS_MAX, REPEATED_MAX, ResourceType
from tiering.endpoint.protocol.api_keys import DESCRIBE_CONFIGS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from tiering.endpoint.settings import FETCH_MAX_BYTES, SETTINGS


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["local alone"], None)


def described(endpoint: Endpoint, kind: int, name: str, *keys: str, version: int = 4, **more: bool) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(kind, name, keys or None)
    found: DescribeConfigsResult = endpoint.ask(DESCRIBE_CONFIGS, version, DescribeConfigsRequest((resource,), **more)).results[0]
    assert (found.resource_type, found.resource_name) == (kind, name)
    return found


@pytest.mark.parametrize("version", range(1, 5))
def test_the_broker_s_settings_are_all_told(endpoint: Endpoint, version: int) -> None:
    found = described(endpoint, ResourceType.BROKER, "1", version=version)
    *endpoints, listeners = found.configs
    assert listeners.name == "advertised.listeners"
    assert {one.name: one.value or "" for one in endpoints} == {n: s.text(s.default) for n, s in SETTINGS.items()}
    assert all(one.read_only and not one.is_sensitive and one.config_source == 5 and one.synonyms == () for one in endpoints)
    if version >= 3:
        assert {one.config_type for one in found.configs} == {1, 2, 3, 5, 7}
        assert {one.documentation for one in found.configs} == {None}


def test_what_is_set_has_another_source_than_a_default(endpoint: Endpoint) -> None:
    endpoint.configure("fetch.max.bytes=2048")
    found = described(
        endpoint, ResourceType.BROKER, "1", "fetch.max.bytes", "nothing", include_synonyms=True, include_documentation=True
    )
    name, default = FETCH_MAX_BYTES.name, str(FETCH_MAX_BYTES.default)
    synonyms = (DescribeConfigsSynonym(name, "2048", 4), DescribeConfigsSynonym(name, default, 5))
    assert found.configs == (DescribeConfigsResourceResult(name, "2048", True, 4, False, synonyms, 3, FETCH_MAX_BYTES.help),)


def test_topics_have_no_settings_here(endpoint: Endpoint) -> None:
    assert described(endpoint, ResourceType.TOPIC, "g-txn").configs == ()
    assert described(endpoint, ResourceType.TOPIC, "g-txn").error_code == 0
    unknown = described(endpoint, ResourceType.TOPIC, "nowhere")
    assert (unknown.error_code, unknown.error_message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)


def test_other_brokers_and_other_things_have_none(endpoint: Endpoint) -> None:
    for kind, name in ((ResourceType.BROKER, ""), (ResourceType.BROKER_LOGGER, "1"), (ResourceType.CLIENT_METRICS, "all")):
        assert described(endpoint, kind, name) == DescribeConfigsResult(resource_type=kind, resource_name=name)
    for kind, name in ((ResourceType.BROKER_LOGGER, ""), (ResourceType.BROKER_LOGGER, "2"), (ResourceType.GROUP, "")):
        assert described(endpoint, kind, name).error_code == ErrorCode.INVALID_REQUEST
    other = described(endpoint, ResourceType.BROKER, "2")
    assert other.error_code == ErrorCode.INVALID_REQUEST
    assert other.error_message == "Unexpected broker id, expected 1 or empty string, but received 2"


def test_a_type_that_kafka_does_not_have_is_refused_for_all(endpoint: Endpoint) -> None:
    resources = (DescribeConfigsResource(2, "g-txn", None), DescribeConfigsResource(3, "x", None))
    for one in endpoint.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources)).results:
        assert (one.error_code, one.configs) == (ErrorCode.INVALID_REQUEST, ())
        assert one.error_message == "Unexpected resource type UNKNOWN for resource x"


def outcomes(endpoint: Endpoint, resources: tuple[DescribeConfigsResource, ...]) -> set[tuple[int, bool]]:
    found = endpoint.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources)).results
    assert len(found) == len(resources)
    return {(each.error_code, bool(each.configs)) for each in found}


REFUSED = {(ErrorCode.INVALID_REQUEST, False)}


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [(ResourceType.BROKER, "1", "node.id"), (ResourceType.GROUP, "readers", "consumer.session.timeout.ms")],
)
def test_no_request_asks_for_the_same_settings_again_and_again(endpoint: Endpoint, kind: int, name: str, key: str) -> None:
    one = DescribeConfigsResource(kind, name, (key,))
    assert outcomes(endpoint, (one,) * (REPEATED_MAX + 1)) == {(0, True)}
    assert outcomes(endpoint, (one,) * (REPEATED_MAX + 2)) == REFUSED


def test_no_request_asks_for_the_settings_of_any_number_of_groups(endpoint: Endpoint) -> None:
    groups = tuple(DescribeConfigsResource(ResourceType.GROUP, str(number), None) for number in range(DESCRIBED_GROUPS_MAX + 1))
    assert outcomes(endpoint, groups[1:]) == {(0, True)}
    assert outcomes(endpoint, groups) == REFUSED


def test_a_broker_tells_its_address_and_the_settings_of_its_own_log_directories(endpoint: Endpoint) -> None:
    assert (
        described(endpoint, ResourceType.BROKER, "1", "advertised.listeners").configs[0].value == "PLAINTEXT://broker.test:9092"
    )
    assert described(endpoint, ResourceType.BROKER, "1", "log.segment.bytes").configs == (), (
        "those of another process are unknown"
    )
    host = Host(settings={"retention.ms": "5000"})
    found = described(WritingEndpoint(host, retention_check_interval_ms=7), ResourceType.BROKER, "1", include_synonyms=True)
    told = {one.name: one for one in found.configs}
    assert len(told) == len(found.configs)
    assert told["log.dirs"].value == "/a,/b"
    for name, value, default in (
        ("log.retention.ms", "5000", "604800000"),
        ("log.retention.check.interval.ms", "7", "300000"),
    ):
        one = told[name]
        synonyms = (DescribeConfigsSynonym(name, value, 4), DescribeConfigsSynonym(name, default, 5))
        assert (one.value, one.config_source, one.config_type, one.synonyms) == (value, 4, 5, synonyms)
    types = {
        "log.dirs": 7,
        "log.cleaner.enable": 1,
        "log.cleaner.threads": 3,
        "log.cleaner.backoff.ms": 5,
        "log.segment.bytes": 3,
    }
    assert {name: told[name].config_type for name in types} == types
    assert (told["log.segment.bytes"].value, told["log.segment.bytes"].config_source) == ("1073741824", 5)


def test_a_topic_s_default_has_the_broker_s_name() -> None:
    endpoint = WritingEndpoint(Host(settings={}))
    found = described(endpoint, ResourceType.TOPIC, "orders", "retention.ms", "compression.type", include_synonyms=True)
    assert {one.name: [synonym.name for synonym in one.synonyms] for one in found.configs} == {
        "retention.ms": ["log.retention.ms"],
        "compression.type": ["compression.type"],
    }
