"""Whom the agent answers over HTTP, and whom it hangs up on."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from remote.clock import stopwatch
from tiering.agent.http import server as http_server
from tiering.agent.http.guard import FORWARDED, Guard
from tiering.agent.http.server import CONNECTIONS_MAX, HEAD_BYTES_MAX, HttpServer, Page

TOKEN = "a-token-that-nobody-guesses"  # it opens nothing
Ask = Callable[..., int]


class Served:
    """A server with a page to read and one that counts how often something was changed."""

    def __init__(self, guard: Guard) -> None:
        self.changed = 0
        self.server = HttpServer("127.0.0.1:0", {("GET", "/status"): lambda: Page(b"{}"), ("POST", "/pause"): self.change}, guard)
        self.server.start()
        self.port = int(self.server.address.rpartition(":")[2])

    def change(self) -> Page:
        self.changed += 1
        return Page(b"{}")

    def raw(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as client:
            client.sendall(request)
            told = b""
            try:
                while more := client.recv(4096):
                    told += more
            except ConnectionResetError:
                pass
            return told

    def asked(self, method: str, *headers: str) -> int:
        """The status of an answer, 0 for none."""
        path = "/status" if method == "GET" else "/pause"
        told = self.raw("\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode())
        return int(told.split(None, 2)[1]) if told else 0


@pytest.fixture
def served() -> Iterator[Served]:
    one = Served(Guard(frozenset({"broker-1.example"})))
    yield one
    one.server.close()


@pytest.fixture
def guarded() -> Iterator[Served]:
    one = Served(Guard(token=TOKEN))
    yield one
    one.server.close()


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9327", "127.0.0.1:9327", "[::1]:9327", "broker-1.example:9327", "localhost."]
)
@pytest.mark.slow
def test_by_its_own_names_it_is_asked(served: Served, host: str) -> None:
    assert served.asked("GET", f"Host: {host}") == 200
    assert served.asked("POST", f"Host: {host}") == 200


@pytest.mark.parametrize(
    "headers",
    [
        ("Host: evil.example",), ("Host: localhost.evil.example",), ("Host: 10.0.0.1",), ("Host:",), (),
        ("Host: localhost", "Host: evil.example"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_by_a_name_that_is_not_its_own_nobody_is_answered(served: Served, headers: tuple[str, ...]) -> None:
    assert served.asked("GET", *headers) == 421
    assert served.asked("POST", *headers) == 421
    assert served.changed == 0


def test_a_web_site_a_proxy_and_who_lacks_the_token_change_nothing(served: Served, guarded: Served) -> None:
    for name in FORWARDED:
        assert served.asked("POST", "Host: localhost", f"{name}: 203.0.113.9") == 403
        assert guarded.asked("POST", "Host: localhost", f"{name}: 203.0.113.9") == 401
    for one in (served, guarded):
        right = f"Authorization: Bearer {TOKEN}"
        assert one.asked("POST", "Host: localhost", "Origin: http://localhost:8080", right) == 403
        assert one.asked("POST", "Host: localhost", "Sec-Fetch-Site: cross-site", right) == 403
        assert one.asked("GET", "Host: localhost", "Via: 1.1 proxy") == 200
    for wrong in ("Bearer wrong", f"Basic {TOKEN}", "Bearer ", TOKEN):
        assert guarded.asked("POST", "Host: localhost", f"Authorization: {wrong}") == 401
    assert (served.changed, guarded.changed) == (0, 0)


def test_its_own_page_in_a_browser_may_change_something(served: Served, guarded: Served) -> None:
    own = ("Host: localhost:9327", "Origin: http://localhost:9327")
    right = f"Authorization: Bearer {TOKEN}"
    assert served.asked("POST", *own) == served.asked("POST", *own, "Sec-Fetch-Site: same-origin") == 200
    assert guarded.asked("POST", *own, right) == 200
    assert guarded.asked("POST", *own) == 401
    assert served.asked("POST", *own, "Sec-Fetch-Site: same-site") == 403
    assert served.changed == 2


def test_of_a_page_behind_a_proxy_that_changes_the_host_the_token_is_wanted(served: Served, guarded: Served) -> None:
    behind = ("Host: localhost", "Origin: https://proxy.example", "Sec-Fetch-Site: same-origin")
    assert served.asked("POST", *behind) == 403
    assert guarded.asked("POST", *behind) == 401
    right = f"Authorization: Bearer {TOKEN}"
    assert guarded.asked("POST", *behind, right) == 200
    assert guarded.asked("POST", *behind[:2], right) == 403, "nobody says that it is the same site"
    assert guarded.asked("POST", "Host: localhost", "Origin: null", "Sec-Fetch-Site: cross-site", right) == 403
    assert (served.changed, guarded.changed) == (0, 1)


def test_who_knows_the_token_may_come_through_a_proxy(guarded: Served) -> None:
    assert guarded.asked("POST", "Host: localhost", f"Authorization: Bearer {TOKEN}", "Via: 1.1 proxy") == 200
    assert guarded.changed == 1


def test_without_a_token_nothing_is_changed_but_on_loopback() -> None:
    headers = {"host": ("10.0.0.1",)}
    for own, peer in (("10.0.0.1", "10.0.0.1"), ("10.0.0.1", "127.0.0.1"), ("127.0.0.1", "10.0.0.2")):
        refusal = Guard().refuses_change(headers, own, peer)
        assert refusal is not None
        assert "agent.http.token.file" in refusal.text
    assert Guard().refuses_change(headers, "::ffff:127.0.0.1", "::1%lo") is None
    known = {**headers, "authorization": (f"bearer {TOKEN}",)}
    assert Guard(token=TOKEN).refuses_change(known, "10.0.0.1", "10.0.0.2") is None
    assert Guard().refuses(headers, "10.0.0.1") is None, "the address at which it was reached"


def test_a_second_request_hidden_behind_the_first_is_not_heard(served: Served) -> None:
    hidden = b"POST /pause HTTP/1.1\r\nHost: localhost\r\n\r\n"
    first = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert b" 404 " in served.raw(first + hidden).split(b"\r\n")[0]
    assert served.changed == 0


def test_who_says_too_much_is_hung_up_on(served: Served) -> None:
    assert served.asked("GET", "Host: localhost", "X: " + "a" * 8_000) == 200
    assert served.raw(b"GET /status HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (2 * HEAD_BYTES_MAX)) == b""


def test_who_comes_too_many_is_not_kept(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S_MAX", 120)
    with ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=30))
            client.sendall(b"GET /status HTTP/1.1\r\nX: ")
        assert served.asked("GET", "Host: localhost") == 0


def test_who_trickles_is_hung_up_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S_MAX", 0.5)
    with socket.create_connection(("127.0.0.1", served.port), timeout=0.1) as client:
        until_s = stopwatch() + 60
        while stopwatch() < until_s:
            try:
                client.sendall(b"a")
                if not client.recv(1):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert stopwatch() < until_s
