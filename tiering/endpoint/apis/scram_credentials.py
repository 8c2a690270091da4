"""DescribeUserScramCredentials and AlterUserScramCredentials, over the file of users (Kafka's ScramControlManager)."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from local_log.errors import LogError
from tiering.endpoint.apis.auth_helper import NOT_AUTHORIZED, is_authorized, tell_changes
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.scram_credentials import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tiering.endpoint.request_context import RequestContext

_NO_USERS: Final = "there are no users here: give the endpoint a file of them"
_NO_AUTHORIZER: Final = "users are changed where ACLs say who may do it: give the endpoint a file of these"
_NUMBERS: Final = {name: number for number, name in MECHANISMS.items()}

_Problem = tuple[ErrorCode, str]
_Change = ScramCredentialDeletion | ScramCredentialUpsertion


def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, request_context: RequestContext, context: Context
) -> DescribeUserScramCredentialsResponse:
    """The users asked for, or all, without what is secret. Raises LogError."""
    if not is_authorized(context, request_context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=NOT_AUTHORIZED
        )
    known = context.users.iterations() if context.users is not None else {}
    asked = Counter(user.name for user in request.users or ()) or Counter(sorted(known))
    return DescribeUserScramCredentialsResponse(results=tuple(_described(name, asked[name], known) for name in asked))


def _described(name: str, count: int, known: Mapping[str, Mapping[str, int]]) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(name, ErrorCode.DUPLICATE_RESOURCE, f"the user {name} is asked for twice")
    if name not in known:
        return DescribeUserScramCredentialsResult(name, ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name}")
    infos = (CredentialInfo(_NUMBERS[mechanism], iterations) for mechanism, iterations in sorted(known[name].items()))
    return DescribeUserScramCredentialsResult(name, credential_infos=tuple(infos))


def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, request_context: RequestContext, context: Context
) -> AlterUserScramCredentialsResponse:
    """Changes the file of users: each user that nothing is wrong with, all of them or none. Raises LogError."""
    changes: tuple[_Change, ...] = (*request.deletions, *request.upsertions)
    names = tuple(dict.fromkeys(change.name for change in changes))
    refusal = _refusal(request_context, context)
    if refusal is not None or context.users is None:
        problems: dict[str, _Problem] = dict.fromkeys(names, refusal or (ErrorCode.SECURITY_DISABLED, _NO_USERS))
    else:
        problems = _problems(changes, context.users.iterations())
        deletions = [one for one in request.deletions if one.name not in problems]
        upsertions = [one for one in request.upsertions if one.name not in problems]
        try:
            if deletions or upsertions:
                context.users.change(deletions, upsertions)
                tell_changes(context, request_context, (_told(one) for one in changes if one.name not in problems))
        except (LogError, OSError) as e:
            context.report(f"the file of users is not changed: {e}")
            failed = (ErrorCode.UNKNOWN_SERVER_ERROR, "the file of users cannot be changed; the endpoint's log says why")
            problems = dict.fromkeys(names, failed) | problems
    nothing = (ErrorCode.NONE, None)
    return AlterUserScramCredentialsResponse(
        results=tuple(AlterUserScramCredentialsResult(name, *problems.get(name, nothing)) for name in names)
    )


def _told(change: _Change) -> str:
    done = "deleted" if isinstance(change, ScramCredentialDeletion) else "set"
    return f"{done} {MECHANISMS[change.mechanism]} of the user {change.name}"


def _refusal(request_context: RequestContext, context: Context) -> _Problem | None:
    if not is_authorized(context, request_context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, NOT_AUTHORIZED
    return None if context.acls is not None else (ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)


def _problems(changes: tuple[_Change, ...], known: Mapping[str, Mapping[str, int]]) -> dict[str, _Problem]:
    """What is wrong with the changes, by user."""
    found: dict[str, _Problem] = {}
    for change in changes:
        problem = _problem(change, known)
        if problem is not None:
            found.setdefault(change.name, problem)
    for name, count in Counter(change.name for change in changes).items():
        if count > 1 and name not in found:
            found[name] = ErrorCode.DUPLICATE_RESOURCE, "the request changes this user twice"
    return found


def _problem(change: _Change, known: Mapping[str, Mapping[str, int]]) -> _Problem | None:
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user needs a name"
    if change.mechanism not in MECHANISMS:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no mechanism of SCRAM with the number {change.mechanism}"
    if isinstance(change, ScramCredentialDeletion):
        if MECHANISMS[change.mechanism] not in known.get(change.name, ()):
            return ErrorCode.RESOURCE_NOT_FOUND, f"the user has nothing for {MECHANISMS[change.mechanism]}"
    elif not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, f"iterations are {ITERATIONS_MIN} to {ITERATIONS_MAX}"
    return None
