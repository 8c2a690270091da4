"""The file of quotas, with the names that Kafka has for the entities and the quota.

    {"format": 1, "quotas": [{"user": "alice", "client-id": "spark", "consumer_byte_rate": 10485760,
                              "producer_byte_rate": 5242880}]}

One of the rates may be left out. `user` or `client-id` may be left out; `*` is every one that has no quota of its own.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from local_log.disk import Disk, WritableDisk
from local_log.errors import Corrupt, Newer
from local_log.formats.primitives import INT64_MAX, Buffer
from remote.clock import Time
from tiering.endpoint.quotas.client_quotas import ClientQuotas, Entity
from tiering.endpoint.watched_file import WatchedFile

FORMAT: Final = 1
CONSUMER, PRODUCER = "consumer_byte_rate", "producer_byte_rate"
RATES: Final = (CONSUMER, PRODUCER)
_FIELDS: Final = {"user", "client-id", *RATES}

Rates = Mapping[str, Mapping[Entity, int]]
"""Bytes a second by entity, by the name of the quota."""


def read_quotas(data: Buffer) -> Rates:
    """The quotas of a file. Raises Corrupt, Newer."""
    try:
        content = json.loads(bytes(data))
        if content["format"] > FORMAT:
            raise Newer(f"a file of quotas of format {content['format']}, and this version reads {FORMAT} at most; upgrade")
        return _by_name(content["quotas"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f'not a file of quotas, {{"format": 1, "quotas": […]}} ({type(e).__name__}: {e})') from e


def _by_name(rows: Iterable[dict[str, Any]]) -> Rates:
    found: dict[str, dict[Entity, int]] = {name: {} for name in RATES}
    for row in rows:
        entity = _entity(row)
        for name in [name for name in RATES if name in row] or [CONSUMER]:
            found[name][entity] = _rate(name, row[name])
    return found


def write_quotas(rates: Rates) -> bytes:
    """The bytes of the file."""
    rows = []
    for user, client_id in dict.fromkeys(entity for name in RATES for entity in rates[name]):
        named = {"user": user, "client-id": client_id}
        given = {name: rates[name][user, client_id] for name in RATES if (user, client_id) in rates[name]}
        rows.append(json.dumps({of: name for of, name in named.items() if name is not None} | given))
    return ('{"format": 1, "quotas": [\n' + ",\n".join(rows) + "\n]}\n").encode()


def _entity(body: dict[str, Any]) -> Entity:
    unknown = body.keys() - _FIELDS
    if unknown:
        raise Corrupt(f"a quota has {min(unknown)!r}, which is none of {', '.join(sorted(_FIELDS))}")
    user, client_id = body.get("user"), body.get("client-id")
    names = [name for name in (user, client_id) if name is not None]
    if not names or not all(isinstance(name, str) for name in names):
        raise Corrupt("a quota is of a user, a client-id or both")
    return user, client_id


def _rate(name: str, rate: Any) -> int:
    if isinstance(rate, bool) or not isinstance(rate, int) or not 0 < rate <= INT64_MAX:
        raise Corrupt(f"{name} is {rate!r}: expected bytes a second, an integer from 1 on")
    return rate


@dataclass(slots=True)
class QuotaFile:
    """The quotas of the file at `path`, which it hands to `quotas`. `report` is told of a file that cannot be used."""

    disk: Disk
    writable: WritableDisk
    path: str
    clock: Time
    quotas: ClientQuotas
    report: Callable[[str], object]
    _file: WatchedFile = field(init=False)

    def __post_init__(self) -> None:
        self._file = WatchedFile(self.disk, self.writable, self.path, self.clock, self._take, self.report)

    def _take(self, data: bytes) -> None:
        rates = read_quotas(data)
        self.quotas.rates, self.quotas.producers.rates = rates[CONSUMER], rates[PRODUCER]

    def load(self) -> None:
        """Reads the file. Raises LogError."""
        self._file.load()

    def look(self) -> None:
        """Reads the file again if it has changed; goes on with what was read before if it cannot be used."""
        self._file.look()

    @property
    def rates(self) -> Rates:
        """All quotas as they are now."""
        return {CONSUMER: self.quotas.rates, PRODUCER: self.quotas.producers.rates}

    def change(self, change: Callable[[Rates], Rates]) -> None:
        """Writes what `change` makes of the quotas. Raises LogError, OSError; nothing has changed then."""
        self._file.change(lambda: write_quotas(change(self.rates)))
