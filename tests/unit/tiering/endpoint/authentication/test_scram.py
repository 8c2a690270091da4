"""The exchanges of RFC 5802 and RFC 7677, and what must not succeed."""

from base64 import b64decode, b64encode

import pytest
from scram_client import ScramClient

from tiering.endpoint.authentication.sasl_server import SaslFailed
from tiering.endpoint.authentication.scram import MECHANISMS, SCRAM_SHA_256, ScramCredential, ScramMechanism, ScramServer

RFC_5802 = ScramMechanism("SCRAM-SHA-1", "sha1")


@pytest.mark.parametrize(
    ("mechanism", "salt", "client_nonce", "server_nonce", "proof", "signature"),
    [
        (
            RFC_5802,
            "QSXCR+Q6sek8bf92",
            "fyko+d2lbbFgONRv9qkxdawL",
            "3rfcNHYJY1ZVvWVs7j",
            "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        (
            SCRAM_SHA_256,
            "W22ZaJ0SNY7soEsUEjb6gQ==",
            "rOprNGfwEbeRWgbNEkqO",
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ],
)
def test_the_exchanges_of_the_rfcs(
    mechanism: ScramMechanism, salt: str, client_nonce: str, server_nonce: str, proof: str, signature: str
) -> None:
    credential = ScramCredential.of(mechanism, "pencil", b64decode(salt), 4096)
    server = ScramServer(mechanism, lambda name: credential, server_nonce)
    nonce = client_nonce + server_nonce
    assert server.evaluate(f"n,,n=user,r={client_nonce}".encode()) == f"r={nonce},s={salt},i=4096".encode()
    assert server.name is None
    assert server.evaluate(f"c=biws,r={nonce},p={proof}".encode()) == f"v={signature}".encode()
    assert server.name == "user"


@pytest.fixture(params=MECHANISMS.values(), ids=lambda mechanism: mechanism.name)
def mechanism(request: pytest.FixtureRequest) -> ScramMechanism:
    found: ScramMechanism = request.param
    return found


def server_of(mechanism: ScramMechanism, password: str = "pencil") -> ScramServer:
    credential = ScramCredential.of(mechanism, password, b"salt", 4096)
    return ScramServer(mechanism, lambda name: credential, "server")


def test_names_may_have_a_comma_and_an_equals_sign(mechanism: ScramMechanism) -> None:
    server, client = server_of(mechanism), ScramClient(mechanism, "a=b,c", "pencil")
    client.check(server.evaluate(client.final(server.evaluate(client.first()))))
    assert server.name == "a=b,c"


def test_a_wrong_password_fails_and_the_exchange_cannot_go_on(mechanism: ScramMechanism) -> None:
    server, client = server_of(mechanism), ScramClient(mechanism, "alice", "pen")
    final = client.final(server.evaluate(client.first()))
    with pytest.raises(SaslFailed, match="wrong password"):
        server.evaluate(final)
    with pytest.raises(SaslFailed):
        server.evaluate(final)
    assert server.name is None


def test_any_bit_of_the_final_message_counts(mechanism: ScramMechanism) -> None:
    client = ScramClient(mechanism, "alice", "pencil")
    final = client.final(server_of(mechanism).evaluate(client.first()))
    for place in range(0, len(final) - 2, 9):
        server = server_of(mechanism)
        server.evaluate(client.first())
        with pytest.raises(SaslFailed):
            server.evaluate(final[:place] + bytes([final[place] ^ 1]) + final[place + 1 :])
        assert server.name is None


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,n=alice",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,a=bob,n=alice,r=abc",
        b"n,,n=al,ice,r=abc",
        b"n,,n=alice,r=abc,tokenauth=true",
        b"\xff",
        b"n,,m=must,n=alice,r=abc",
    ],
)
def test_other_first_messages_are_refused(first: bytes) -> None:
    with pytest.raises(SaslFailed):
        server_of(SCRAM_SHA_256).evaluate(first)


def test_a_nonce_or_header_of_another_exchange_is_refused(mechanism: ScramMechanism) -> None:
    client = ScramClient(mechanism, "alice", "pencil")
    server = server_of(mechanism)
    final = client.final(server.evaluate(client.first()), nonce="client")
    with pytest.raises(SaslFailed, match="does not belong to its first"):
        server.evaluate(final)
    server = server_of(mechanism)
    final = client.final(server.evaluate(client.first()), binding=b64encode(b"y,,").decode())
    with pytest.raises(SaslFailed, match="does not belong to its first"):
        server.evaluate(final)


def test_a_nonce_that_comes_twice_is_refused_with_the_clients_that_send_it(mechanism: ScramMechanism) -> None:
    client, server = ScramClient(mechanism, "alice", "pencil"), server_of(mechanism)
    first = server.evaluate(client.first())
    nonce = first.decode().partition(",")[0].removeprefix("r=")
    with pytest.raises(SaslFailed, match="librdkafka before"):
        server.evaluate(client.final(first, nonce="client" + nonce))


def test_no_representation_shows_what_is_kept_of_a_password() -> None:
    credential = ScramCredential.of(SCRAM_SHA_256, "pencil", b"salt", 4096)
    assert repr(credential) == "ScramCredential(iterations=4096)"
