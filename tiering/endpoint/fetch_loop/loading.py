"""Loads the compiled loop while the endpoint serves, as it was compiled before; the first time it is compiled, in seconds."""

import select
import sys
from typing import Final

from tiering.endpoint.fetch_loop.loop import AnswerReady

SWITCH_S: Final = 0.000_5
"""So long another thread waits for Python while this one loads, instead of 5 ms."""


def answer_ready() -> AnswerReady | None:
    """The compiled loop; None where there is no epoll, or nowhere to store what was compiled. For a thread of its own."""
    if not hasattr(select, "epoll"):
        return None
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        from tiering.endpoint.fetch_loop import kernel
    except (ImportError, OSError, RuntimeError):  # what numba raises
        return None
    finally:
        sys.setswitchinterval(before)
    found: AnswerReady = kernel.answer_ready
    return found
