"""Writes objects under keys that no other writer uses: pages and pins, whose keys contain a random id."""

from local_log.errors import Corrupt, NotFound, Unknown
from remote.clock import Clock
from remote.store.api import Body, ObjectStore
from remote.store.conditional_put import conditional_put


def put_own(store: ObjectStore, clock: Clock, key: str, body: Body) -> None:
    """Writes an object and reads it back, so that a manifest may name it. If the key is taken, an earlier try has written it.

    Raises Unknown where it is not there (yet), Unavailable, Corrupt where the store holds something else.
    """
    found = conditional_put(store, clock, key, body).found
    try:
        if found is None:
            found = store.get(key)
    except NotFound as e:
        raise Unknown(
            f"{key}: its state is unknown: the put was not confirmed. No manifest refers to it; run the same command again"
        ) from e
    if found != body:
        raise Corrupt("the store holds other bytes than were sent; run the same command again", file=key)
