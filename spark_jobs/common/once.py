"""Small objects of which the first one put stays: who puts second gets to know the first one's. Loaded by executors."""

from local_log.errors import Unavailable
from remote.clock import Clock, SystemClock
from remote.store.api import ObjectStore
from remote.store.conditional_put import PutOutcome, conditional_put

_CLOCK = SystemClock()


def put_once(store: ObjectStore, key: str, body: bytes, clock: Clock = _CLOCK) -> bytes:
    """Puts an object where there is none; gives the one that is there then. Raises Unavailable, Invalid.

    A put whose outcome nobody knows is read back, so bodies have to tell their writers apart.
    """
    put = conditional_put(store, clock, key, body)
    if put.outcome is PutOutcome.done:
        return body
    if put.found is None:
        raise Unavailable(f"{store.url}: it is unknown whether {key} was put; try again later")
    return put.found
