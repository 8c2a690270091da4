"""Bytes to and from a non-blocking socket, as they are or with TLS (Kafka's TransportLayer).

What blocks raises BlockingIOError, to be called again when the socket is ready; other errors of the socket are OSError.
"""

import errno
import os
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from local_log.errors import LogError
from local_log.file_range import FileRange
from local_log.formats.primitives import Buffer
from tiering.endpoint.authentication.sasl_server import SaslFailed
from tiering.endpoint.network.send import Send

RECEIVE_BYTES = 64 << 10
BACKLOG = 1024
SMALL_BYTES = 32 << 10
"""Answers that are best sent by one call."""
MAPPED_BYTES_MAX = 2 << 20
"""Answers whose files are best sent from their mappings."""
SENDFILE_BUFFER_BYTES = 208 << 10
"""The most that `sendfile` may leave in a socket, the system's own default: with more a GB may cost three times the processor."""
TLS_CHUNK_BYTES = 32 << 10
"""Bytes of a file that are read at once to be encrypted."""
JOINED_BYTES = 16 << 10
"""Buffers are joined up to a TLS record."""


class Transport(Protocol):
    """One connection's bytes."""

    @property
    def socket(self) -> socket.socket:
        """The socket, to wait for it and to close it."""

    def handshake(self) -> bool:
        """Goes on with the handshake. True at its end, False if the socket must take more bytes; raises BlockingIOError if
        bytes must come first, and SaslFailed."""

    def receive(self) -> bytes:
        """Bytes that came, empty at the end."""

    def send_at_once(self, parts: Iterable[Buffer | FileRange]) -> int:
        """How many bytes of a small answer were sent by one call, perhaps none: what fails here fails in `send` again."""

    def send(self, send: Send, bytes_max: int) -> int:
        """How many bytes of the answer were sent.

        Raises EOFError if a file is shorter than its range, which would never be sent; Conflict if it was truncated since its
        range was found, and Unreadable.
        """


@dataclass(slots=True)
class PlaintextTransport:
    """Bytes as they are.

    Files of an answer of a MiB or so are mapped, and copied to the socket by the system: one call sends all of it, and wakes the
    client once. `sendfile` copies nothing, but hands over 64 KiB at a time. Larger answers, which take many calls either way, are
    sent by it, and files that cannot be mapped.
    """

    socket: socket.socket
    _is_full: bool = False
    """Whether the socket took less of a file than it was given: it has no room for the rest now."""
    _buffer_bytes: int = 0
    """Of the socket, while it has less for `sendfile`."""

    def handshake(self) -> bool:
        """There is none."""
        return True

    def receive(self) -> bytes:
        """Bytes that came."""
        return self.socket.recv(RECEIVE_BYTES)

    def send_at_once(self, parts: Iterable[Buffer | FileRange]) -> int:
        """Reads what is in files, which takes less than to send it from there."""
        try:
            return self.socket.sendmsg([_read(part) if isinstance(part, FileRange) else part for part in parts])
        except (OSError, LogError, EOFError):
            return 0

    def send(self, send: Send, bytes_max: int) -> int:
        """Sends as much as it may by one call."""
        if self._is_full:
            self._is_full = False
            raise BlockingIOError
        whole = send.whole(min(bytes_max, SMALL_BYTES))
        if whole is not None:
            return self.socket.sendmsg(whole)
        is_large = send.size > MAPPED_BYTES_MAX
        sent = 0 if is_large else self._send_mapped(send, bytes_max)
        if sent:
            return sent
        file = send.next_file(bytes_max)
        self._adapt_buffer(is_small=is_large and file is not None)
        if file is not None:
            file.check()
            sent = os.sendfile(self.socket.fileno(), file.fileno(), file.position, file.size)
            self._is_full = 0 < sent < file.size
            if sent == file.size:
                file.check()
            if not sent:
                raise EOFError(f"a file of its answer ends before position {file.position}: it was truncated meanwhile")
            return sent
        buffers = send.next_buffers(bytes_max)
        more = socket.MSG_MORE if sum(map(len, buffers)) < send.left else 0
        return self.socket.sendmsg(buffers, [], more)

    def _adapt_buffer(self, *, is_small: bool) -> None:
        """Gives the socket less room for a large answer by `sendfile`, and its former room for others."""
        if is_small == bool(self._buffer_bytes):
            return
        if is_small:
            self._buffer_bytes = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2  # the system tells twice of it
            size = min(self._buffer_bytes, SENDFILE_BUFFER_BYTES)
        else:
            size, self._buffer_bytes = self._buffer_bytes, 0
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    def _send_mapped(self, send: Send, bytes_max: int) -> int:
        """How many bytes of files, and of what is around them, were sent by one call; none if it cannot be."""
        mapped = send.next_mapped(bytes_max)
        if mapped is None:
            return 0
        buffers, files = mapped
        self._adapt_buffer(is_small=False)
        for file in files:
            file.check()
        try:
            sent = self.socket.sendmsg(buffers)
        except BlockingIOError:
            raise
        except OSError as e:
            if e.errno != errno.EFAULT:
                raise
            return 0  # the file ends sooner or its disk fails: `sendfile` tells which
        self._is_full = sent < sum(map(len, buffers))
        if not self._is_full:
            for file in files:
                file.check()
        return sent


