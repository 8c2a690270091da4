"""OAUTHBEARER: which tokens say who a client is, and which do not."""

import hmac
import json
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import SleptClock
from tokens import Provider

from local_log.errors import Invalid, LogError, Unavailable
from local_log.os_disk import OsDisk
from tiering.endpoint.authentication.jwks import AGAIN_MS, BYTES_MAX, FetchedKeys, FileKeys, check_url, fetch
from tiering.endpoint.authentication.oauthbearer import OAuthBearerServer
from tiering.endpoint.authentication.sasl_server import SaslFailed
from tiering.endpoint.authentication.token_verifier import TokenRules, TokenVerifier

RULES = TokenRules("https://id.example", ("kafka", "archive"))
CLOCK = SleptClock()


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture
def verifier(provider: Provider, tmp_path: Path) -> TokenVerifier:
    return TokenVerifier(FileKeys(OsDisk(), provider.write_keys(tmp_path / "keys.json")).keys, RULES, CLOCK)


def sent(token: str, head: str = "n,,") -> bytes:
    return f"{head}\x01auth=Bearer {token}\x01\x01".encode()


def seconds(more: int = 0) -> int:
    return CLOCK.now_ms() // 1000 + more


@pytest.mark.parametrize(("key", "algorithm"), [("rsa", "RS256"), ("rsa", "PS512"), ("ec", "ES256")])
def test_a_token_says_who_a_client_is_and_for_how_long(
    verifier: TokenVerifier, provider: Provider, key: str, algorithm: str
) -> None:
    server = OAuthBearerServer(verifier.verify)
    assert server.evaluate(sent(provider.token(CLOCK.now_ms(), key, algorithm))) == b""
    assert (server.name, server.expires_ms) == ("alice", seconds(600) * 1000)


def test_extensions_are_read_over_and_an_authorization_id_must_be_the_name(verifier: TokenVerifier, provider: Provider) -> None:
    token = provider.token(CLOCK.now_ms())
    server = OAuthBearerServer(verifier.verify)
    server.evaluate(f"n,a=alice,\x01auth=bearer {token}\x01logicalCluster=lkc-1\x01\x01".encode())
    assert server.name == "alice"
    with pytest.raises(SaslFailed, match="different from the token's principal name"):
        OAuthBearerServer(verifier.verify).evaluate(sent(token, "n,a=bob,"))


CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"exp": seconds(-31)}, "has expired"),
    ({"iat": seconds(31)}, "not valid yet"),
    ({"nbf": seconds(31)}, "not valid yet"),
    ({"exp": None}, "without the time"),
    ({"iat": None}, "without the time"),
    ({"exp": "tomorrow"}, "without the time"),
    ({"exp": True}, "without the time"),
    ({"iss": "https://other.example"}, "another issuer"),
    ({"iss": None}, "another issuer"),
    ({"aud": "other"}, "another audience"),
    ({"aud": None}, "another audience"),
    ({"aud": 7}, "another audience"),
    ({"aud": True}, "another audience"),
    ({"aud": {"kafka": 1}}, "another audience"),
    ({"aud": [["kafka"], {}]}, "another audience"),
    ({"iss": ["https://id.example"]}, "another issuer"),
    ({"nbf": "tomorrow"}, "nbf is no time"),
    ({"sub": None}, "whom it is for"),
    ({"sub": ["alice"]}, "whom it is for"),
    ({"sub": " "}, "whom it is for"),
    ({"sub": 7}, "whom it is for"),
]


@pytest.mark.parametrize(("claims", "problem"), CLAIMS)
def test_a_token_that_is_not_valid_is_refused_as_the_rfc_says(
    verifier: TokenVerifier, provider: Provider, claims: dict[str, Any], problem: str
) -> None:
    server, token = OAuthBearerServer(verifier.verify), provider.token(CLOCK.now_ms(), **claims)
    assert json.loads(server.evaluate(sent(token))) == {"status": "invalid_token"}
    with pytest.raises(SaslFailed, match=problem) as failed:
        server.evaluate(b"\x01")
    assert (failed.value.told, token in str(failed.value), server.name) == ('{"status": "invalid_token"}', False, None)


def test_the_skew_of_clocks_is_allowed_for_and_several_audiences_may_be_meant(
    verifier: TokenVerifier, provider: Provider
) -> None:
    for claims in ({"exp": seconds(-29)}, {"iat": seconds(29)}, {"aud": ["other", "archive"]}):
        assert verifier.verify(provider.token(CLOCK.now_ms(), **claims)).name == "alice"


