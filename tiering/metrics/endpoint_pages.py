"""The HTTP pages of the endpoint: one for people, metrics, and whether it lives and is ready."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from remote.clock import Stopwatch, stopwatch
from tiering.agent.http.guard import Guard
from tiering.agent.http.overview import overview_pages
from tiering.agent.http.server import HttpServer, Page, Pages
from tiering.endpoint.server_status import ServerStatus
from tiering.endpoint.settings import HTTP_ADDRESS, HTTP_NAMES, Settings
from tiering.metrics.endpoint_values import EndpointView, endpoint_values
from tiering.metrics.exposition import CONTENT_TYPE, exposition

SILENT_S_MAX: Final = 60
"""After this time without a round the loop hangs: it goes round every second."""


Overview = Callable[[], dict[str, Any]]
"""What the page for people shows, for JSON."""


@contextmanager
def serving_pages(settings: Settings, view: Callable[[], EndpointView], overview: Overview) -> Iterator[str]:
    """Serves them while the block lasts, and gives the address, "" if there is none. Raises Unreadable."""
    address = settings[HTTP_ADDRESS]
    if address is None:
        yield ""
        return
    metrics = exposition(lambda: endpoint_values(view()))
    pages = pages_of(lambda: view().status, metrics, stopwatch, lambda: {"endpoint": overview()})
    guard = Guard(frozenset(settings[HTTP_NAMES]), names_setting=HTTP_NAMES.name)
    server = HttpServer(address, pages, guard, setting=HTTP_ADDRESS.name)
    server.start()
    try:
        yield server.address
    finally:
        server.close()


def pages_of(status: Callable[[], ServerStatus], metrics: Callable[[], bytes], seconds: Stopwatch, overview: Overview) -> Pages:
    """By method and path; `metrics` renders the metrics, and `seconds` is the clock of the status."""
    return {
        **overview_pages(overview),
        ("GET", "/metrics"): lambda: Page(metrics(), CONTENT_TYPE),
        ("GET", "/healthz"): lambda: healthz(status(), seconds()),
        ("GET", "/readyz"): lambda: readyz(status()),
    }


def healthz(status: ServerStatus, now_s: float) -> Page:
    """200 while the loop goes round, or before: a liveness probe."""
    silent_s = now_s - status.moved_s
    if not status.moved_s or silent_s <= SILENT_S_MAX or status.is_stopping:
        return Page(b"ok\n")
    return Page(f"the loop has not moved for {silent_s:.0f} s; restart the endpoint\n".encode(), status=503)


def readyz(status: ServerStatus) -> Page:
    """200 while clients are answered."""
    if status.moved_s and not status.is_stopping:
        return Page(b"running\n")
    return Page(b"stopping\n" if status.is_stopping else b"starting\n", status=503)
