"""Pages over HTTP, by the standard library's server: on one address, a thread a request, bounded in what it takes in.

What changes something is POSTed, from this machine alone, and not by a page of some web site that a browser here has open.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import Thread
from typing import Any, Final

from local_log.errors import Unreadable

JSON: Final = "application/json; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
REQUEST_S_MAX: Final = 10
"""Whoever takes longer to say what they want is hung up on."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    body: bytes
    content_type: str = TEXT
    status: int = 200


Pages = Mapping[tuple[str, str], Callable[[], Page]]
"""What is answered, by method and path."""


class HttpServer:
    """Answers from `start` on until it is closed."""

    def __init__(self, address: str, pages: Pages) -> None:
        """Takes the address, HOST:PORT. Raises Unreadable where it cannot be had."""
        host, _, port = address.rpartition(":")
        try:
            self._server = _Server((host.strip("[]"), int(port)), _handler(pages))
        except OSError as e:
            raise Unreadable(f"{address}: {e.strerror or e}; give another agent.http.address, or stop who listens there") from e
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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who hangs up before the answer has come is nobody's error; what else is raised here is a bug, and is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_S_MAX
        server_version = "kafka-tiering"
        sys_version = ""

        def do_GET(self) -> None:
            self._answer("GET")

        def do_HEAD(self) -> None:
            self._answer("GET", has_body=False)

        def do_POST(self) -> None:
            if "Origin" in self.headers or not ip_address(self.client_address[0].partition("%")[0]).is_loopback:
                self._send(Page(b"only from this machine, and from no web site\n", status=403))
                return
            self._answer("POST")

        def log_message(self, format: str, *args: object) -> None:
            """A scrape every few seconds is no news."""

        def _answer(self, method: str, *, has_body: bool = True) -> None:
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
            self.end_headers()
            if has_body:
                self.wfile.write(page.body)

    return Handler
