"""The file of quotas, with the names that Kafka has for the entities and the quota.

    {"format": 1, "quotas": [{"user": "alice", "client-id": "spark", "consumer_byte_rate": 10485760}]}

`user` or `client-id` may be left out; `*` is every one that has no quota of its own.
"""

import json
from typing import Any, Final

from local_log.errors import Corrupt, Newer
from local_log.formats.primitives import INT64_MAX, Buffer
from tiering.endpoint.quotas.client_quotas import Entity

FORMAT: Final = 1
_FIELDS: Final = {"user", "client-id", "consumer_byte_rate"}


def read_quotas(data: Buffer) -> dict[Entity, int]:
    """The quotas of a file. Raises Corrupt, Newer."""
    try:
        content = json.loads(bytes(data))
        if content["format"] > FORMAT:
            raise Newer(f"a file of quotas of format {content['format']}, and this version reads {FORMAT} at most; upgrade")
        return dict(map(_quota, content["quotas"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f'not a file of quotas, {{"format": 1, "quotas": […]}} ({type(e).__name__}: {e})') from e


def _quota(body: dict[str, Any]) -> tuple[Entity, int]:
    unknown = body.keys() - _FIELDS
    if unknown:
        raise Corrupt(f"a quota has {min(unknown)!r}, which is none of {', '.join(sorted(_FIELDS))}")
    user, client_id, rate = body.get("user"), body.get("client-id"), body["consumer_byte_rate"]
    names = [name for name in (user, client_id) if name is not None]
    if not names or not all(isinstance(name, str) for name in names):
        raise Corrupt("a quota is of a user, a client-id or both")
    if isinstance(rate, bool) or not isinstance(rate, int) or not 0 < rate <= INT64_MAX:
        raise Corrupt(f"consumer_byte_rate is {rate!r}: expected bytes a second, an integer from 1 on")
    return (user, client_id), rate
