from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any

import pytest
from archive_fakes import SleptClock
from asked_endpoint import response_of
from scram_client import ScramClient
from users_file import user_file

from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authentication.authenticator import Authentication, SaslAuthenticator, SaslConfig
from tiering.endpoint.authentication.plain import PlainServer
from tiering.endpoint.authentication.sasl_server import SaslFailed, SaslServer
from tiering.endpoint.authentication.scram import SCRAM_SHA_256, ScramServer
from tiering.endpoint.authentication.users import UserFile, write_users
from tiering.endpoint.protocol.api_keys import API_VERSIONS, APIS, METADATA, READING_APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.request_context import KafkaPrincipal

ALICE = KafkaPrincipal("alice")


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> UserFile:
    return user_file(tmp_path_factory.mktemp("users"))


class Token:
    """A mechanism whose credentials expire at a time: the token says who and when."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.expires_ms: int | None = None

    def evaluate(self, response: bytes) -> bytes:
        name, expires = response.decode().split()
        self.name, self.expires_ms = name, int(expires)
        return b""


class Connection:
    """One connection's authenticator and what it answers."""

    def __init__(self, users: UserFile, *, max_reauth_ms: int = 0) -> None:
        def scram() -> SaslServer:
            return ScramServer(SCRAM_SHA_256, lambda name: users.credential("SCRAM-SHA-256", name), "server")

        mechanisms = {"SCRAM-SHA-256": scram, "PLAIN": lambda: PlainServer(users.has_password), "TOKEN": Token}
        self.clock = SleptClock()
        self.authenticator = SaslAuthenticator(SaslConfig(mechanisms, max_reauth_ms), self.clock)
        self.failure = ""

    def send(self, api: Api, version: int, message: object) -> Any:
        frame = write_request(RequestHeader(api, version, 99, "test"), message)[4:]
        if not self.authenticator.takes(frame):
            return None
        found = self.authenticator.receive(frame)
        self.failure = found.failure
        return response_of(api, version, b"".join(found.parts)) if found.parts else None

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.send(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.send(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))

    def plain(self, name: str, password: str) -> Any:
        self.handshake("PLAIN")
        return self.token(f"\0{name}\0{password}".encode())


@pytest.fixture
def connection(users: UserFile) -> Connection:
    return Connection(users)


@pytest.mark.parametrize("version", range(3))
def test_a_client_authenticates_by_scram_and_then_asks_what_it_likes(connection: Connection, version: int) -> None:
    offered = connection.send(API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    assert len(offered.api_keys) == len(READING_APIS)
    assert connection.handshake("SCRAM-SHA-256").mechanisms == ("SCRAM-SHA-256", "PLAIN", "TOKEN")
    client = ScramClient(SCRAM_SHA_256, "alice", "in wonderland")
    first = connection.token(client.first(), version)
    assert connection.authenticator.principal is None
    last = connection.token(client.final(first.auth_bytes), version)
    client.check(last.auth_bytes)
    assert (last.error_code, last.session_lifetime_ms, connection.authenticator.principal) == (0, 0, ALICE)
    assert connection.send(METADATA, 9, MetadataRequest(topics=None)) is None
    assert connection.handshake("PLAIN") is None


def test_bare_tokens_follow_the_first_version_of_the_handshake(connection: Connection) -> None:
    assert connection.handshake("PLAIN", 0).error_code == 0
    assert connection.authenticator.receive(b"\0bob\0the builder") == Authentication([b"\0\0\0\0"])
    assert connection.authenticator.principal == KafkaPrincipal("bob")


@pytest.mark.parametrize(("name", "password"), [("alice", "guessed"), ("nobody", "guessed"), ("nobody", "in wonderland")])
def test_a_wrong_name_and_a_wrong_password_look_the_same(users: UserFile, name: str, password: str) -> None:
    plain, scram = Connection(users), Connection(users)
    answer = plain.plain(name, password)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Authentication failed: Invalid username or password",
    )
    scram.handshake("SCRAM-SHA-256")
    client = ScramClient(SCRAM_SHA_256, name, password)
    first = scram.token(client.first())
    assert first.auth_bytes.endswith(b",i=4096")
    answer = scram.token(client.final(first.auth_bytes))
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    for failed in (plain, scram):
        assert failed.authenticator.principal is None
        assert failed.failure
        assert password not in failed.failure


def test_the_salt_of_a_name_that_nobody_has_is_always_the_same(users: UserFile) -> None:
    assert users.credential("SCRAM-SHA-256", "nobody").salt == users.credential("SCRAM-SHA-256", "nobody").salt
    assert users.credential("SCRAM-SHA-256", "nobody").salt != users.credential("SCRAM-SHA-256", "no one").salt


