"""An endpoint with ACLs, asked by alice, who may read one topic and use some groups; and the codes that she is answered."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from asked_endpoint import Endpoint
from tiered_worlds import World

from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, PatternType, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.request_context import KafkaPrincipal

ALICE = "User:alice"
MINE, OTHER, NOWHERE = "g-txn", "g-epochs", "nowhere"
TOPIC_FAILED, GROUP_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
READS = Acl(ResourceType.TOPIC, MINE, ALICE, Operation.READ)
ADMIN = KafkaPrincipal("admin")


def endpoint_of_alice(world: World, tmp_path: Path) -> Endpoint:
    """Asked by alice, who may read one topic and use the groups whose names begin with `mine`."""
    found = Endpoint(world.folders["some archived dropped"], world.store)
    groups = Acl(ResourceType.GROUP, "mine", ALICE, Operation.READ, pattern_type=PatternType.PREFIXED)
    path = tmp_path / "acls.json"
    path.write_bytes(write_acls([READS, groups]))
    authorizer = Authorizer(super_users=frozenset({str(ADMIN)}))
    acls = AclFile(OsDisk(), OsWritableDisk(), str(path), found.clock, authorizer, found.said.append)
    acls.load()
    found.context = replace(found.context, acls=acls)
    found.connection = replace(found.connection, principal=KafkaPrincipal("alice"))
    return found


def as_admin(endpoint: Endpoint) -> Endpoint:
    endpoint.connection = replace(endpoint.connection, principal=ADMIN)
    return endpoint


def codes(answers: Any, name: str = "name") -> dict[str, int]:
    return {getattr(one, name): one.error_code for one in answers}


def first_codes(topics: Any, partitions: str = "partitions", name: str = "name") -> dict[str, int]:
    return {getattr(one, name): getattr(one, partitions)[0].error_code for one in topics}


def id_of(endpoint: Endpoint, name: str) -> str:
    known = endpoint.context.logs.topic(name)
    assert known is not None
    return known.id
