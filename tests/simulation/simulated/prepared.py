"""What a simulation changes of the code: limits, so that little data fills pages, and threads, so that there is one order.

Decoding the same bytes again gives the same value, so manifests and pages are decoded once, which halves the time of a
schedule.
"""

import gc
import json
import os
import warnings
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import simulated_nodes

from remote.direct_write import commit as direct_write
from remote.manifest import codec, page_bounds, pages
from remote.manifest.model import LIMITS
from simulated.endpoint_process import WatchedMarkers
from simulated.readers import RING
from simulated.splits import KEYS_NAME
from spark_jobs.source import partitions, pinning, ranges
from tiering.endpoint.transactions import opening
from tiering.retention import expire

SMALL: Final = {"inline_max": 3, "page_entries": 2, "fan_out": 2, "deleting_max": 5}
BLOCK_BYTES: Final = 64
"""Of a simulated disk: a loss of power takes some blocks of a segment, and leaves others, also behind them."""


def prepare() -> None:
    """Makes the changes, for the whole process."""
    for name, value in SMALL.items():
        object.__setattr__(LIMITS, name, value)  # the one object that is everybody's default
    expire.DELETES_MAX = 1  # type: ignore[misc]
    simulated_nodes.BLOCK_BYTES = BLOCK_BYTES
    page_bounds.rows_of = lru_cache(maxsize=1_000)(page_bounds.rows_of)
    codec.decode = _once(codec.decode, 0)
    pages.decode = _once(pages.decode, 1)
    direct_write.WAIT_SECONDS = 10.0  # a writer that stops for hours is waited for in few calls
    for planned_by in (ranges, partitions, pinning):
        planned_by.THREADS = 1
    warnings.filterwarnings("ignore", message=".* topics named orders are archived")  # it is made again, and read by its name
    keys = {name: b64encode(key).decode() for name, key in RING.keys.items()}
    os.environ[KEYS_NAME] = json.dumps({"current": RING.current, "keys": keys})
    opening.Markers = WatchedMarkers  # type: ignore[misc]
    gc.disable()  # `forget` collects between two schedules, each of which leaves few MB


_KNOWN: list[dict[tuple[bytes, str], Any]] = []


def forget() -> None:
    """No bytes of one schedule are those of another. What is left of the one before are modules that it has loaded: they stay."""
    for known in _KNOWN:
        known.clear()
    gc.collect()
    gc.freeze()


def _once(decode: Callable[..., Any], at: int) -> Callable[..., Any]:
    """The function that remembers what it has decoded, by the bytes and the key, which is the argument at that place."""
    known: dict[tuple[bytes, str], Any] = {}
    _KNOWN.append(known)

    def decoded(body: bytes, *rest: Any) -> Any:
        asked = bytes(body), rest[at]
        if asked not in known:
            known[asked] = decode(body, *rest)
        return known[asked]

    return decoded
