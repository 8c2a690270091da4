"""Whether somebody may do something (Kafka's StandardAuthorizer).

Of the bindings whose resource matches (literally, by prefix or as `*`), one that denies prevails over all that allow. Where none
of them is for the client and the operation, the answer is no; only for a resource without any binding it is what
`allow.everyone.if.no.acl.found` says. Super users may do everything.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from tiering.endpoint.authorization.acls import WILDCARD, Acl, Operation, PatternType, Permission, ResourceType
from tiering.endpoint.request_context import KafkaPrincipal

DECIDED_MAX: Final = 10_000
_NAME_MAX: Final = 249
"""As long as a topic's name may be: what is asked about longer ones is not remembered."""

Resource = tuple[ResourceType, str]


class AclIndex:
    """Bindings by resource, and what was decided by them. For many threads."""

    def __init__(self, acls: Iterable[Acl]) -> None:
        self.acls = tuple(dict.fromkeys(acls))
        self._literal: defaultdict[Resource, list[Acl]] = defaultdict(list)
        self._prefixed: defaultdict[Resource, list[Acl]] = defaultdict(list)
        for acl in self.acls:
            found = self._literal if acl.pattern_type is PatternType.LITERAL else self._prefixed
            found[acl.resource_type, acl.resource_name].append(replace(acl, host=normal_host(acl.host)))
        self._lengths = sorted({len(name) for _, name in self._prefixed})
        self._decided: dict[tuple[object, ...], bool | None] = {}

    def decision(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool | None:
        """Whether the operation is allowed; None if no binding is for the resource at all."""
        asked = (principal, host, operation, resource)
        if asked in (known := self._decided):
            return known[asked]
        found = _decide(list(self._matching(resource)), principal, host, operation)
        if len(resource[1]) <= _NAME_MAX:
            if len(known) >= DECIDED_MAX:
                self._decided = known = {}  # another thread may look into the former one
            known[asked] = found
        return found

    def _matching(self, resource: Resource) -> Iterator[Acl]:
        of, name = resource
        yield from self._literal.get(resource, ())
        if name != WILDCARD:
            yield from self._literal.get((of, WILDCARD), ())
        for length in self._lengths:
            if length <= len(name):
                yield from self._prefixed.get((of, name[:length]), ())


def _decide(matching: list[Acl], principal: str, host: str, operation: Operation) -> bool | None:
    found = {acl.permission for acl in matching if acl.is_for(principal, host, operation)}
    return None if not matching else Permission.ALLOW in found and Permission.DENY not in found


@dataclass(slots=True)
class Authorizer:
    """For many threads. Whoever has the bindings puts a new `index` here when they change."""

    index: AclIndex = field(default_factory=lambda: AclIndex(()))
    super_users: frozenset[str] = frozenset()
    """`super.users`, such as `User:admin`."""
    allows_unbound: bool = False
    """`allow.everyone.if.no.acl.found`."""

    def authorize(self, principal: KafkaPrincipal, host: str, operation: Operation, of: ResourceType, name: str) -> bool:
        """Whether a client at this address may do this to the resource."""
        who = str(principal)
        if who in self.super_users:
            return True
        decided = self.index.decision(who, normal_host(host), operation, (of, name))
        return self.allows_unbound if decided is None else decided


@lru_cache(maxsize=10_000)
def normal_host(host: str) -> str:
    """An address in one form: Java writes those of version 6 at length, and clients of version 4 may come as version 6."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
