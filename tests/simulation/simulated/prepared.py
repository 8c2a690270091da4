"""What a simulation changes of the code: limits, so that little data fills pages, and threads, so that there is one order.

Bytes that were made of a manifest or a page, or decoded once, are not decoded again, which halves the time of a schedule: that
what is encoded is decoded as it was, other tests show.
"""

import gc
import json
import os
import warnings
from base64 import b64encode
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import simulated_nodes
from crc32c import crc32c

from remote.direct_write import commit as direct_write
from remote.manifest import codec, pages
from remote.manifest.model import LIMITS, Item, PageRef
from remote.store import proof
from simulated.endpoint_process import WatchedMarkers
from simulated.readers import RING
from simulated.splits import KEYS_NAME
from spark_jobs.source import partitions, pinning, ranges
from tiering.endpoint.transactions import opening
from tiering.retention import expire

SMALL: Final = {"inline_max": 2, "page_entries": 2, "fan_out": 2, "deleting_max": 5}
COLLECTED_AFTER: Final = 4
"""Schedules."""
BLOCK_BYTES: Final = 64
"""Of a simulated disk: a loss of power takes some blocks of a segment, and leaves others, also behind them."""


def prepare() -> None:
    """Makes the changes, for the whole process."""
    for name, value in SMALL.items():
        object.__setattr__(LIMITS, name, value)  # the one object that is everybody's default
    expire.DELETES_MAX = 1  # type: ignore[misc]
    simulated_nodes.BLOCK_BYTES = BLOCK_BYTES
    codec.encode, codec.decode = _remembered(codec.encode, codec.decode)
    _remember_pages()
    direct_write.WAIT_SECONDS = 10.0  # a writer that stops for hours is waited for in few calls
    for planned_by in (ranges, partitions, pinning):
        planned_by.THREADS = 1
    warnings.filterwarnings("ignore", message=".* topics named orders are archived")  # it is made again, and read by its name
    keys = {name: b64encode(key).decode() for name, key in RING.keys.items()}
    os.environ[KEYS_NAME] = json.dumps({"current": RING.current, "keys": keys})
    opening.Markers = WatchedMarkers  # type: ignore[misc]
    gc.disable()  # `forget` collects between schedules, each of which leaves few MB


_KNOWN: list[dict[Any, Any]] = []
_BEGUN = count()


def forget() -> None:
    """No bytes of one schedule are those of another. Modules that those before have loaded stay."""
    for known in _KNOWN:
        known.clear()
    proof._proven = proof._Proven()  # each schedule's store is another one, and all have one address
    if next(_BEGUN) % COLLECTED_AFTER == 0:
        gc.collect()
        gc.freeze()


def _remembered(encode: Callable[[Any], bytes], decode: Callable[[bytes, str], Any]) -> tuple[Any, Any]:
    """Both, with what they have encoded or decoded."""
    known: dict[bytes, Any] = {}
    _KNOWN.append(known)

    def encoded(value: Any) -> bytes:
        body = encode(value)
        known[body] = value
        return body

    def decoded(body: bytes, key: str) -> Any:
        if body not in known:
            known[bytes(body)] = decode(body, key)
        return known[body]

    return encoded, decoded


def _remember_pages() -> None:
    """The same of pages. Only a page that is what its ref says is taken for known."""
    known: dict[tuple[bytes, int], tuple[Item, ...]] = {}
    _KNOWN.append(known)
    encode, decode = pages.encode, pages.decode

    def encoded(level: int, items: Sequence[Item]) -> bytes:
        body = encode(level, items)
        known[body, level] = tuple(items)
        return body

    def decoded(body: bytes, ref: PageRef, key: str) -> tuple[Item, ...]:
        found = known.get((body, ref.level))
        if found is None or (len(body), crc32c(body)) != (ref.size, ref.crc32c):
            found = known[bytes(body), ref.level] = decode(body, ref, key)
        return found

    pages.encode, pages.decode = encoded, decoded
