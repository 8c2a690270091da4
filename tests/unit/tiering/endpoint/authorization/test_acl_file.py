from pathlib import Path

import pytest
from archive_fakes import SleptClock

from local_log.errors import Corrupt, LogError
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authorization.acl_file import AclFile, read_acls, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, PatternType, Permission, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.watched_file import LOOK_MS

ORDERS = Acl(ResourceType.TOPIC, "orders", "User:alice", Operation.READ)
GROUPS = Acl(ResourceType.GROUP, "g", "User:*", Operation.ALL, Permission.DENY, PatternType.PREFIXED, "192.0.2.1")


def test_what_is_written_is_read() -> None:
    assert read_acls(write_acls([ORDERS, GROUPS])) == [ORDERS, GROUPS]
    assert read_acls(write_acls([])) == []


def test_what_is_left_out_is_as_usual() -> None:
    acl = b'{"resourceType": "topic", "resourceName": "orders", "principal": "User:alice", "operation": "Read"}'
    assert read_acls(b'{"format": 1, "acls": [' + acl + b"]}") == [ORDERS]


@pytest.mark.parametrize(
    "acl",
    [
        '{"resourceType": "TOPIC"}',
        '{"resourceType": "TOPICS", "resourceName": "a", "principal": "User:a", "operation": "READ"}',
        '{"resourceType": "ANY", "resourceName": "a", "principal": "User:a", "operation": "READ"}',
        '{"resourceType": "TOPIC", "resourceName": "", "principal": "User:a", "operation": "READ"}',
        '{"resourceType": "TOPIC", "resourceName": "a", "principal": "a", "operation": "READ"}',
        '{"resourceType": "TOPIC", "resourceName": "a", "principal": "User:a", "operation": "ANY"}',
        '{"resourceType": "TOPIC", "resourceName": "a", "principal": "User:a", "operation": "READ", "patternType": "MATCH"}',
        '{"resourceType": "TOPIC", "resourceName": "a", "principal": "User:a", "operation": "READ", "hosts": "*"}',
        '{"resourceType": "CLUSTER", "resourceName": "a", "principal": "User:a", "operation": "READ"}',
        "[]",
        "1",
    ],
)
def test_what_is_no_acl_is_refused(acl: str) -> None:
    with pytest.raises(Corrupt):
        read_acls(f'{{"format": 1, "acls": [{acl}]}}'.encode())


def test_a_changed_file_is_read_again_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    path, clock, said, authorizer = tmp_path / "acls.json", SleptClock(), list[str](), Authorizer()
    path.write_bytes(write_acls([ORDERS]))
    file = AclFile(OsDisk(), OsWritableDisk(), str(path), clock, authorizer, said.append)
    file.load()
    assert authorizer.index.acls == (ORDERS,)
    path.write_bytes(write_acls([ORDERS, GROUPS]))
    clock.now += LOOK_MS
    file.look()
    assert authorizer.index.acls == (ORDERS, GROUPS)
    path.write_text("damaged")
    for _ in range(3):
        clock.now += LOOK_MS
        file.look()
    assert authorizer.index.acls == (ORDERS, GROUPS)
    assert len(said) == 1
    assert "acls.json" in said[0]
    with pytest.raises(LogError):
        file.change(lambda acls: [*acls, ORDERS])
    path.write_bytes(write_acls([GROUPS]))
    file.change(lambda acls: [*acls, ORDERS, ORDERS])
    assert read_acls(path.read_bytes()) == [GROUPS, ORDERS] == list(authorizer.index.acls)
    assert [one.name for one in tmp_path.iterdir()] == ["acls.json"]
