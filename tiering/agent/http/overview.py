"""The page for people, one file of HTML, and the JSON that it shows.

Names of topics, groups and clients, and texts of errors, are whatever somebody has written. The page makes text of them only, and
its Content-Security-Policy runs no script and takes no style but those of the file itself, which are named by their digests.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pkgutil import get_data
from threading import BoundedSemaphore, Lock
from typing import Any, Final

from remote.clock import stopwatch
from tiering.agent.http.server import JSON, Page, Pages

HTML: Final = "text/html; charset=utf-8"
FRESH_S: Final = 1.0
"""So long the JSON is answered again as it is, so that many browsers cost no more than one."""
WAIT_S: Final = 2.0
WAITING_MAX: Final = 8
"""Who asks while another's answer is made waits so long, and no more than so many at once: a disk that does not answer must not
keep all connections, since the same server says whether the process lives."""
_INLINE: Final = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


_BUSY: Final = Page(b"an earlier request is still being answered; a disk or the store may not respond\n", status=503)


def overview_pages(overview: Callable[[], dict[str, Any]]) -> Pages:
    """The page, and what it asks for, by method and path. `overview` is asked by one thread at a time."""
    page = _page()
    return {("GET", "/"): lambda: page, ("GET", "/overview"): _recent(overview)}


def _page() -> Page:
    body = get_data("tiering.agent.http", "overview.html")
    assert body is not None
    digests = {kind.decode(): base64.b64encode(hashlib.sha256(text).digest()).decode() for kind, text in _INLINE.findall(body)}
    policy = (
        f"default-src 'none'; script-src 'sha256-{digests['script']}'; style-src 'sha256-{digests['style']}'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Page(body, HTML, headers=(("Content-Security-Policy", policy), ("Referrer-Policy", "no-referrer")))


def _recent(overview: Callable[[], dict[str, Any]]) -> Callable[[], Page]:
    lock, waiting, made = Lock(), BoundedSemaphore(WAITING_MAX), list[tuple[float, Page]]()

    def page() -> Page:
        if not lock.acquire(blocking=False):
            if not waiting.acquire(blocking=False):
                return _BUSY
            try:
                if not lock.acquire(timeout=WAIT_S):
                    return _BUSY
            finally:
                waiting.release()
        try:
            if not made or stopwatch() - made[0][0] >= FRESH_S:
                body = json.dumps(overview(), separators=(",", ":")).encode()
                made[:] = [(stopwatch(), Page(body, JSON))]
            return made[0][1]
        finally:
            lock.release()

    return page
