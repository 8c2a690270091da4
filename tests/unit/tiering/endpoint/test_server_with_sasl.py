"""Clients on sockets that say who they are first."""

import socket
from pathlib import Path

import confluent_kafka
import pytest
from asked_endpoint import Endpoint, response_of
from served_endpoint import served
from tiered_worlds import World
from tokens import Provider
from users_file import PASSWORDS, sasl_listener, user_file

from local_log.os_disk import OsDisk
from tiering.endpoint.authentication.authenticator import SaslConfig
from tiering.endpoint.authentication.jwks import FileKeys
from tiering.endpoint.authentication.listener import Listener
from tiering.endpoint.authentication.oauthbearer import OAuthBearerServer
from tiering.endpoint.authentication.token_verifier import TokenRules, TokenVerifier
from tiering.endpoint.protocol.api_keys import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.request_context import ConnectionContext, KafkaPrincipal, SecurityProtocol


@pytest.fixture
def listener(tmp_path: Path) -> Listener:
    return sasl_listener(user_file(tmp_path))


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["some archived dropped"], world.store)


def sasl(address: tuple[str, int], mechanism: str, name: str, password: str) -> dict[str, object]:
    return {
        "bootstrap.servers": f"{address[0]}:{address[1]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_consumer_of_librdkafka_authenticates_and_reads(endpoint: Endpoint, listener: Listener, mechanism: str) -> None:
    with served(endpoint, listener) as address:
        own = {"group.id": "unused", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
        consumer = confluent_kafka.Consumer(sasl(address, mechanism, "alice", PASSWORDS["alice"]) | own)
        consumer.assign([confluent_kafka.TopicPartition("g-epochs", 0, 500)])
        message = consumer.poll(20)
        consumer.close()
    assert message is not None
    assert (message.error(), message.offset()) == (None, 500)
    assert endpoint.said == []


def test_a_consumer_of_librdkafka_authenticates_by_a_token(endpoint: Endpoint, tmp_path: Path) -> None:
    provider = Provider()
    keys = FileKeys(OsDisk(), provider.write_keys(tmp_path / "keys.json")).keys
    verify = TokenVerifier(keys, TokenRules("https://id.example", ("kafka",)), endpoint.clock).verify
    config = SaslConfig({"OAUTHBEARER": lambda: OAuthBearerServer(verify)})

    def token(given: str) -> tuple[str, float]:
        return provider.token(endpoint.clock.now_ms()), endpoint.clock.now_ms() / 1000 + 1e9

    with served(endpoint, Listener(SecurityProtocol.SASL_PLAINTEXT, config)) as address:
        own = {"group.id": "unused", "enable.auto.commit": False, "fetch.wait.max.ms": 10, "oauth_cb": token}
        consumer = confluent_kafka.Consumer(sasl(address, "OAUTHBEARER", "", "") | own)
        consumer.assign([confluent_kafka.TopicPartition("g-epochs", 0, 500)])
        message = consumer.poll(20)
        consumer.close()
    assert message is not None
    assert (message.error(), message.offset(), endpoint.said) == (None, 500, [])


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told_to_the_client(endpoint: Endpoint, listener: Listener, mechanism: str) -> None:
    told: list[str] = []
    with served(endpoint, listener, failed_authentication_delay_ms=1) as address:
        own = {"group.id": "unused", "error_cb": lambda error: told.append(str(error))}
        consumer = confluent_kafka.Consumer(sasl(address, mechanism, "alice", "guessed") | own)
        consumer.assign([confluent_kafka.TopicPartition("g-epochs", 0, 500)])
        for _ in range(100):
            if any("uthentication failed" in text for text in told):
                break
            consumer.poll(0.1)
        consumer.close()
    assert any("_AUTHENTICATION" in text and "uthentication failed" in text for text in told), told
    assert endpoint.said
    assert all("closed the connection of 127.0.0.1" in text and "guessed" not in text for text in endpoint.said), endpoint.said


def test_who_has_not_authenticated_is_answered_nothing_and_closed(endpoint: Endpoint, listener: Listener) -> None:
    request = write_request(RequestHeader(METADATA, 1, 99, "test"), MetadataRequest(topics=None))
    large = b"\0\x08\0\1"
    with served(endpoint, listener, failed_authentication_delay_ms=1) as address:
        for data in (request, large, b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"):
            with socket.create_connection(address, timeout=20) as client:
                client.sendall(data)
                assert client.recv(1) == b""


def test_requests_are_handed_on_with_the_principal(
    endpoint: Endpoint, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[ConnectionContext] = []

    def answer(frame: bytes, connection: ConnectionContext, context: object) -> list[bytes]:
        seen.append(connection)
        return [b"!"]

    monkeypatch.setattr("tiering.endpoint.server.handle_at_once", answer)
    with served(endpoint, listener) as address, socket.create_connection(address, timeout=20) as client:
        client.sendall(write_request(RequestHeader(SASL_HANDSHAKE, 1, 99, "test"), SaslHandshakeRequest("PLAIN")))
        assert response_of(SASL_HANDSHAKE, 1, client.recv(1000)).error_code == 0
        token = SaslAuthenticateRequest(f"\0bob\0{PASSWORDS['bob']}".encode())
        client.sendall(write_request(RequestHeader(SASL_AUTHENTICATE, 2, 99, "test"), token))
        assert response_of(SASL_AUTHENTICATE, 2, client.recv(1000)).error_code == 0
        client.sendall(b"\0\0\0\x01x")
        assert client.recv(1) == b"!"
    assert [(c.principal, c.listener_name, c.security_protocol) for c in seen] == [
        (KafkaPrincipal("bob"), "SASL_PLAINTEXT", "SASL_PLAINTEXT")
    ]
