"""Connections without TLS are kept where the server keeps them, and an answer that is not as expected is given to nobody."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from botocore import exceptions as sdk

from remote.store.s3.plain_connections import PlainConnections

BODY = b"0123456789" * 300_000
SIZE = len(BODY)
Script = list[list[bytes]]
"""What is sent on each connection, an answer a request; then the connection is closed."""


def part(body: bytes = BODY, status: str = "206 Partial Content", more: str = "", version: str = "1.1") -> bytes:
    return f"HTTP/{version} {status}\r\ncontent-LENGTH: {SIZE}\r\n{more}\r\n".encode() + body


@contextmanager
def scripted(script: Script) -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server, and the requests that it got."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answers in script:
                connection, _ = listener.accept()
                with connection:
                    for answer in answers:
                        asked.append(connection.recv(1 << 16))
                        connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/bucket/a%20key?x=y", asked
        thread.join(10)


def connections(read_timeout_s: float = 10) -> PlainConnections:
    return PlainConnections(5, read_timeout_s, 4)


def test_a_connection_is_used_again_as_long_as_both_sides_keep_it() -> None:
    script = [[part(), part(more="x-Sum: a:b\r\n")], [part(more="Connection: Close\r\n")], [part(version="1.0")], [part()]]
    with scripted(script) as (url, asked):
        of = connections()
        answers = [of.get(url, {"Range": "bytes=0-9", "X": f"{number}"}, SIZE) for number in range(2)]
        wait_until_closed(of)
        answers += [of.get(url, {"host": "elsewhere", "X": f"{number}"}, SIZE) for number in range(2, 5)]
    assert [answer is not None and answer.body == BODY for answer in answers] == [True] * 5
    assert answers[1] is not None
    assert answers[1].headers["x-sum"] == "a:b"
    host = url.split("/")[2].encode()
    assert asked[0] == b"GET /bucket/a%20key?x=y HTTP/1.1\r\nRange: bytes=0-9\r\nX: 0\r\nHost: " + host + b"\r\n\r\n"
    assert asked[4] == b"GET /bucket/a%20key?x=y HTTP/1.1\r\nhost: elsewhere\r\nX: 4\r\n\r\n"


def wait_until_closed(of: PlainConnections) -> None:
    """By the server, of the one connection that is kept."""
    [(_, connection)] = of._kept
    connection.recv(1, socket.MSG_PEEK)


@pytest.mark.parametrize(
    "answer",
    [
        part(status="200 OK"),
        part(status="503 Slow Down"),
        part().replace(b"content-LENGTH", b"X-Length"),
        part(more=f"Content-Length: {SIZE + 1}\r\n"),
    ],
)
def test_any_answer_but_the_expected_part_is_left_to_others(answer: bytes) -> None:
    with scripted([[answer[:200]]]) as (url, _):
        assert connections().get(url, {}, SIZE) is None


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", sdk.ConnectionClosedError),
        (b"HTTP/1.1 206 Part", sdk.ConnectionClosedError),
        (b"x" * (1 << 17), sdk.ConnectionClosedError),
        (part(b""), sdk.IncompleteReadError),
        (part(BODY[:-1]), sdk.IncompleteReadError),
    ],
)
def test_an_answer_that_breaks_off_is_an_error(answer: bytes, error: type[Exception]) -> None:
    with scripted([[answer]]) as (url, _), pytest.raises(error):
        connections().get(url, {}, SIZE)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 206", part(b""), part(BODY[:100_000]), part(BODY[:-1])])
def test_a_server_that_falls_silent_is_given_up(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        released = threading.Event()
        threading.Thread(target=answers_and_waits, args=(listener, answer, released.wait)).start()
        with pytest.raises(sdk.ReadTimeoutError):
            connections(read_timeout_s=0.1).get(f"http://127.0.0.1:{listener.getsockname()[1]}/key", {}, SIZE)
        released.set()


def answers_and_waits(listener: socket.socket, answer: bytes, until: Callable[[], object]) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(answer)
        until()


def test_a_server_that_is_not_there_is_an_error_of_connecting() -> None:
    with pytest.raises(sdk.EndpointConnectionError):
        connections().get("http://127.0.0.1:1/key", {}, SIZE)
