"""Access control lists as values: what is bound to a resource, and filters of such (Kafka's AclBinding and AclBindingFilter)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

WILDCARD: Final = "*"
EVERYBODY: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"


class ResourceType(IntEnum):
    """Kafka's ResourceType."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Kafka's PatternType. Of a binding it is LITERAL or PREFIXED."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """Kafka's AclOperation."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Kafka's AclPermissionType."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_IMPLIES: Final = {
    Operation.DESCRIBE: {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS},
}
"""By which other operations, where they are allowed, an operation is allowed, too."""


@dataclass(frozen=True, slots=True)
class Acl:
    """One binding. `principal` is `User:alice`, or `User:*` for everybody; `host` is an address, or `*`."""

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: Operation
    permission: Permission = Permission.ALLOW
    pattern_type: PatternType = PatternType.LITERAL
    host: str = WILDCARD

    def __str__(self) -> str:
        """As messages tell it."""
        resource = f"{self.resource_type.name}:{self.pattern_type.name}:{self.resource_name}"
        return f"{self.permission.name} {self.operation.name} on {resource} to {self.principal} from host {self.host}"

    def is_for(self, principal: str, host: str, operation: Operation) -> bool:
        """Whether it allows or denies this, where its resource matches."""
        if self.principal not in (principal, EVERYBODY) or self.host not in (host, WILDCARD):
            return False
        if self.operation is Operation.ALL or self.operation is operation:
            return True
        return self.permission is Permission.ALLOW and self.operation in _IMPLIES.get(operation, ())

    def problem(self) -> str:
        """Why there can be no such binding, empty if there can."""
        named = {
            "resourceType": self.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY),
            "patternType": self.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED),
            "operation": self.operation in (Operation.UNKNOWN, Operation.ANY),
            "permissionType": self.permission not in (Permission.DENY, Permission.ALLOW),
        }
        wrong = [name for name, is_wrong in named.items() if is_wrong]
        if wrong:
            return f"Invalid {wrong[0]}"
        if not self.resource_name:
            return "Invalid empty resource name"
        if self.resource_type is ResourceType.CLUSTER and self.resource_name != CLUSTER_NAME:
            return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return "" if ":" in self.principal else f"Could not parse principal from {self.principal!r}: expected User:NAME"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Finds bindings; None and ANY stand for all. MATCH finds what is in force for a resource of this name."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    @property
    def is_unknown(self) -> bool:
        """Whether it has a value that nobody knows."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    def matches(self, acl: Acl) -> bool:
        """Whether it finds this binding."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._has_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _has_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.resource_name == acl.resource_name
        if acl.pattern_type is PatternType.LITERAL:
            return acl.resource_name in (self.resource_name, WILDCARD)
        return self.resource_name.startswith(acl.resource_name)
