"""Clients over TLS: what they read, who they are by their certificates, and what happens when the files change."""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import confluent_kafka
import pytest
from asked_endpoint import Endpoint, response_of
from certificates import Authority
from served_endpoint import served, serving
from tiered_worlds import World, batches_of
from users_file import PASSWORDS, sasl_listener, user_file

from local_log.errors import Invalid
from local_log.os_disk import OsDisk
from tiering.endpoint.authentication.listener import Listener
from tiering.endpoint.authentication.principal_mapping import PrincipalMapping
from tiering.endpoint.authentication.sasl_server import SaslFailed
from tiering.endpoint.authentication.tls import Tls, TlsConfig
from tiering.endpoint.protocol.api_keys import FETCH, METADATA
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.request_context import ANONYMOUS, ConnectionContext, KafkaPrincipal, SecurityProtocol
from tiering.endpoint.server import Server

METADATA_REQUEST = write_request(RequestHeader(METADATA, 1, 99, "test"), MetadataRequest(topics=None))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def config(authority: Authority) -> TlsConfig:
    own = authority.signed("CN=localhost", "server.pem")
    return TlsConfig(own, own, authority.file, "none")


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["some archived dropped"], world.store)


def listener(config: TlsConfig, endpoint: Endpoint) -> Listener:
    return Listener(SecurityProtocol.SSL, None, Tls(config, OsDisk(), endpoint.said.append))


def connected(address: tuple[str, int], authority: Authority, own: str | None = None) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=authority.file)
    if own is not None:
        context.load_cert_chain(own)
    found = context.wrap_socket(socket.create_connection(address, timeout=20), server_hostname="localhost")
    found.settimeout(20)
    return found


def is_refused(address: tuple[str, int], authority: Authority, own: str | None) -> bool:
    """Whether the server ends the handshake. In TLS 1.3 a client learns it with its first request only."""
    try:
        with connected(address, authority, own) as client:
            client.sendall(METADATA_REQUEST)
            return client.recv(1) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def frame_from(of: socket.socket) -> bytes:
    data = bytearray()
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = of.recv(1 << 20)
        assert more, "the connection was closed"
        data += more
    return bytes(data)


def test_the_server_rests_while_a_client_says_nothing_more_in_its_handshake(
    endpoint: Endpoint, config: TlsConfig, authority: Authority
) -> None:
    """The client takes a long chain of certificates slowly: the server waits until it can write, and then until it can read."""
    with Path(config.certificates).open("ab") as chain:
        chain.write(100 * Path(authority.file).read_bytes())
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = ssl.create_default_context(cafile=authority.file).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    with serving(endpoint, listener(config, endpoint), send_buffer_bytes=4_096) as (server, address), socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(address)
        client.sendall(outgoing.read())
        assert until(lambda: writing(server) == [True])
        client.settimeout(1)
        with suppress(TimeoutError):
            while client.recv(1 << 16):
                pass
        assert until(lambda: writing(server) == [False])


def writing(server: Server) -> list[bool]:
    """Of each connection whether the server waits until its socket takes more bytes."""
    return [channel.is_writing for channel in server._channels.values()]


def until(holds: Callable[[], bool]) -> bool:
    """Whether something holds within ten seconds."""
    ends = monotonic() + 10
    while not (held := holds()) and monotonic() < ends:
        sleep(0.01)
    return held


def test_a_large_answer_of_buffers_and_files_arrives_whole(
    endpoint: Endpoint, world: World, config: TlsConfig, authority: Authority
) -> None:
    topics = [endpoint.topic(name, 11, FetchPartition(0, partition_max_bytes=1 << 30)) for name in ("g-big", "g-epochs")]
    with served(endpoint, listener(config, endpoint)) as address, connected(address, authority) as client:
        for topic in topics:
            client.sendall(write_request(RequestHeader(FETCH, 11, 99, "test"), FetchRequest(topics=(topic,))))
            answer = response_of(FETCH, 11, frame_from(client)).responses[0].partitions[0]
            assert b"".join(answer.records) == b"".join(
                b.body for b in batches_of(world.folders["local alone"], f"{topic.topic}-0")
            )


def test_a_client_that_reads_slowly_gets_all(endpoint: Endpoint, world: World, config: TlsConfig, authority: Authority) -> None:
    one = endpoint.topic("g-big", 11, FetchPartition(0, partition_max_bytes=1 << 30))
    with (
        served(endpoint, listener(config, endpoint), turn_bytes_max=10_000) as address,
        connected(address, authority) as slow,
        connected(address, authority) as quick,
    ):
        slow.sendall(write_request(RequestHeader(FETCH, 11, 99, "test"), FetchRequest(topics=(one,))))
        quick.sendall(METADATA_REQUEST)
        assert response_of(METADATA, 1, frame_from(quick)).topics
        answer = response_of(FETCH, 11, frame_from(slow)).responses[0].partitions[0]
    assert b"".join(answer.records) == b"".join(b.body for b in batches_of(world.folders["local alone"], "g-big-0"))


@pytest.mark.parametrize("security", ["SSL", "SASL_SSL"])
def test_a_consumer_of_librdkafka_reads(
    endpoint: Endpoint, config: TlsConfig, authority: Authority, tmp_path: Path, security: str
) -> None:
    of = listener(config, endpoint)
    if security == "SASL_SSL":
        of = replace(sasl_listener(user_file(tmp_path), SecurityProtocol.SASL_SSL), tls=of.tls)
    with served(endpoint, of) as (host, port):
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": f"{host}:{port}",
                "security.protocol": security,
                "ssl.ca.location": authority.file,
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": PASSWORDS["alice"],
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition("g-epochs", 0, 500)])
        message = consumer.poll(20)
        consumer.close()
    assert message is not None
    assert (message.error(), message.offset()) == (None, 500)
    # a client that closes may leave a handshake of a second connection unfinished
    assert [warning for warning in endpoint.said if "of a client that is gone" not in warning] == []


