"""Users that are told and changed over the protocol."""

from dataclasses import replace
from hashlib import pbkdf2_hmac
from pathlib import Path

import pytest
from asked_endpoint import Endpoint
from users_file import PASSWORDS, user_file

from local_log.errors import Unreadable
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authentication.users import UserFile
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Acl, Operation, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.protocol.api_keys import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from tiering.endpoint.request_context import KafkaPrincipal

SHA_256, SHA_512 = 1, 2


class World:
    """An endpoint with users and ACLs, which is asked by an administrator."""

    def __init__(self, folder: Path) -> None:
        self.endpoint = Endpoint(folder, None)
        self.users = user_file(folder)
        (folder / "acls.json").write_bytes(write_acls([_may("User:reader", Operation.DESCRIBE)]))
        authorizer = Authorizer(super_users=frozenset({"User:admin"}))
        acls = AclFile(OsDisk(), OsWritableDisk(), str(folder / "acls.json"), self.endpoint.clock, authorizer, print)
        acls.load()
        self.endpoint.context = replace(self.endpoint.context, acls=acls, users=self.users)
        self.be("admin")

    def be(self, name: str) -> None:
        self.endpoint.connection = replace(self.endpoint.connection, principal=KafkaPrincipal(name))

    def alter(self, *changes: ScramCredentialDeletion | ScramCredentialUpsertion) -> dict[str, int]:
        deletions = tuple(one for one in changes if isinstance(one, ScramCredentialDeletion))
        upsertions = tuple(one for one in changes if isinstance(one, ScramCredentialUpsertion))
        request = AlterUserScramCredentialsRequest(deletions, upsertions)
        found = self.endpoint.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request).results
        assert all(bool(one.error_code) == bool(one.error_message) for one in found)
        return {one.user: one.error_code for one in found}

    def described(self, *names: str) -> list[DescribeUserScramCredentialsResult]:
        request = DescribeUserScramCredentialsRequest(tuple(map(UserName, names)) or None)
        found = self.endpoint.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
        return [replace(one, error_message=None) for one in found.results] or [found.error_code]


def _may(who: str, operation: Operation) -> Acl:
    return Acl(ResourceType.CLUSTER, CLUSTER_NAME, who, operation)


def kept(name: str, password: str, mechanism: int = SHA_512, iterations: int = 4096) -> ScramCredentialUpsertion:
    salted = pbkdf2_hmac("sha512" if mechanism == SHA_512 else "sha256", password.encode(), b"salt", iterations)
    return ScramCredentialUpsertion(name, mechanism, iterations, b"salt", salted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_users_are_told_without_what_is_secret(world: World) -> None:
    infos = (CredentialInfo(SHA_256, 4096), CredentialInfo(SHA_512, 4096))
    assert world.described() == [DescribeUserScramCredentialsResult(name, credential_infos=infos) for name in sorted(PASSWORDS)]
    assert world.described("bob", "eve", "alice", "alice") == [
        DescribeUserScramCredentialsResult("bob", credential_infos=infos),
        DescribeUserScramCredentialsResult("eve", ErrorCode.RESOURCE_NOT_FOUND),
        DescribeUserScramCredentialsResult("alice", ErrorCode.DUPLICATE_RESOURCE),
    ]


def test_a_user_that_is_added_or_changed_has_the_new_password(world: World) -> None:
    assert world.alter(kept("carol", "sings"), kept("alice", "awake", SHA_256)) == {"carol": 0, "alice": 0}
    assert world.users.has_password("carol", "sings")
    assert world.users.has_password("alice", "awake")
    assert world.described("carol")[0].credential_infos == (CredentialInfo(SHA_512, 4096),)
    assert world.alter(ScramCredentialDeletion("carol", SHA_512), ScramCredentialDeletion("bob", SHA_256)) == {
        "carol": 0,
        "bob": 0,
    }
    assert [one.user for one in world.described()] == ["alice", "bob"]
    assert UserFile(world.users.disk, world.users.writable, world.users.path, b"").iterations() == {
        "alice": {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096},
        "bob": {"SCRAM-SHA-512": 4096},
    }
    assert Path(world.users.path).stat().st_mode & 0o077 == 0


def test_what_is_wrong_with_one_user_changes_no_other(world: World) -> None:
    assert world.alter(
        ScramCredentialDeletion("eve", SHA_256),
        ScramCredentialDeletion("bob", SHA_256),
        kept("bob", "x"),
        kept("", "x"),
        kept("few", "x", iterations=4095),
        kept("many", "x", iterations=16385),
        kept("odd", "x", mechanism=3),
        kept("carol", "sings"),
    ) == {
        "eve": ErrorCode.RESOURCE_NOT_FOUND,
        "bob": ErrorCode.DUPLICATE_RESOURCE,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "odd": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "carol": ErrorCode.NONE,
    }
    assert world.users.users().keys() == {"alice", "bob", "carol"}
    assert world.users.has_password("bob", PASSWORDS["bob"])


def test_who_has_changed_which_users_is_told_without_what_is_secret(world: World) -> None:
    world.alter(kept("bob", "secret"), kept("", "nobody"))
    world.alter(ScramCredentialDeletion("bob", SHA_512))
    world.alter(ScramCredentialDeletion("bob", SHA_512))
    who = "Principal = User:admin from host = 192.0.2.1 by AlterUserScramCredentials: "
    assert world.endpoint.said == [f"{who}set SCRAM-SHA-512 of the user bob", f"{who}deleted SCRAM-SHA-512 of the user bob"]


def test_only_who_may_alter_the_cluster_changes_users(world: World) -> None:
    world.be("reader")
    assert len(world.described()) == 2
    assert world.alter(kept("carol", "x")) == {"carol": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    world.be("nobody")
    assert world.described() == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    world.endpoint.context = replace(world.endpoint.context, acls=None)  # everybody may do all
    assert world.alter(kept("carol", "x")) == {"carol": ErrorCode.SECURITY_DISABLED}
    assert world.users.users().keys() == PASSWORDS.keys()


def test_without_users_there_is_none_to_tell_or_to_change(world: World) -> None:
    world.endpoint.context = replace(world.endpoint.context, users=None)
    assert world.described() == [ErrorCode.NONE]
    assert world.described("alice")[0].error_code == ErrorCode.RESOURCE_NOT_FOUND
    assert world.alter(kept("carol", "x")) == {"carol": ErrorCode.SECURITY_DISABLED}


def test_a_file_that_another_process_changes_now_is_left_alone(world: World) -> None:
    lock = f"{world.users.path}.lock"
    assert world.users.writable.lock(lock)
    assert world.alter(kept("carol", "x")) == {"carol": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert "another process changes" in world.endpoint.said[0]
    world.users.writable.unlock(lock)
    assert world.alter(kept("carol", "x")) == {"carol": ErrorCode.NONE}


def test_a_file_that_cannot_be_written_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise Unreadable("the disk is full")

    monkeypatch.setattr(world.users.writable, "sync", fails)
    assert world.alter(kept("carol", "x"), kept("", "y")) == {
        "carol": ErrorCode.UNKNOWN_SERVER_ERROR,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }
    assert "the disk is full" in world.endpoint.said[0]
    assert world.users.users().keys() == PASSWORDS.keys()
