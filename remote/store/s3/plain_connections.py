"""GETs over HTTP without TLS whose body comes into its memory by a call or two.

By botocore's connections a body of megabytes comes in dozens of pieces, each of which costs two calls of the kernel and two waits
for the interpreter. An answer that is not the expected one is not interpreted here.
"""

import socket
import struct
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from botocore import exceptions as sdk

from remote.buffer_pool import BufferPool

HEAD_BYTES_MAX: Final = 64 << 10
WAKING_BYTES: Final = 2 << 20
"""So many bytes wake who receives a body, and not each packet: that costs as much as to copy them."""
BUFFERS_KEPT_MAX: Final = 4
_END: Final = b"\r\n\r\n"


class Answer(NamedTuple):
    """The body of an answer, and its headers by their names in small letters."""

    body: memoryview
    headers: Mapping[str, str]


class PlainConnections:
    """To any servers, for many threads; at most `kept_max` that nobody uses are kept open."""

    def __init__(self, connect_timeout_s: float, read_timeout_s: float, kept_max: int) -> None:
        self._connect_timeout_s, self._read_timeout_s = connect_timeout_s, read_timeout_s
        self._kept: deque[tuple[str, socket.socket]] = deque()
        """By the address."""
        self._kept_max = kept_max
        self._buffers = BufferPool(BUFFERS_KEPT_MAX)
        weakref.finalize(self, _close, self._kept)

    def get(self, url: str, headers: Mapping[str, str], size: int) -> Answer | None:
        """The answer to a GET if it is a part of `size` bytes, else None. Raises the SDK's errors."""
        to = urlsplit(url)
        try:
            connection = self._connected(to)
        except OSError as e:
            raise sdk.EndpointConnectionError(endpoint_url=url, error=e) from e
        try:
            connection.sendall(_request(to, headers))
            head, first = _received_head(connection)
            status, found = _parsed(head)
            is_whole = found.get("content-length") == str(size) and "transfer-encoding" not in found
            if status[1:2] != ["206"] or not is_whole or len(first) > size:
                connection.close()
                return None
            body = self._buffers.take(size)
            _receive(connection, first, body)
        except BlockingIOError as e:
            connection.close()
            raise sdk.ReadTimeoutError(endpoint_url=url, error=e) from e
        except OSError as e:
            connection.close()
            raise sdk.ConnectionClosedError(endpoint_url=url, error=e) from e
        is_kept = status[0] == "HTTP/1.1" and found.get("connection", "").lower() != "close"
        if is_kept and len(self._kept) < self._kept_max:
            self._kept.append((to.netloc, connection))
        else:
            connection.close()
        return Answer(body, found)

    def _connected(self, to: SplitResult) -> socket.socket:
        for _ in range(len(self._kept)):
            try:
                netloc, connection = self._kept.pop()
            except IndexError:  # others have taken them
                break
            if netloc == to.netloc and _is_open(connection):
                return connection
            connection.close()
        connection = socket.create_connection((to.hostname or "", to.port or 80), self._connect_timeout_s)
        connection.settimeout(None)  # else each call waits by another one, and none takes all of a body
        timeout = struct.pack("ll", *divmod(round(self._read_timeout_s * 1e6), 1_000_000))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            connection.setsockopt(socket.SOL_SOCKET, option, timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _close(kept: deque[tuple[str, socket.socket]]) -> None:
    for _, connection in kept:
        connection.close()


def _is_open(connection: socket.socket) -> bool:
    """Whether the server has neither closed a connection that nobody uses nor sent anything."""
    try:
        connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _request(to: SplitResult, headers: Mapping[str, str]) -> bytes:
    lines = [f"GET {to.path}{'?' if to.query else ''}{to.query} HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
    if not any(name.lower() == "host" for name in headers):
        lines.append(f"Host: {to.netloc.removesuffix(':80')}")
    return "\r\n".join(lines).encode() + _END


def _received_head(connection: socket.socket) -> tuple[bytes, bytes]:
    """The head of an answer, and what has come of its body. Raises OSError."""
    data = b""
    while _END not in data:
        piece = connection.recv(4096)
        if not piece or len(data) > HEAD_BYTES_MAX:
            raise ConnectionError("the connection was closed before the end of the answer's head")
        data += piece
    head, _, first = data.partition(_END)
    return head, first


def _parsed(head: bytes) -> tuple[list[str], dict[str, str]]:
    """The words of the status line, and the headers by their names in small letters."""
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return status.split(maxsplit=2), {name.strip().lower(): value.strip() for name, _, value in pairs}


def _receive(connection: socket.socket, first: bytes, body: memoryview) -> None:
    """Fills a body, of which `first` has come. Raises OSError, IncompleteReadError."""
    done, size = len(first), len(body)
    body[:done] = first
    for waking, end in ((WAKING_BYTES, size - WAKING_BYTES), (1, size)):  # the last bytes are fewer
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, waking)
        while done < end:
            count = connection.recv_into(body[done:], end - done, socket.MSG_WAITALL)
            if not count:
                connection.close()
                raise sdk.IncompleteReadError(actual_bytes=done, expected_bytes=size)
            done += count