def test_a_client_s_certificate_says_who_it_is(
    endpoint: Endpoint, config: TlsConfig, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[ConnectionContext] = []

    def answer(frame: bytes, connection: ConnectionContext, context: object) -> list[bytes]:
        seen.append(connection)
        return [b"!"]

    monkeypatch.setattr("tiering.endpoint.server.handle_at_once", answer)
    config = replace(config, client_auth="requested", mapping=PrincipalMapping.of("RULE:^CN=([^,]*),O=Org$/$1/L,DEFAULT"))
    with served(endpoint, listener(config, endpoint)) as address:
        for own in (None, authority.signed("CN=Alice,O=Org", "alice.pem"), authority.signed("CN=Bob,OU=x", "bob.pem")):
            with connected(address, authority, own) as client:
                client.sendall(b"\0\0\0\x01x")
                assert client.recv(1) == b"!"
    assert [c.principal for c in seen] == [ANONYMOUS, KafkaPrincipal("alice"), KafkaPrincipal("CN=Bob,OU=x")]
    assert {c.security_protocol for c in seen} == {"SSL"}


def test_who_has_no_certificate_of_the_authority_is_not_let_in(
    endpoint: Endpoint, config: TlsConfig, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other").signed("CN=alice", "stranger.pem")
    with served(endpoint, listener(replace(config, client_auth="required"), endpoint)) as address:
        for own in (None, other):
            assert is_refused(address, authority, own)
        with connected(address, authority, authority.signed("CN=alice", "alice.pem")) as client:
            client.sendall(METADATA_REQUEST)
            assert frame_from(client)
    assert all("the TLS handshake failed" in message for message in endpoint.said)
    assert len(endpoint.said) == 2


@pytest.mark.parametrize("data", [METADATA_REQUEST, b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\x16\x03\x01\x02\x00\x01\x00"])
def test_what_is_not_tls_is_closed(endpoint: Endpoint, config: TlsConfig, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiering.endpoint.server.TICK_S", 0.05)
    with (
        served(endpoint, listener(config, endpoint), authentication_ms_max=100) as address,
        socket.create_connection(address, timeout=20) as client,
    ):
        client.sendall(data)
        with suppress(ConnectionError):
            while client.recv(1000):
                pass
    assert "the TLS handshake failed" in endpoint.said[0] or "has not authenticated within" in endpoint.said[0]


def test_versions_before_1_2_and_those_that_are_not_enabled_are_refused(
    endpoint: Endpoint, config: TlsConfig, authority: Authority
) -> None:
    with served(endpoint, listener(replace(config, versions=("TLSv1.3",)), endpoint)) as address:
        context = ssl.create_default_context(cafile=authority.file)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError), socket.create_connection(address, timeout=20) as client:
            context.wrap_socket(client, server_hostname="localhost")
        with connected(address, authority) as client:
            assert client.version() == "TLSv1.3"


def test_changed_files_are_used_for_new_connections_and_old_ones_live_on(
    endpoint: Endpoint, config: TlsConfig, authority: Authority, tmp_path: Path
) -> None:
    def server_certificate(client: ssl.SSLSocket) -> object:
        return client.getpeercert()["subject"]  # type: ignore[index]

    with served(endpoint, listener(config, endpoint)) as address, connected(address, authority) as old:
        first = server_certificate(old)
        authority.signed("CN=localhost,O=renewed", "server.pem")
        with connected(address, authority) as new:
            assert server_certificate(new) != first
        (tmp_path / "server.pem").write_text("no certificate")
        with connected(address, authority) as new:
            assert server_certificate(new) != first
        old.sendall(METADATA_REQUEST)
        assert frame_from(old)
    assert len(endpoint.said) == 1
    assert "goes on with the certificates of before" in endpoint.said[0]


def test_a_client_whose_authority_is_trusted_no_more_is_not_let_in(
    endpoint: Endpoint, config: TlsConfig, authority: Authority, tmp_path: Path
) -> None:
    former = Authority(tmp_path, "former")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(Path(former.file).read_bytes() + Path(authority.file).read_bytes())
    own = former.signed("CN=alice", "alice.pem")
    of = listener(replace(config, trusted=str(trusted), client_auth="required"), endpoint)
    with served(endpoint, of) as address:
        with connected(address, authority, own) as client:
            client.sendall(METADATA_REQUEST)
            assert frame_from(client)
        trusted.write_bytes(Path(authority.file).read_bytes())
        assert is_refused(address, authority, own)


@pytest.mark.parametrize("text", ["", "no certificate"])
def test_files_that_are_no_certificates_are_refused(tmp_path: Path, config: TlsConfig, text: str) -> None:
    (tmp_path / "bad.pem").write_text(text)
    bad = str(tmp_path / "bad.pem")
    for one in (replace(config, certificates=bad), replace(config, key=bad), replace(config, trusted=bad)):
        with pytest.raises(Invalid, match=r"bad\.pem.*expected PEM"):
            Tls(one, OsDisk(), print)


def test_a_certificate_whose_subject_cannot_be_read_is_nobody_s(config: TlsConfig) -> None:
    class Odd:
        """A peer whose certificate the TLS library takes, and the one that reads its subject does not."""

        def getpeercert(self, *, binary_form: bool) -> bytes:
            return b"0\x00"

    with pytest.raises(SaslFailed, match="certificate"):
        Tls(config, OsDisk(), print).principal(Odd())  # type: ignore[arg-type]
