"""Serves pages over HTTP with the standard library's server: one address, a thread for each request, bounded input.

`tiering.agent.http.guard` decides which requests are accepted. A connection carries one request. Its head is read completely,
within a time limit, before it is parsed; a body is not read.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import BoundedSemaphore, Thread
from typing import Any, Final

from local_log.errors import Unreadable
from remote.clock import stopwatch
from tiering.agent.http.guard import Guard, Headers, Refusal

JSON: Final = "application/json; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
REQUEST_S_MAX: Final = 10
"""Whoever takes longer to say what they want, or to take the answer, is hung up on."""
HEAD_BYTES_MAX: Final = 16_384
CONNECTIONS_MAX: Final = 64
"""Who comes when there are so many is hung up on."""
_END_OF_HEAD: Final = (b"\r\n\r\n", b"\n\n")


@dataclass(frozen=True, slots=True)
class Page:
    """What is answered: a body, its content type, HTTP's status, and further headers by name."""

    body: bytes
    content_type: str = TEXT
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


Pages = Mapping[tuple[str, str], Callable[[], Page]]
"""What is answered, by method and path."""


class HttpServer:
    """Answers from `start` on until it is closed."""

    def __init__(
        self,
        address: str,
        pages: Pages,
        guard: Guard = Guard(),  # noqa: B008  # a value
        *,
        setting: str = "agent.http.address",
    ) -> None:
        """Takes the address, HOST:PORT, which `setting` says. Raises Unreadable where it cannot be had."""
        host, _, port = address.rpartition(":")
        try:
            self._server = _Server((host.strip("[]"), int(port)), _handler(pages, guard))
        except OSError as e:
            raise Unreadable(
                f"{address}: {e.strerror or e}; give another {setting}, or stop the process that listens there"
            ) from e
        self._thread = Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def address(self) -> str:
        """Where it listens: HOST:PORT."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answers no more, and gives the address back."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(self, *args: Any) -> None:
        self._free = BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for it, where there is one left."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers in that thread, and lets the next connection in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that closes the connection early. Any other exception is a bug and is printed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(pages: Pages, guard: Guard) -> type[BaseHTTPRequestHandler]:
    # One function around a class: the standard library makes a handler itself, and hands it neither pages nor guard.
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_S_MAX
        server_version = "kafka-tiering"
        sys_version = ""

        def setup(self) -> None:
            super().setup()
            head = _head(self.connection)
            self.rfile = BytesIO(head or b"")
            self.connection.settimeout(REQUEST_S_MAX)

        def do_GET(self) -> None:
            self._answer("GET")

        def do_HEAD(self) -> None:
            self._answer("GET", has_body=False)

        def do_POST(self) -> None:
            refusal = guard.refuses_change(
                self._request_headers(), str(self.connection.getsockname()[0]), str(self.client_address[0])
            )
            self._answer("POST", refusal=refusal)

        def _request_headers(self) -> Headers:
            return {name.lower(): self.headers.get_all(name, ()) for name in self.headers}

        def log_message(self, format: str, *args: object) -> None:
            """A scrape every few seconds is no news."""

        def _answer(self, method: str, *, has_body: bool = True, refusal: Refusal | None = None) -> None:
            refusal = guard.refuses(self._request_headers(), str(self.connection.getsockname()[0])) or refusal
            if refusal is not None:
                self._send(Page(f"{refusal.text}\n".encode(), status=refusal.status), has_body=has_body)
                return
            path = self.path.partition("?")[0]
            page = pages.get((method, path))
            if page is not None:
                self._send(page(), has_body=has_body)
            elif any(path == known for _, known in pages):
                self._send(Page(b"by the other method\n", status=405))
            else:
                paths = ", ".join(sorted({known for _, known in pages}))
                self._send(Page(f"there are: {paths}\n".encode(), status=404))

        def _send(self, page: Page, *, has_body: bool = True) -> None:
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(page.body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            for name, value in page.headers:
                self.send_header(name, value)
            self.end_headers()
            if has_body:
                self.wfile.write(page.body)

    return Handler


def _head(connection: Any) -> bytes | None:
    """A request up to the line that ends its head; None where it is too long, or takes too long."""
    until_s = stopwatch() + REQUEST_S_MAX
    head = b""
    try:
        while not any(end in head for end in _END_OF_HEAD):
            left_s = until_s - stopwatch()
            if left_s <= 0 or len(head) > HEAD_BYTES_MAX:
                return None
            connection.settimeout(left_s)
            more = connection.recv(4096)
            if not more:
                return None
            head += more
    except TimeoutError:
        return None
    return head
