"""Loads the compiled code while the endpoint serves, as it was compiled before; the first time it is compiled, in seconds."""

import select
import sys
from collections.abc import Callable
from typing import Final

from local_log.formats.record_batch.columns import warm_up
from tiering.endpoint.fetch_loop.loop import AnswerReady

SWITCH_S: Final = 0.000_5
"""So long another thread waits for Python while this one loads, instead of 5 ms."""
_WITHOUT: Final = "fetches are answered without the compiled loop"


def answer_ready(report: Callable[[str], object]) -> AnswerReady | None:
    """The compiled loop, after what reads batches; None if it cannot be loaded, of which `report` is told.

    For a thread of its own.
    """
    if not hasattr(select, "epoll"):
        report(f"{_WITHOUT}: this system has no epoll")
        return None
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        warm_up()  # the first fetch wants it, and waits until it is loaded
        from tiering.endpoint.fetch_loop import kernel
    except Exception as e:  # a compiler can fail in many ways, and everything is answered without it, too
        first_line, *_ = str(e).splitlines() or [""]
        report(f"{_WITHOUT}, which cannot be loaded: {type(e).__name__}: {first_line}")
        return None
    finally:
        sys.setswitchinterval(before)
    found: AnswerReady = kernel.answer_ready
    return found
