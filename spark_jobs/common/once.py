"""Small objects of which the first one put stays: who puts second gets to know the first one's. Loaded by executors."""

from remote.errors import AlreadyExists, NotFound, Unavailable, Unknown
from remote.store.api import ObjectStore

PUT_TRIES_MAX = 5


def put_once(store: ObjectStore, key: str, body: bytes) -> bytes:
    """Puts an object where there is none; gives the one that is there then. Raises Unavailable, Invalid.

    A put whose outcome nobody knows is read back, so bodies have to tell their writers apart.
    """
    for _ in range(PUT_TRIES_MAX):
        try:
            store.put_if_absent(key, body)
        except (AlreadyExists, Unknown):
            try:
                return store.get(key)
            except NotFound:  # never arrived, or deleted meanwhile
                continue
        return body
    raise Unavailable(f"{store.url}: nobody knows whether {key} was put, after {PUT_TRIES_MAX} tries; try again later")
