"""Put-if-absent with all its outcomes: the only module that decides whether an object under a key is ours.

    done         the object was written, by this try or by an earlier one whose answer was lost
    key taken    another writer's object has the key, or had it and was deleted since
    unknown      no try was answered and there is no object yet; a request may still arrive, so callers assume neither

Puts of unknown outcome are retried only here; `remote.store.api` says where other calls are. Loaded by executors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from local_log.errors import AlreadyExists, NotFound, Unavailable, Unknown
from remote.clock import Clock
from remote.store.api import Body, ObjectStore

PUT_ATTEMPTS_MAX = 4
FIRST_WAIT_S = 0.1
"""Each wait is four times the one before: 0.1, 0.4 and 1.6 s."""


class PutOutcome(StrEnum):
    """See this module's docstring."""

    done = "done"
    key_taken = "key taken"
    unknown = "unknown"


@dataclass(frozen=True, slots=True)
class PutResult:
    """How a put ended. `found` is the object as it was read back, None where it was not read or is not there."""

    outcome: PutOutcome
    found: bytes | None = None


def conditional_put(
    store: ObjectStore, clock: Clock, key: str, body: Body, is_ours: Callable[[bytes], bool] | None = None
) -> PutResult:
    """Puts an object where there is none. `is_ours` tells it from another's, by its put id; without it, equal bytes are ours.

    Raises Unavailable (nothing was written), Invalid, and what `is_ours` and reading raise, such as Corrupt.
    """
    unknown = False
    for attempt in range(PUT_ATTEMPTS_MAX):
        try:
            store.put_if_absent(key, body)
        except AlreadyExists:
            return _read_back(store, key, is_ours or (lambda found: found == body), absent=PutOutcome.key_taken)
        except Unknown:
            unknown = True
        except Unavailable:
            if not unknown:
                raise
            break  # the store has tried again for as long as it is worth it
        else:
            return PutResult(PutOutcome.done)
        if attempt + 1 < PUT_ATTEMPTS_MAX:
            clock.sleep(FIRST_WAIT_S * 4**attempt)
    return _read_back(store, key, is_ours or (lambda found: found == body), absent=PutOutcome.unknown)


def _read_back(store: ObjectStore, key: str, is_ours: Callable[[bytes], bool], absent: PutOutcome) -> PutResult:
    try:
        found = store.get(key)
    except NotFound:
        return PutResult(absent)
    except Unavailable:
        return PutResult(PutOutcome.unknown)
    return PutResult(PutOutcome.done if is_ours(found) else PutOutcome.key_taken, found)
