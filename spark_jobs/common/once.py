"""Small objects that are written once: a second writer gets the first one's content. Loaded by executors."""

from local_log.errors import Unavailable
from remote.clock import Clock, SystemClock
from remote.store.api import ObjectStore
from remote.store.conditional_put import PutOutcome, conditional_put

_CLOCK = SystemClock()


def put_once(store: ObjectStore, key: str, body: bytes, clock: Clock = _CLOCK) -> bytes:
    """Puts an object if there is none; returns the content that is there then. Raises Unavailable, Invalid.

    After a put of unknown outcome the object is read, so the bodies of two writers must differ.
    """
    put = conditional_put(store, clock, key, body)
    if put.outcome is PutOutcome.done:
        return body
    if put.found is None:
        raise Unavailable(f"{store.url}: it is unknown whether {key} was put; try again later")
    return put.found
