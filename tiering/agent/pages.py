"""What a running agent answers: how it is, what it does, what it has counted, and whether it is to pause."""

import json
from collections.abc import Callable
from typing import Final

from tiering.agent.controls import Controls
from tiering.agent.http.server import JSON, Page, Pages
from tiering.agent.view import AgentView

SILENT_MS_MAX: Final = 60_000
"""A loop that nobody has seen for so long hangs: it waits ten seconds at most."""


def pages_of(view: Callable[[], AgentView], controls: Controls, metrics: Callable[[], Page]) -> Pages:
    """What an agent answers, by method and path; `metrics` makes the page for Prometheus."""

    def told(act: Callable[[], None]) -> Callable[[], Page]:
        def page() -> Page:
            act()
            return _json({"state": view().state})

        return page

    return {
        ("GET", "/healthz"): lambda: healthz(view()),
        ("GET", "/readyz"): lambda: readyz(view()),
        ("GET", "/status"): lambda: _json(view().row()),
        ("GET", "/metrics"): metrics,
        ("POST", "/pause"): told(controls.pause),
        ("POST", "/resume"): told(controls.resume),
    }


def healthz(view: AgentView) -> Page:
    """200 while the loop lives; who restarts what hangs asks this."""
    silent_ms = view.now_ms - view.looped_ms
    if silent_ms <= SILENT_MS_MAX or view.is_stopping:
        return Page(b"ok\n")
    return Page(f"the loop has not moved for {silent_ms} ms; restart the agent\n".encode(), status=503)


def readyz(view: AgentView) -> Page:
    """200 while it can do its work: it has seen its log directories, the store answers, and it is not stopping."""
    if view.state in ("running", "paused"):
        return Page(f"{view.state}\n".encode())
    error = view.last_error
    return Page(f"{view.state}{f': {error.message}' if error else ''}\n".encode(), status=503)


def _json(row: dict[str, object]) -> Page:
    return Page(json.dumps(row, indent=1).encode() + b"\n", JSON)
