"""The file of access control lists, with the names that Kafka has for their fields.

    {"format": 1, "acls": [{"resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL",
                            "principal": "User:alice", "host": "*", "operation": "READ", "permissionType": "ALLOW"}]}

`patternType`, `host` and `permissionType` may be left out, and are then as above. A changed file is read again.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, TypeVar

from local_log.disk import Disk, WritableDisk
from local_log.errors import Corrupt, Newer
from local_log.formats.primitives import Buffer
from remote.clock import Time
from tiering.endpoint.authorization.acls import Acl, Operation, PatternType, Permission, ResourceType
from tiering.endpoint.authorization.authorizer import AclIndex, Authorizer
from tiering.endpoint.watched_file import WatchedFile

FORMAT: Final = 1

_E = TypeVar("_E", bound=IntEnum)


def read_acls(data: Buffer) -> list[Acl]:
    """The bindings of a file. Raises Corrupt, Newer."""
    try:
        content = json.loads(bytes(data))
        if content["format"] > FORMAT:
            raise Newer(f"a file of ACLs of format {content['format']}, and this version reads {FORMAT} at most; upgrade")
        acls = [_acl(number, body) for number, body in enumerate(content["acls"])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f'not a file of ACLs, {{"format": 1, "acls": […]}} ({type(e).__name__}: {e})') from e
    return acls


def write_acls(acls: Iterable[Acl]) -> bytes:
    """The bytes of the file."""
    rows = [json.dumps(_body(acl)) for acl in acls]
    return ('{"format": 1, "acls": [\n' + ",\n".join(rows) + "\n]}\n").encode()


def _acl(number: int, body: dict[str, Any]) -> Acl:
    unknown = body.keys() - _FIELDS
    if unknown:
        raise Corrupt(f"ACL {number} has {min(unknown)!r}, which is none of {', '.join(_FIELDS)}")
    acl = Acl(
        _named(ResourceType, body["resourceType"]),
        str(body["resourceName"]),
        str(body["principal"]),
        _named(Operation, body["operation"]),
        _named(Permission, body.get("permissionType", "ALLOW")),
        _named(PatternType, body.get("patternType", "LITERAL")),
        str(body.get("host", "*")),
    )
    if acl.problem():
        raise Corrupt(f"ACL {number}: {acl.problem()}")
    return acl


_FIELDS: Final = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")


def _body(acl: Acl) -> dict[str, str]:
    values = (
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
    )
    return dict(zip(_FIELDS, values, strict=True))


def _named(of: type[_E], text: str) -> _E:
    return of[text.upper()]


@dataclass(slots=True)
class AclFile:
    """The bindings of the file at `path`, which it hands to `authorizer`. `report` is told of a file that cannot be used."""

    disk: Disk
    writable: WritableDisk
    path: str
    clock: Time
    authorizer: Authorizer
    report: Callable[[str], object]
    _file: WatchedFile = field(init=False)

    def __post_init__(self) -> None:
        self._file = WatchedFile(self.disk, self.writable, self.path, self.clock, self._take, self.report)

    def _take(self, data: bytes) -> None:
        self.authorizer.index = AclIndex(read_acls(data))

    def load(self) -> None:
        """Reads the file. Raises LogError."""
        self._file.load()

    def look(self) -> None:
        """Reads the file again if it has changed; goes on with what was read before if it cannot be used."""
        self._file.look()

    def change(self, change: Callable[[tuple[Acl, ...]], Iterable[Acl]]) -> None:
        """Writes what `change` makes of the bindings. Raises LogError, OSError; nothing has changed then."""
        self._file.change(lambda: write_acls(dict.fromkeys(change(self.authorizer.index.acls))))
