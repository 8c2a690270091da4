"""AlterConfigs and IncrementalAlterConfigs (Kafka's ConfigAdminManager and ConfigurationControlManager), of topics and groups."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from local_log.errors import LogError
from tiering.endpoint.apis.auth_helper import NOT_AUTHORIZED, is_authorized
from tiering.endpoint.apis.configs import ResourceType as ConfigResourceType
from tiering.endpoint.apis.context import Context, unknown_topic
from tiering.endpoint.apis.own_logs import config_with, own_tier, refusal_code
from tiering.endpoint.apis.topic_configs import is_list, topic_configs
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from tiering.endpoint.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tiering.endpoint.request_context import RequestContext

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_ALTERING: Final = threading.Lock()
"""One thread at a time: it changes what the one before has left."""
_Problem = tuple[ErrorCode, str]
_Own = Mapping[str, str]
_Words = Callable[[str], "list[str] | None"]
"""The values that a setting has now; None for one that has a single value."""
_Changed = Callable[[Any, _Own, _Words], "dict[str, str] | _Problem"]
"""The settings that a topic or group is to have of its own, of a resource of the request and what it has now."""
_FAILED: Final = {
    ConfigResourceType.TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}


def alter_configs(request: AlterConfigsRequest, request_context: RequestContext, context: Context) -> AlterConfigsResponse:
    """All settings of a topic are replaced."""
    return AlterConfigsResponse(responses=_altered(request, request_context, context, _replaced))


def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, request_context: RequestContext, context: Context
) -> IncrementalAlterConfigsResponse:
    """Some settings of a topic are changed."""
    return IncrementalAlterConfigsResponse(responses=_altered(request, request_context, context, _changed))


def _altered(
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    request_context: RequestContext,
    context: Context,
    changed: _Changed,
) -> tuple[AlterConfigsResourceResponse, ...]:
    own_tier(context)
    times = Counter((one.resource_type, one.resource_name) for one in request.resources)

    def altered(one: Any) -> AlterConfigsResourceResponse:
        problem = _problem(one, times[one.resource_type, one.resource_name])
        problem = problem or _refusal(one, request_context, context)
        if problem is None and one.resource_type in _CHANGED:
            with _ALTERING:
                problem = _CHANGED[one.resource_type](one, context, changed, validate_only=request.validate_only)
        code, message = problem or (ErrorCode.NONE, None)
        return AlterConfigsResourceResponse(code, message, one.resource_type, one.resource_name)

    return tuple(map(altered, request.resources))


def _problem(one: Any, times: int) -> _Problem | None:
    wrong, names = ErrorCode.INVALID_REQUEST, Counter(setting.name for setting in one.configs)
    if times > 1:
        return wrong, "the request has this resource more than once"
    if any(count > 1 for count in names.values()):
        return wrong, f"the request has {names.most_common(1)[0][0]} more than once"
    nulls = [c.name for c in one.configs if c.value is None and getattr(c, "config_operation", _SET) != _DELETE]
    if nulls:
        return wrong, f"null is no value of {', '.join(nulls)}"
    if one.resource_type not in set(ConfigResourceType):
        return wrong, f"there is no type {one.resource_type} of resources"
    return None


def _refusal(one: Any, request_context: RequestContext, context: Context) -> _Problem | None:
    of, code = _FAILED.get(one.resource_type, (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    name = CLUSTER_NAME if of is ResourceType.CLUSTER else one.resource_name
    if not is_authorized(context, request_context, Operation.ALTER_CONFIGS, of, name):
        return code, NOT_AUTHORIZED
    if one.resource_type in _CHANGED or _takes_back(one, context):
        return None
    told = "the settings of topics and groups can be changed; those of a broker are given when it is started"
    return ErrorCode.INVALID_REQUEST, told


def _takes_back(one: Any, context: Context) -> bool:
    """Whether it only takes back what is set at run time of brokers, as kafka-reassign-partitions does: nothing is set so."""
    is_broker = one.resource_type == ConfigResourceType.BROKER and one.resource_name in ("", str(context.cluster.live.node_id))
    return is_broker and all(getattr(setting, "config_operation", _SET) == _DELETE for setting in one.configs)


def _of_topic(one: Any, context: Context, changed: _Changed, *, validate_only: bool) -> _Problem | None:
    tier, name = own_tier(context), one.resource_name
    topic = tier.topics().get(name)
    before = topic.config if topic is not None else {}
    after = changed(one, before, lambda setting: _words(name, setting, before, context))
    if isinstance(after, tuple):
        return after
    if not name:
        return ErrorCode.INVALID_REQUEST, "name a topic"
    try:
        config_with(name, after, tier)
        if topic is None:
            return unknown_topic(name), f"there is no topic {name}"
        if not validate_only:
            tier.alter_configs(name, {**dict.fromkeys(before), **after})
    except LogError as e:
        return refusal_code(e, f"the settings of topic {name} are not changed", context), str(e)
    return None


def _of_group(one: Any, context: Context, changed: _Changed, *, validate_only: bool) -> _Problem | None:
    configs, name = context.groups.configs, one.resource_name
    after = changed(one, configs.own(name), lambda setting: None)
    if isinstance(after, tuple):
        return after
    try:
        configs.check(name, after) if validate_only else configs.change(name, after)
    except GroupError as e:
        return e.code, e.message or ""
    except LogError as e:
        return refusal_code(e, f"the settings of group {name} are not changed", context), str(e)
    return None


_CHANGED: Final = {ConfigResourceType.TOPIC: _of_topic, ConfigResourceType.GROUP: _of_group}


def _replaced(one: Any, before: _Own, words: _Words) -> dict[str, str] | _Problem:
    return {setting.name: setting.value for setting in one.configs}


def _changed(one: Any, before: _Own, words: _Words) -> dict[str, str] | _Problem:
    after = dict(before)
    for setting in one.configs:
        operation, name = setting.config_operation, setting.name
        if operation == _SET:
            after[name] = setting.value
        elif operation == _DELETE:
            after.pop(name, None)
        elif operation in (_APPEND, _SUBTRACT):
            known, given = words(name), setting.value.split(",")
            if known is None:
                return ErrorCode.INVALID_CONFIG, f"{name} has one value: set it"
            kept = [*dict.fromkeys([*known, *given])] if operation == _APPEND else [w for w in known if w not in given]
            after[name] = ",".join(kept)
        else:
            return ErrorCode.INVALID_REQUEST, f"there is no operation {operation}"
    return after


def _words(topic: str, name: str, before: _Own, context: Context) -> list[str] | None:
    if not is_list(name):
        return None
    known = {one.name: one.value for one in topic_configs(topic, before, own_tier(context))}
    return [word for word in known[name].split(",") if word]
