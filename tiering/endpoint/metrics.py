"""What the endpoint counts: requests by API, and what was fetched by topic (Kafka's RequestMetrics and BrokerTopicMetrics)."""

import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace
from math import ceil
from struct import Struct
from typing import Final

from tiering.endpoint.protocol.api_keys import APIS

SAMPLES_MAX: Final = 1024
"""So many of the last requests of an API tell how long they take, as Kafka's histograms keep 1,028."""
_KEY_AND_VERSION: Final = Struct(">hh")


@dataclass(slots=True)
class Histogram:
    """The last values; one thread adds them, any may ask."""

    _values: list[float] = field(default_factory=list)
    _next: int = 0

    def add(self, value: float) -> None:
        """One more, in the place of the oldest when there are SAMPLES_MAX."""
        if len(self._values) < SAMPLES_MAX:
            self._values.append(value)
        else:
            self._values[self._next] = value
            self._next = (self._next + 1) % SAMPLES_MAX

    def quantiles(self, *fractions: float) -> list[float]:
        """The smallest values that so many of all are not above, 0 without any."""
        values = sorted(self._values[:]) or [0.0]
        return [values[max(0, ceil(fraction * len(values)) - 1)] for fraction in fractions]


@dataclass(slots=True)
class ApiMetrics:
    """Of one API: its requests by version, their bytes, and times in ms."""

    requests: dict[int, int] = field(default_factory=dict)
    request_bytes: Histogram = field(default_factory=Histogram)
    total_ms: Histogram = field(default_factory=Histogram)
    send_ms: Histogram = field(default_factory=Histogram)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that is answered now; times are in seconds."""

    api: str
    version: int
    size: int
    began_s: float


@dataclass(slots=True)
class TopicMetrics:
    """Of one topic: bytes of batches that were sent, partitions that were asked for, and those that failed unexpectedly."""

    bytes_out: int = 0
    fetches: int = 0
    failed_fetches: int = 0


@dataclass(slots=True)
class EndpointMetrics:
    """All of it since the start. Requests are counted by the thread that sends answers, fetches by many."""

    apis: dict[str, ApiMetrics] = field(default_factory=dict)
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
        of_api = self.apis.get(asked.api)
        if of_api is None:
            of_api = self.apis[asked.api] = ApiMetrics()
        of_api.requests[asked.version] = of_api.requests.get(asked.version, 0) + 1
        of_api.request_bytes.add(asked.size)
        of_api.total_ms.add((now_s - asked.began_s) * 1000)
        of_api.send_ms.add((now_s - answered_s) * 1000)

    def fetched(self, topic: str, partitions: int, failed: int, size: int) -> None:
        """So many partitions of a topic were asked for, of which some failed; so many bytes of batches are in the answer."""
        with self._lock:
            found = self._topics[topic]
            found.fetches += partitions
            found.failed_fetches += failed
            found.bytes_out += size

    def topics(self) -> dict[str, TopicMetrics]:
        """Those that were fetched."""
        with self._lock:
            return {name: replace(found) for name, found in self._topics.items()}
