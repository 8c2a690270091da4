"""The HTTP pages of a running agent: one for people, health, status, metrics, and pause and resume."""

import json
from collections.abc import Callable
from typing import Final

from tiering.agent.controls import Controls
from tiering.agent.http.overview import overview_pages
from tiering.agent.http.server import JSON, Page, Pages
from tiering.agent.overview import agent_overview
from tiering.agent.view import AgentView
from tiering.local_tier.service import OPENING

SILENT_MS_MAX: Final = 60_000
"""After this time without an iteration the loop hangs: it waits at most ten seconds."""


def pages_of(view: Callable[[], AgentView], controls: Controls, metrics: Callable[[], Page]) -> Pages:
    """The pages of an agent by method and path; `metrics` makes the page for Prometheus."""

    def after(act: Callable[[], None]) -> Callable[[], Page]:
        def page() -> Page:
            act()
            return _json({"state": view().state})

        return page

    return {
        **overview_pages(lambda: {"agent": agent_overview(view())}),
        ("GET", "/healthz"): lambda: healthz(view()),
        ("GET", "/readyz"): lambda: readyz(view()),
        ("GET", "/status"): lambda: _json(view().row()),
        ("GET", "/metrics"): metrics,
        ("POST", "/pause"): after(controls.pause),
        ("POST", "/resume"): after(controls.resume),
    }


def healthz(view: AgentView) -> Page:
    """200 while the loop runs, or logs of our own are recovered before it: a liveness probe."""
    silent_ms = view.now_ms - view.looped_ms
    if view.local_tier is not None and view.local_tier.state == OPENING:
        return Page(f"opening logs, {view.local_tier.logs_left} left\n".encode())
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