@pytest.mark.parametrize(
    "token", [b"", b"\0\0", b"alice\0in wonderland", b"\0alice\0", b"\0\0secret", b"bob\0alice\0in wonderland"]
)
def test_other_tokens_of_plain_are_refused(connection: Connection, token: bytes) -> None:
    connection.handshake("PLAIN")
    assert connection.token(token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert connection.authenticator.principal is None


def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(connection: Connection) -> None:
    answer = connection.handshake("GSSAPI")
    assert (answer.error_code, answer.mechanisms) == (
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ("SCRAM-SHA-256", "PLAIN", "TOKEN"),
    )
    assert "'GSSAPI'" in connection.failure


def test_nothing_else_is_read_before_a_client_has_authenticated(connection: Connection) -> None:
    for api in APIS.values():
        if api not in (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE):
            found = connection.authenticator.receive(bytes([0, api.key]) + bytes(100))
            assert (found.parts, "has not authenticated" in found.failure) == ([], True)
    for data in (b"", b"\0", b"\x60\x82", b"\0\x11\0\x63" + bytes(20), b"\0\x11\0\1" + bytes(6) + b"\x7f\xff"):
        found = connection.authenticator.receive(data)
        assert (found.parts, bool(found.failure)) == ([], True)


def test_requests_out_of_turn_are_refused(users: UserFile) -> None:
    one = Connection(users)
    assert one.token(b"\0alice\0in wonderland") is None
    assert "before SaslHandshake" in one.failure
    one.send(API_VERSIONS, 0, ApiVersionsRequest())
    assert one.send(API_VERSIONS, 0, ApiVersionsRequest()) is None
    assert "after another one" in one.failure
    for api, message in ((API_VERSIONS, ApiVersionsRequest()), (SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"))):
        other = Connection(users)
        other.handshake("PLAIN")
        assert other.send(api, 1, message).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert "amid the exchange" in other.failure


def test_a_session_ends_after_connections_max_reauth_ms_unless_the_client_authenticates_anew(users: UserFile) -> None:
    one = Connection(users, max_reauth_ms=60_000)
    assert one.plain("alice", "in wonderland").session_lifetime_ms == 60_000
    one.clock.now += 50_000
    assert one.plain("alice", "in wonderland").session_lifetime_ms == 60_000
    assert one.handshake("PLAIN") is None  # within a second: an ordinary request, which is refused
    one.clock.now += 60_000
    assert one.send(METADATA, 9, MetadataRequest(topics=None)) is None
    one.clock.now += 1
    with pytest.raises(SaslFailed, match="session expired"):
        one.send(METADATA, 9, MetadataRequest(topics=None))


def test_a_session_ends_with_its_credentials(users: UserFile) -> None:
    one = Connection(users, max_reauth_ms=60_000)
    one.handshake("TOKEN")
    assert one.token(f"alice {one.clock.now + 9_000}".encode()).session_lifetime_ms == 9_000


@pytest.mark.parametrize("set_by_ms", [-3_600_000, 3_600_000])
def test_a_session_ends_no_earlier_and_no_later_when_the_wall_clock_is_set(users: UserFile, set_by_ms: int) -> None:
    one = Connection(users)
    one.handshake("TOKEN")
    one.token(f"alice {one.clock.now + 9_000}".encode())
    one.clock.set_by_ms = set_by_ms
    one.clock.now += 9_000
    assert one.send(METADATA, 9, MetadataRequest(topics=None)) is None
    one.clock.now += 1
    with pytest.raises(SaslFailed, match="session expired"):
        one.send(METADATA, 9, MetadataRequest(topics=None))


def test_nobody_becomes_another_user_or_takes_another_mechanism_by_authenticating_anew(users: UserFile) -> None:
    one = Connection(users, max_reauth_ms=60_000)
    one.plain("alice", "in wonderland")
    one.clock.now += 2_000
    answer = one.plain("bob", "the builder")
    assert answer.error_message == "Cannot change principals during re-authentication from User:alice: User:bob"
    assert (one.authenticator.principal, bool(one.failure)) == (ALICE, True)
    two = Connection(users, max_reauth_ms=60_000)
    two.plain("alice", "in wonderland")
    two.clock.now += 2_000
    two.handshake("SCRAM-SHA-256")
    assert two.token(b"n,,n=alice,r=x").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def mutated(data: bytes, random: Random) -> bytes:
    found = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        place = random.randrange(len(found) + 1)
        found[place : place + random.randrange(4)] = random.randbytes(random.randrange(4))
    return bytes(found)


def test_mutated_exchanges_authenticate_nobody_and_are_answered_or_closed(users: UserFile) -> None:
    random, outcomes = Random(18), set()
    client = ScramClient(SCRAM_SHA_256, "alice", "guessed")
    tokens = {
        "PLAIN": [b"\0alice\0guessed"],
        "SCRAM-SHA-256": [client.first(), client.final(b"r=clientserver,s=YWxpY2U=,i=4096")],
    }
    for _ in range(400):
        one, mechanism, version = Connection(users), random.choice(list(tokens)), random.randrange(2)
        messages: list[tuple[Api, int, object]] = [(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))]
        messages += [(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)) for token in tokens[mechanism]]
        frames = [write_request(RequestHeader(api, of, 99, "test"), message)[4:] for api, of, message in messages]
        if version == 0:
            frames[1:] = tokens[mechanism]
        spoiled = random.randrange(len(frames))
        for number, frame in enumerate(frames):
            found = one.authenticator.receive(mutated(frame, random) if number == spoiled else frame)
            assert found.parts or found.failure
            outcomes.add((bool(found.parts), bool(found.failure)))
            if found.failure:
                break
        assert one.authenticator.principal is None
    assert len(outcomes) == 3


def test_a_file_of_users_that_changes_is_read_again(users: UserFile, tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    path.write_bytes(write_users({}))
    file = UserFile(OsDisk(), OsWritableDisk(), str(path), b"secret")
    assert not file.has_password("alice", "in wonderland")
    path.write_bytes(write_users(users.users()))
    assert file.has_password("alice", "in wonderland")
    assert not file.has_password("alice", "the builder")


def test_no_representation_shows_a_token_or_a_password(users: UserFile) -> None:
    request = SaslAuthenticateRequest(b"\0alice\0in wonderland")
    assert "wonderland" not in repr(request)
    assert "wonderland" not in repr(Authentication([b"wonderland"]))
    assert "salt" not in repr(users)