def encoded(part: object) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def test_forged_tokens_are_refused(verifier: TokenVerifier, provider: Provider) -> None:
    good = provider.token(CLOCK.now_ms())
    header, claims, signature = good.split(".")
    public = provider.rsa.as_pem(private=False)
    confused = f"{encoded({'alg': 'HS256', 'kid': 'rsa'})}.{claims}"
    mac = urlsafe_b64encode(hmac.digest(public, confused.encode(), sha256)).rstrip(b"=").decode()
    forged = [
        f"{encoded({'alg': 'none'})}.{claims}.",
        f"{encoded({'alg': 'none', 'kid': 'rsa'})}.{claims}.{signature}",
        f"{confused}.{mac}",
        f"{header}.{encoded({'sub': 'admin'})}.{signature}",
        f"{header}.{claims}.{signature[:-4]}AAAA",
        Provider().token(CLOCK.now_ms()),
        provider.token(CLOCK.now_ms()).replace(header, encoded({"alg": "RS256", "kid": "ec"})),
        provider.token(CLOCK.now_ms()).replace(header, encoded({"alg": "RS256", "kid": "unknown"})),
        f"{encoded({'alg': 'RS256', 'crit': ['x'], 'x': 1, 'kid': 'rsa'})}.{claims}.{signature}",
        "a.b.c",
        "abc",
        f"{encoded([])}.{claims}.{signature}",
    ]
    for token in forged:
        with pytest.raises(SaslFailed):
            verifier.verify(token)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        b"\xff",
        b"n,,\x01auth=Bearer \x01\x01",
    ],
)
def test_what_is_no_first_message_is_refused(first: bytes, verifier: TokenVerifier) -> None:
    with pytest.raises(SaslFailed):
        OAuthBearerServer(verifier.verify).evaluate(first)


def test_keys_of_a_file_that_changes_are_read_again(verifier: TokenVerifier, provider: Provider, tmp_path: Path) -> None:
    other = Provider()
    assert verifier.verify(provider.token(CLOCK.now_ms())).name == "alice"
    other.write_keys(tmp_path / "keys.json")
    with pytest.raises(SaslFailed):
        verifier.verify(provider.token(CLOCK.now_ms()))
    assert verifier.verify(other.token(CLOCK.now_ms())).name == "alice"
    (tmp_path / "keys.json").write_text("damaged")
    with pytest.raises(LogError):
        verifier.verify(other.token(CLOCK.now_ms()))


def test_keys_of_an_address_are_fetched_seldom_and_for_a_key_that_is_new(provider: Provider) -> None:
    clock, said, answers = SleptClock(), list[str](), [Provider().key_set(), provider.key_set()]
    asked: list[str] = []

    def fetch_next(url: str) -> bytes:
        asked.append(url)
        if not answers:
            raise Unavailable("the provider is down")
        return answers.pop(0)

    keys = FetchedKeys("https://id.example/keys", clock, 3_600_000, said.append, fetch_next)
    first = keys.keys("rsa")
    assert keys.keys("new") is first
    clock.now += AGAIN_MS
    second = keys.keys("new")
    assert second is not first
    clock.now += AGAIN_MS
    assert keys.keys("new") is keys.keys("new") is keys.keys("rsa") is second
    clock.now += 3_600_000
    assert keys.keys("rsa") is keys.keys("rsa") is second
    assert len(asked) == 4
    assert said == ["tokens are checked with the keys of before: the provider is down"] * 2


def test_a_slow_provider_keeps_nobody_waiting_but_who_asks_it_and_is_left_alone_for_a_while(provider: Provider) -> None:
    clock, asked = SleptClock(), list[str]()
    is_asked, may_answer = threading.Event(), threading.Event()

    def fetch_slowly(url: str) -> bytes:
        asked.append(url)
        if len(asked) > 1:
            is_asked.set()
            assert may_answer.wait(10)
            clock.now += AGAIN_MS
            raise Unavailable("the provider is slow")
        return provider.key_set()

    keys = FetchedKeys("https://id.example/keys", clock, 3_600_000, lambda _: None, fetch_slowly)
    known = keys.keys("rsa")
    clock.now += AGAIN_MS
    with ThreadPoolExecutor(2) as pool:
        try:
            slow = pool.submit(keys.keys, "unknown")
            assert is_asked.wait(5)
            assert pool.submit(keys.keys, "rsa").result(5) is known
        finally:
            may_answer.set()
        assert slow.result(5) is known
    assert keys.keys("unknown") is known
    assert len(asked) == 2


def test_a_provider_that_never_answered_is_asked_again_after_a_while() -> None:
    clock = SleptClock()

    def fails(url: str) -> bytes:
        raise Unavailable("the provider is down")

    keys = FetchedKeys("https://id.example/keys", clock, 3_600_000, lambda _: None, fails)
    with pytest.raises(Unavailable, match="is down"):
        keys.keys(None)
    with pytest.raises(Unavailable, match="could not be fetched yet"):
        keys.keys(None)
    clock.now += AGAIN_MS
    with pytest.raises(Unavailable, match="is down"):
        keys.keys(None)


def test_keys_are_taken_from_addresses_that_nobody_can_forge() -> None:
    for url in ("https://id.example/keys", "http://127.0.0.1:8080/keys", "http://localhost/keys"):
        check_url(url)
    for url in ("http://id.example/keys", "ftp://id.example", "https://", "keys.json"):
        with pytest.raises(Invalid, match="https://"):
            check_url(url)


def test_what_is_fetched_is_limited_and_follows_no_redirection() -> None:
    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if self.path == "/moved" else 200)
            self.send_header("Location", "/keys?a=b")
            self.end_headers()
            self.wfile.write(b"x" * (BYTES_MAX + 1) if self.path == "/large" else self.path.encode())

        log_message: Callable[..., None] = lambda *_: None

    with HTTPServer(("127.0.0.1", 0), Pages) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{pages.server_port}"
        try:
            assert fetch(f"{address}/keys?a=b") == b"/keys?a=b"
            for path in ("/moved", "/large"):
                with pytest.raises(Unavailable, match="expected 200"):
                    fetch(address + path)
        finally:
            pages.shutdown()
            thread.join()
    with pytest.raises(Unavailable):
        fetch(f"{address}/keys")