@dataclass(slots=True)
class TlsTransport:
    """Bytes with TLS; files are read and encrypted."""

    socket: ssl.SSLSocket
    _chunk: memoryview | None = None
    """What is next: the library wants the same bytes again when it could not write them."""

    def handshake(self) -> bool:
        """Goes on with it."""
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError as e:
            raise BlockingIOError from e
        except ssl.SSLWantWriteError:
            return False
        except ssl.SSLError as e:
            raise SaslFailed(f"the TLS handshake failed: {e.reason or e}") from e
        return True

    def receive(self) -> bytes:
        """What came, decrypted."""
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as e:
            raise BlockingIOError from e
        while data and self.socket.pending():
            data += self.socket.recv(RECEIVE_BYTES)
        return data

    def send_at_once(self, parts: Iterable[Buffer | FileRange]) -> int:
        """Nothing is."""
        return 0

    def send(self, send: Send, bytes_max: int) -> int:
        """Encrypts and sends a record or a few."""
        if not self._chunk:
            self._chunk = _next_chunk(send, bytes_max)
        try:
            sent = self.socket.send(self._chunk)
        except ssl.SSLWantWriteError as e:
            raise BlockingIOError from e
        self._chunk = self._chunk[sent:] or None
        return sent


def _next_chunk(send: Send, bytes_max: int) -> memoryview:
    file = send.next_file(min(bytes_max, TLS_CHUNK_BYTES))
    if file is not None:
        return memoryview(_read(file))
    buffers = send.next_buffers(bytes_max)
    if len(buffers[0]) >= JOINED_BYTES or len(buffers) == 1:
        return buffers[0]
    return memoryview(b"".join(_first_bytes(buffers)))


def _read(file: FileRange) -> bytes:
    data = file.read()
    if len(data) < file.size:
        raise EOFError(f"a file of its answer ends before position {file.position + file.size}: it was truncated meanwhile")
    return data


def _first_bytes(buffers: list[memoryview]) -> list[memoryview]:
    """The buffers up to JOINED_BYTES together."""
    found, left = [], JOINED_BYTES
    for buffer in buffers:
        found.append(buffer[:left])
        left -= len(found[-1])
        if not left:
            break
    return found


def peer_of(peer: socket.socket) -> str:
    """The client's address, for people."""
    try:
        host, port, *_ = peer.getpeername()
    except OSError:
        return "a client that is gone"
    return f"{host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """A listener that is not blocking. Raises OSError."""
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG)
    listener.setblocking(False)
    return listener
