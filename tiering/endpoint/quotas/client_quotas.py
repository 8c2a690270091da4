"""Which quota is a client's, and whether it has used it up (Kafka's ClientQuotaManager).

The first of these that there is counts; * stands for every user, or every client id, that has no quota of its own:

    user and client id | user and * | user | * and client id | * and * | * | client id alone | any client id alone

Clients of one user share what the user has; those of one client id what the client id has.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tiering.endpoint.quotas.rate import Rate

DEFAULT: Final = "*"
CLIENTS_MAX: Final = 10_000
"""Rates that are kept: a client makes one with each new client id."""

Entity = tuple[str | None, str | None]
"""A user's name and a client id; None for a quota that does not ask about it."""


@dataclass(slots=True)
class RateQuotas:
    """Those of one kind, for many threads. Whoever has the quotas puts new `rates` here when they change."""

    rates: Mapping[Entity, int] = field(default_factory=dict)
    """In bytes a second."""
    _used: dict[Entity, Rate] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def quota(self, user: str, client_id: str) -> tuple[Entity, int] | None:
        """Who shares the quota, and the quota; None without one."""
        for of_user, of_client, shared in (
            (user, client_id, (user, client_id)),
            (user, DEFAULT, (user, client_id)),
            (user, None, (user, None)),
            (DEFAULT, client_id, (user, client_id)),
            (DEFAULT, DEFAULT, (user, client_id)),
            (DEFAULT, None, (user, None)),
            (None, client_id, (None, client_id)),
            (None, DEFAULT, (None, client_id)),
        ):
            rate = self.rates.get((of_user, of_client))
            if rate is not None:
                return shared, rate
        return None

    def bytes_max(self, user: str, client_id: str) -> int | None:
        """The most that one answer may have without being throttled for certain; None without a quota."""
        found = self.quota(user, client_id)
        return None if found is None else found[1] * (Rate().samples - 1) * Rate().window_ms // 1000

    def throttle_ms(self, user: str, client_id: str, size: int, now_ms: int) -> int:
        """0 if an answer of so many bytes may be sent, which is recorded; else for how long the client is to wait."""
        return self._throttle_ms(user, client_id, size, now_ms, is_done=False)

    def used_ms(self, user: str, client_id: str, size: int, now_ms: int) -> int:
        """For how long a client is to wait that has sent so many bytes, which are recorded; 0 if it has not used up its quota."""
        return self._throttle_ms(user, client_id, size, now_ms, is_done=True)

    def _throttle_ms(self, user: str, client_id: str, size: int, now_ms: int, *, is_done: bool) -> int:
        found = self.quota(user, client_id)
        if found is None:
            return 0
        shared, bound = found
        with self._lock:
            if shared not in self._used and len(self._used) >= CLIENTS_MAX:
                self._used.clear()
            rate = self._used.setdefault(shared, Rate())
            rate.record(size, now_ms)
            throttle_ms = rate.throttle_ms(bound, now_ms)
            if throttle_ms and not is_done:
                rate.record(-size, now_ms)
        return throttle_ms


@dataclass(slots=True)
class ClientQuotas(RateQuotas):
    """`rates` are what clients may fetch (`consumer_byte_rate`)."""

    producers: RateQuotas = field(default_factory=RateQuotas)
    """What they may produce (`producer_byte_rate`)."""
