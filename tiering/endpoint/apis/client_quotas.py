"""DescribeClientQuotas and AlterClientQuotas, over the file of quotas (Kafka's ClientQuotasImage, ClientQuotaControlManager)."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from local_log.errors import LogError
from local_log.formats.primitives import INT64_MAX
from tiering.endpoint.apis.auth_helper import NOT_AUTHORIZED, is_authorized, tell_changes
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResult,
    AlteredEntry,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedEntry,
    EntityData,
    ValueData,
)
from tiering.endpoint.quotas.client_quotas import DEFAULT, Entity
from tiering.endpoint.quotas.quota_file import CONSUMER, PRODUCER, RATES, Rates
from tiering.endpoint.request_context import RequestContext

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_EXACT, _OF_DEFAULT, _ANY = 0, 1, 2
_NO_AUTHORIZER: Final = "quotas are changed where ACLs say who may do it: give the endpoint a file of these"
_NO_FILE: Final = "there are no quotas here: give the endpoint a file of them"

_Problem = tuple[ErrorCode, str]


def describe_client_quotas(
    request: DescribeClientQuotasRequest, request_context: RequestContext, context: Context
) -> DescribeClientQuotasResponse:
    """The quotas that the components find."""
    if not is_authorized(context, request_context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeClientQuotasResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=NOT_AUTHORIZED, entries=None
        )
    problem = _problem_of_filter(request.components)
    if problem is not None:
        return DescribeClientQuotasResponse(error_code=problem[0], error_message=problem[1], entries=None)
    rates = {} if context.quotas is None else {CONSUMER: context.quotas.rates, PRODUCER: context.quotas.producers.rates}
    entities = dict.fromkeys(entity for of_name in rates.values() for entity in of_name)
    matching = (entity for entity in entities if _matches(_parts(entity), request))
    return DescribeClientQuotasResponse(entries=tuple(_described(entity, rates) for entity in matching))


def _parts(entity: Entity) -> dict[str, str | None]:
    """By type; None for the default."""
    named = zip((_USER, _CLIENT_ID), entity, strict=True)
    return {kind: None if name == DEFAULT else name for kind, name in named if name is not None}


def _described(entity: Entity, rates: Rates) -> DescribedEntry:
    values = (ValueData(name, float(of_name[entity])) for name, of_name in rates.items() if entity in of_name)
    return DescribedEntry(tuple(EntityData(kind, name) for kind, name in _parts(entity).items()), tuple(values))


def _matches(parts: Mapping[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    if request.strict and len(parts) != len(request.components):
        return False
    of_all = (one.entity_type in parts for one in request.components)
    named = (one for one in request.components if one.match_type != _ANY)
    return all(of_all) and all(parts[one.entity_type] == one.match for one in named)


def _problem_of_filter(components: tuple[ComponentData, ...]) -> _Problem | None:
    kinds = [one.entity_type for one in components]
    for one in components:
        if not one.entity_type or kinds.count(one.entity_type) > 1:
            return ErrorCode.INVALID_REQUEST, f"a filter has the entity type {one.entity_type!r}: each once, and none empty"
        if one.entity_type not in (_USER, _CLIENT_ID, _IP):
            return ErrorCode.UNSUPPORTED_VERSION, f"there is no entity type {one.entity_type!r}"
        if one.match_type not in (_EXACT, _OF_DEFAULT, _ANY) or (one.match is not None) != (one.match_type == _EXACT):
            return ErrorCode.INVALID_REQUEST, f"a filter with the match type {one.match_type}: a name belongs to 0 alone"
    if _IP in kinds and len(kinds) > 1:
        return ErrorCode.INVALID_REQUEST, "ip goes with no other entity type"
    return None


def alter_client_quotas(
    request: AlterClientQuotasRequest, request_context: RequestContext, context: Context
) -> AlterClientQuotasResponse:
    """Changes the file of quotas: each entity that nothing is wrong with, all of them or none."""
    refusal = _refusal(request_context, context)
    counts = Counter(frozenset(entry.entity) for entry in request.entries)
    problems = [refusal or _problem(entry, counts[frozenset(entry.entity)]) for entry in request.entries]
    good = [entry for entry, problem in zip(request.entries, problems, strict=True) if problem is None]
    if good and not request.validate_only and context.quota_file is not None:
        try:
            context.quota_file.change(lambda rates: _altered(rates, good))
            tell_changes(context, request_context, map(_told, good))
        except (LogError, OSError) as e:
            context.report(f"the file of quotas is not changed: {e}")
            failed = (ErrorCode.UNKNOWN_SERVER_ERROR, "the file of quotas cannot be changed; the endpoint's log says why")
            problems = [problem or failed for problem in problems]
    return AlterClientQuotasResponse(entries=tuple(map(_result, request.entries, problems)))


def _result(entry: AlteredEntry, problem: _Problem | None) -> AlterClientQuotasResult:
    code, message = problem or (ErrorCode.NONE, None)
    return AlterClientQuotasResult(code, message, entry.entity)


def _told(entry: AlteredEntry) -> str:
    of = ", ".join(f"{one.entity_type} {DEFAULT if one.entity_name is None else one.entity_name}" for one in entry.entity)
    return f"of {of} " + ", ".join(f"removed {op.key}" if op.remove else f"set {op.key} to {round(op.value)}" for op in entry.ops)


def _refusal(request_context: RequestContext, context: Context) -> _Problem | None:
    if not is_authorized(context, request_context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, NOT_AUTHORIZED
    if context.acls is None:
        return ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER
    return None if context.quota_file is not None else (ErrorCode.INVALID_REQUEST, _NO_FILE)


def _problem(entry: AlteredEntry, count: int) -> _Problem | None:
    kinds = [one.entity_type for one in entry.entity]
    if not kinds or len(set(kinds)) < len(kinds) or not set(kinds) <= {_USER, _CLIENT_ID}:
        return ErrorCode.INVALID_REQUEST, "a quota is of a user, a client-id or both"
    if count > 1 or len({op.key for op in entry.ops}) < len(entry.ops):
        return ErrorCode.INVALID_REQUEST, "the request changes the entity, or one of its quotas, twice"
    if any(one.entity_name in ("", DEFAULT) for one in entry.entity):
        return ErrorCode.INVALID_REQUEST, f"a name is not empty, and {DEFAULT} stands for the default in the file"
    for op in entry.ops:
        if op.key not in RATES:
            return ErrorCode.INVALID_REQUEST, f"{op.key} limits nothing here; {' and '.join(RATES)} do"
        if not op.remove and not (0 < op.value <= INT64_MAX and op.value == round(op.value)):
            return ErrorCode.INVALID_REQUEST, f"{op.key} is bytes a second, an integer from 1 on"
    return None


def _altered(before: Rates, entries: list[AlteredEntry]) -> Rates:
    rates = {name: dict(of_name) for name, of_name in before.items()}
    for entry in entries:
        parts = {one.entity_type: DEFAULT if one.entity_name is None else one.entity_name for one in entry.entity}
        entity = parts.get(_USER), parts.get(_CLIENT_ID)
        for op in entry.ops:
            if op.remove:
                rates[op.key].pop(entity, None)
            else:
                rates[op.key][entity] = min(round(op.value), INT64_MAX)
    return rates
