"""DescribeAcls, CreateAcls and DeleteAcls, over the file of ACLs."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import groupby
from typing import Final, TypeVar

from local_log.errors import LogError
from tiering.endpoint.apis.auth_helper import NOT_AUTHORIZED, is_authorized, tell_changes
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acl_file import AclFile
from tiering.endpoint.authorization.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from tiering.endpoint.request_context import RequestContext

_NO_AUTHORIZER: Final = "there are no ACLs here: give the endpoint a file of them"
_ANY: Final = "an ACL for ANY resource, operation or permission, which is for filters"
_UNKNOWN: Final = "a filter with a type that is not known here"
_E = TypeVar("_E", bound=IntEnum)
_Error = tuple[ErrorCode, str]


def describe_acls(request: DescribeAclsRequest, request_context: RequestContext, context: Context) -> DescribeAclsResponse:
    """The ACLs that the filter finds, by resource. Raises InvalidRequest."""
    _check_known(request)
    file = _file(Operation.DESCRIBE, request_context, context)
    if not isinstance(file, AclFile):
        return DescribeAclsResponse(error_code=file[0], error_message=file[1])
    found = sorted(filter(_filter(request).matches, file.authorizer.index.acls), key=_resource)
    resources = (DescribeAclsResource(*resource, tuple(map(_described, acls))) for resource, acls in groupby(found, _resource))
    return DescribeAclsResponse(resources=tuple(resources))


def create_acls(request: CreateAclsRequest, request_context: RequestContext, context: Context) -> CreateAclsResponse:
    """Adds ACLs to the file, none if one of them is for any resource, operation or permission. Raises InvalidRequest."""
    _check_known(*request.creations)
    file = _file(Operation.ALTER, request_context, context)
    if not isinstance(file, AclFile):
        return CreateAclsResponse(results=tuple(AclCreationResult(*file) for _ in request.creations))
    acls = tuple(map(_acl, request.creations))
    if any(map(_is_filter, acls)):
        return CreateAclsResponse(results=tuple(AclCreationResult(ErrorCode.INVALID_REQUEST, _ANY) for _ in acls))
    good = tuple(acl for acl in acls if not acl.problem())
    error = _changed(file, lambda before: (*before, *good), context) if good else None
    if error is None:
        tell_changes(context, request_context, (f"added the ACL {acl}" for acl in good))
    failed = AclCreationResult() if error is None else AclCreationResult(*error)
    results = (AclCreationResult(ErrorCode.INVALID_REQUEST, p) if (p := acl.problem()) else failed for acl in acls)
    return CreateAclsResponse(results=tuple(results))


def delete_acls(request: DeleteAclsRequest, request_context: RequestContext, context: Context) -> DeleteAclsResponse:
    """Deletes ACLs from the file. Raises InvalidRequest."""
    _check_known(*request.filters)
    file = _file(Operation.ALTER, request_context, context)
    if not isinstance(file, AclFile):
        return DeleteAclsResponse(filter_results=tuple(DeleteAclsFilterResult(*file) for _ in request.filters))
    filters = tuple(map(_filter, request.filters))
    deleted: list[Acl] = []

    def without(before: tuple[Acl, ...]) -> Iterable[Acl]:
        found = {acl for acl in before if any(of.matches(acl) for of in filters if not of.is_unknown)}
        deleted.extend(acl for acl in before if acl in found)
        return [acl for acl in before if acl not in found]

    error = _changed(file, without, context)
    if error is None:
        tell_changes(context, request_context, (f"deleted the ACL {acl}" for acl in deleted))
    return DeleteAclsResponse(filter_results=tuple(_filter_result(of, deleted, error) for of in filters))


def _filter_result(of: AclFilter, deleted: Iterable[Acl], error: _Error | None) -> DeleteAclsFilterResult:
    if of.is_unknown:
        return DeleteAclsFilterResult(ErrorCode.INVALID_REQUEST, _UNKNOWN)
    if error is not None:
        return DeleteAclsFilterResult(*error)
    return DeleteAclsFilterResult(matching_acls=tuple(_matching(acl) for acl in deleted if of.matches(acl)))


def _file(operation: Operation, request_context: RequestContext, context: Context) -> AclFile | _Error:
    if not is_authorized(context, request_context, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, NOT_AUTHORIZED
    return context.acls if context.acls is not None else (ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)


def _changed(file: AclFile, change: Callable[[tuple[Acl, ...]], Iterable[Acl]], context: Context) -> _Error | None:
    try:
        file.change(change)
    except (LogError, OSError) as e:
        context.report(f"the file of ACLs is not changed: {e}")
        return ErrorCode.UNKNOWN_SERVER_ERROR, "the file of ACLs cannot be changed; the endpoint's log says why"
    return None


def _check_known(*messages: DescribeAclsRequest | DeleteAclsFilter | AclCreation) -> None:
    """A broker takes the code of UNKNOWN for no request. Raises InvalidRequest."""
    for one in messages:
        if isinstance(one, AclCreation):
            codes = (one.resource_type, one.resource_pattern_type)
        else:
            codes = (one.resource_type_filter, one.pattern_type_filter)
        if 0 in (*codes, one.operation, one.permission_type):
            raise InvalidRequest("a request about ACLs whose type, operation or permission is UNKNOWN")


def _is_filter(acl: Acl) -> bool:
    """Whether it has a value that only a filter may have."""
    anything = (ResourceType.ANY, Operation.ANY, Permission.ANY)
    is_any = any(one is other for one, other in zip((acl.resource_type, acl.operation, acl.permission), anything, strict=True))
    return is_any or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)


def _filter(of: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        _value(ResourceType, of.resource_type_filter),
        of.resource_name_filter,
        _value(PatternType, of.pattern_type_filter),
        of.principal_filter,
        of.host_filter,
        _value(Operation, of.operation),
        _value(Permission, of.permission_type),
    )


def _acl(of: AclCreation) -> Acl:
    return Acl(
        _value(ResourceType, of.resource_type),
        of.resource_name,
        of.principal,
        _value(Operation, of.operation),
        _value(Permission, of.permission_type),
        _value(PatternType, of.resource_pattern_type),
        of.host,
    )


def _value(of: type[_E], code: int) -> _E:
    """UNKNOWN for a code that is not known."""
    return of(code) if code in set(of) else of(0)


def _resource(acl: Acl) -> tuple[int, str, int]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def _described(acl: Acl) -> AclDescription:
    return AclDescription(acl.principal, acl.host, acl.operation, acl.permission)


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(0, None, *_resource(acl), acl.principal, acl.host, acl.operation, acl.permission)
