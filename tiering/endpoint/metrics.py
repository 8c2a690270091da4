"""What the endpoint counts: requests by API, and what was fetched by topic (Kafka's RequestMetrics and BrokerTopicMetrics)."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import ceil
from struct import Struct
from typing import Final, NamedTuple

from tiering.endpoint.protocol.api_keys import APIS
from tiering.endpoint.protocol.errors import ErrorCode

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time
SAMPLES_MAX: Final = 1024
"""So many of the last requests of an API tell how long they take, as Kafka's histograms keep 1,028."""
_KEY_AND_VERSION: Final = Struct(">hh")


class RequestTimes(NamedTuple):
    """Of one request; `total_ms` from its arrival until its answer was sent, `send_ms` of that from when the answer was there."""

    size: int
    total_ms: float
    send_ms: float


@dataclass(slots=True)
class ApiMetrics:
    """Of one API: its requests by version, and the last of them. One thread adds them, any may ask."""

    requests: dict[int, int] = field(default_factory=dict)
    _last: list[RequestTimes] = field(default_factory=list)
    _next: int = 0

    def add(self, version: int, times: RequestTimes) -> None:
        """One more, in the place of the oldest when there are SAMPLES_MAX."""
        self.requests[version] = self.requests.get(version, 0) + 1
        if len(self._last) < SAMPLES_MAX:
            self._last.append(times)
        else:
            self._last[self._next] = times
            self._next = (self._next + 1) % SAMPLES_MAX

    def quantiles(self, value_of: Callable[[RequestTimes], float], *fractions: float) -> list[float]:
        """The smallest values of the last requests that so many of all are not above, 0 without any."""
        values = sorted(map(value_of, self._last[:])) or [0.0]
        return [values[max(0, ceil(fraction * len(values)) - 1)] for fraction in fractions]


class Asked(NamedTuple):
    """A request that is answered now; times are in seconds."""

    api: str
    version: int
    size: int
    began_s: float


@dataclass(slots=True)
class TopicMetrics:
    """Of one topic: bytes of batches that were sent, partitions that were asked for, and those that failed unexpectedly.

    And of what producers sent: bytes and records that were appended, partitions that were produced to, and those that failed.
    """

    bytes_out: int = 0
    fetches: int = 0
    failed_fetches: int = 0
    bytes_in: int = 0
    messages_in: int = 0
    produces: int = 0
    failed_produces: int = 0


@dataclass(slots=True)
class Counts:
    """Numbers by two labels, each of which has few values. For many threads."""

    _numbers: defaultdict[tuple[str, ...], int] = field(default_factory=lambda: defaultdict(int))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, one: str, other: str) -> None:
        """One more."""
        with self._lock:
            self._numbers[one, other] += 1

    def all(self) -> dict[tuple[str, ...], int]:
        """Those that are not 0."""
        with self._lock:
            return dict(self._numbers)


@dataclass(slots=True)
class EndpointMetrics:
    """All of it since the start. Requests are counted by the thread that sends answers, all else by many."""

    apis: dict[str, ApiMetrics] = field(default_factory=dict)
    errors: Counts = field(default_factory=Counts)
    """In answers, by API and name of the error."""
    denied: Counts = field(default_factory=Counts)
    """What a client asked for and may not do, by operation and type of the resource."""
    _topics: defaultdict[str, TopicMetrics] = field(default_factory=lambda: defaultdict(TopicMetrics))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begun(self, frame: bytes, now_s: float) -> Asked | None:
        """A request, None for one that has no answer: names and versions that clients make up are not counted."""
        if len(frame) < _KEY_AND_VERSION.size:
            return None
        key, version = _KEY_AND_VERSION.unpack_from(frame)
        api = APIS.get(key)
        return None if api is None or version not in api.versions else Asked(api.name, version, len(frame), now_s)

    def sent(self, asked: Asked, answered_s: float, now_s: float) -> None:
        """Its answer, which was there at `answered_s`, is sent."""
        api, version, size, began_s = asked
        self.of(api).add(version, _tuple(RequestTimes, (size, (now_s - began_s) * 1000, (now_s - answered_s) * 1000)))

    def of(self, api: str) -> ApiMetrics:
        """Those of one API; for the thread that sends answers."""
        found = self.apis.get(api)
        if found is None:
            found = self.apis[api] = ApiMetrics()
        return found

    def failed(self, api: str, error_codes: Iterable[int]) -> None:
        """The codes in an answer, each of a partition, a group or whatever else was asked for."""
        for code in error_codes:
            self.errors.add(api, ErrorCode(code).name)

    def fetched(self, topic: str, partitions: int, failed: int, size: int) -> None:
        """So many partitions of a topic were asked for, of which some failed; so many bytes of batches are in the answer."""
        with self._lock:
            found = self._topics[topic]
            found.fetches += partitions
            found.failed_fetches += failed
            found.bytes_out += size

    def produced(self, topic: str, size: int, records: int, *, failed: bool = False) -> None:
        """A partition of a topic was produced to: bytes and records that were appended."""
        with self._lock:
            found = self._topics[topic]
            found.produces += 1
            found.failed_produces += failed
            found.bytes_in += size
            found.messages_in += records

    def topics(self) -> dict[str, TopicMetrics]:
        """Those that were fetched or produced to."""
        with self._lock:
            return {name: replace(found) for name, found in self._topics.items()}
