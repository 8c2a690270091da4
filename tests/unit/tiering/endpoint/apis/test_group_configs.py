"""Settings of single groups: set and described by clients, used by the coordinator, and kept in the log directories."""

import json
import threading
from collections.abc import Mapping

import pytest
from consumer_members import Consumers
from local_tiers import Host
from writing_endpoint import WritingEndpoint

from local_log.errors import Corrupt, Newer
from local_log.formats.filenames import GROUP_CONFIGS
from tiering.endpoint.apis.configs import ResourceType
from tiering.endpoint.coordinator.group_configs import GROUPS_MAX, GroupConfigs
from tiering.endpoint.protocol.api_keys import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tiering.endpoint.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tiering.endpoint.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tiering.endpoint.settings import DEFAULTS

SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def altered(endpoint: WritingEndpoint, group: str, *settings: tuple[str, int, str | None], validate_only: bool = False) -> int:
    resource = AlterConfigsResource(ResourceType.GROUP, group, tuple(AlterableConfig(*one) for one in settings))
    [found] = endpoint.ask(INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest((resource,), validate_only)).responses
    return int(found.error_code)


def described(endpoint: WritingEndpoint, group: str) -> dict[str, tuple[str, int]]:
    asked = DescribeConfigsRequest((DescribeConfigsResource(ResourceType.GROUP, group, (SESSION, INTERVAL)),))
    return {one.name: (one.value, one.config_source) for one in endpoint.ask(DESCRIBE_CONFIGS, 4, asked).results[0].configs}


def test_a_group_has_settings_of_its_own_after_a_restart_too() -> None:
    host = Host()
    endpoint = WritingEndpoint(host)
    endpoint.context.groups.configs.files = endpoint.tier
    assert altered(endpoint, "readers", (SESSION, 0, "50000"), validate_only=True) == 0
    assert described(endpoint, "readers") == {SESSION: ("45000", 5), INTERVAL: ("5000", 5)}
    assert altered(endpoint, "readers", (SESSION, 0, "50000")) == 0
    assert altered(endpoint, "readers", (INTERVAL, 0, "7000")) == 0
    assert described(endpoint, "readers") == {SESSION: ("50000", 8), INTERVAL: ("7000", 8)}
    assert altered(endpoint, "readers", (INTERVAL, 1, None)) == 0
    listed = endpoint.ask(LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest((ResourceType.GROUP,))).config_resources
    assert [one.resource_name for one in listed] == ["readers"]
    endpoint.tier.stop()
    tier = host.started()
    kept = GroupConfigs.of(DEFAULTS, tier)
    assert kept.own("readers") == {SESSION: "50000"}
    kept.change("readers", {})
    assert GroupConfigs.of(DEFAULTS, tier).groups() == ()


def test_what_several_clients_set_of_a_group_at_the_same_time_is_all_kept() -> None:
    class Slow:
        """Files of which the first takes its time."""

        begins, may_go_on = threading.Event(), threading.Event()

        def read_files(self, name: str) -> dict[str, bytes]:
            """See GroupConfigFiles."""
            return {}

        def write_files(self, name: str, data: bytes) -> None:
            """See GroupConfigFiles."""
            self.begins.set()
            self.may_go_on.wait(10)

    endpoint, files = WritingEndpoint(), Slow()
    endpoint.context.groups.configs.files = files
    setting = [
        threading.Thread(target=altered, args=(endpoint, "readers", one))
        for one in ((SESSION, 0, "50000"), (INTERVAL, 0, "7000"))
    ]
    setting[0].start()
    assert files.begins.wait(10)
    setting[1].start()
    setting[1].join(0.1)
    files.may_go_on.set()
    for one in setting:
        one.join(10)
    assert endpoint.context.groups.configs.own("readers") == {SESSION: "50000", INTERVAL: "7000"}


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (((SESSION, 0, "44999"),), ErrorCode.INVALID_CONFIG),
        (((SESSION, 0, "60001"),), ErrorCode.INVALID_CONFIG),
        (((SESSION, 0, "soon"),), ErrorCode.INVALID_CONFIG),
        (((SESSION, 2, "50000"),), ErrorCode.INVALID_CONFIG),
        ((("share.session.timeout.ms", 0, "50000"),), ErrorCode.INVALID_CONFIG),
        (((SESSION, 0, None),), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_a_group_cannot_have_is_refused(settings: tuple[tuple[str, int, str | None], ...], code: ErrorCode) -> None:
    endpoint = WritingEndpoint()
    assert altered(endpoint, "readers", *settings) == code
    assert altered(endpoint, "", (SESSION, 0, "50000")) == ErrorCode.INVALID_REQUEST
    assert altered(endpoint, "x" * 1001, (SESSION, 0, "50000")) == ErrorCode.POLICY_VIOLATION
    assert endpoint.context.groups.configs.groups() == ()


def test_a_session_is_longer_than_the_time_between_heartbeats() -> None:
    endpoint = WritingEndpoint()
    endpoint.configure("group.consumer.max.heartbeat.interval.ms=50000")
    endpoint.context.groups.configs.settings = endpoint.context.settings
    assert altered(endpoint, "readers", (INTERVAL, 0, "46000")) == ErrorCode.INVALID_CONFIG
    assert altered(endpoint, "readers", (INTERVAL, 0, "46000"), (SESSION, 0, "50000")) == 0


def test_no_more_groups_than_a_number_have_settings() -> None:
    configs = GroupConfigs(_own={str(number): {SESSION: "50000"} for number in range(GROUPS_MAX)})
    configs.change("7", {SESSION: "46000"})
    with pytest.raises(Exception, match=f"{GROUPS_MAX} groups have settings"):
        configs.change("readers", {SESSION: "50000"})
    configs.change("7", {})
    configs.change("readers", {SESSION: "50000"})


def test_members_have_the_session_and_the_interval_of_their_group() -> None:
    group = Consumers()
    group.groups.configs.change("readers", {SESSION: "60000", INTERVAL: "9000"})
    group.joined("one")
    assert group.latest is not None
    assert group.latest.heartbeat_interval_ms == 9_000
    group.later(59_999)
    assert [*group.group.members] == ["one"]
    group.later(1)
    assert [*group.group.members] == []


class Files:
    """Those of two directories."""

    def __init__(self, *data: bytes) -> None:
        self.data = data

    def read_files(self, name: str) -> Mapping[str, bytes]:
        assert name == GROUP_CONFIGS
        return {f"/{number}/{name}": one for number, one in enumerate(self.data)}

    def write_files(self, name: str, data: bytes) -> None:
        raise AssertionError("nothing is to be written")


def test_the_newest_file_counts_and_a_damaged_one_is_refused() -> None:
    def saved(version: int, session_ms: object, **more: object) -> bytes:
        return json.dumps({"format": 1, "version": version, "groups": {"readers": {SESSION: session_ms}}, **more}).encode()

    assert GroupConfigs.of(DEFAULTS, Files(saved(2, "50000"), saved(1, "46000"))).own("readers") == {SESSION: "50000"}
    for wrong in (b"", b"{}", b"[]", saved(1, "soon"), saved(1, "1", groups=[]), saved(1, "1", groups={"readers": {"a": "1"}})):
        with pytest.raises(Corrupt, match="no settings of groups"):
            GroupConfigs.of(DEFAULTS, Files(saved(2, "50000"), wrong))
    with pytest.raises(Newer):
        GroupConfigs.of(DEFAULTS, Files(saved(1, "50000", format=2)))
