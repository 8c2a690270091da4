"""The requests that the compiled loop answers, for as long as each is to be answered as it was."""

from typing import Final, NamedTuple

import numpy as np

from local_log.log_reader import LogReader
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.repeated_fetches import RepeatedFetch
from tiering.endpoint.authorization.authorizer import AclIndex
from tiering.endpoint.brokers.live_brokers import LiveBrokers
from tiering.endpoint.fetch_loop.known_batches import KnownBatches
from tiering.endpoint.fetch_loop.tables import NO_REQUEST, PART_MAX, REQUESTS_MAX, Tables
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.network.receive import SIZE_BYTES
from tiering.endpoint.request_context import ConnectionContext
from tiering.read.tiered_log import TieredLog

IDLE_MS: Final = 10_000
"""So long after it was last answered a request makes place for another one."""
FRESH_MS: Final = 30_000
"""So long after a fetch its topic is looked at in the background."""
_FRAMES: Final = 3
"""Of each request: see `Tables.frames`."""


class KnownRequest(NamedTuple):
    """A request of a group of clients that may do the same; `connection` is that of one of them."""

    fetch: RepeatedFetch
    group: int
    connection: ConnectionContext
    name: str
    log: TieredLog
    start: int
    end: int
    parts: tuple[bytes, bytes, bytes]
    """What it is like, and what comes before and after the batches in its answers."""

    @property
    def size(self) -> int:
        """Bytes of the request without its size, as they are counted."""
        return len(self.parts[0]) - SIZE_BYTES


class KnownRequests:
    """At most REQUESTS_MAX, and no more while all of them are in use. For the thread of the sockets."""

    def __init__(self, tables: Tables, batches: KnownBatches) -> None:
        self._tables, self._batches = tables, batches
        self._known: list[KnownRequest] = []
        self._topics: dict[str, HostedTopic | None] = {}
        """As they were when it was last checked that the requests may be answered."""
        self._used_ms: dict[str, int] = {}
        self._answered_ms: dict[int, int] = {}
        """When the requests were last answered, by the ids of these objects."""
        self._live: LiveBrokers | None = None
        self._acls: AclIndex | None = None

    def __getitem__(self, number: int) -> KnownRequest:
        return self._known[number]

    def check(self, context: Context) -> None:
        """Forgets those that are perhaps to be answered in another way now. To be called before the loop.

        It costs little while nothing that an answer depends on has changed: the topics, who leads them, who may read them.
        """
        context.look()
        acls = None if context.authorizer is None else context.authorizer.index
        recent = context.logs.recent
        if context.cluster.live is self._live and acls is self._acls:
            for name, topic in self._topics.items():
                if recent(name) is not topic:
                    break
            else:
                return
        self._live, self._acls = context.cluster.live, acls
        topics = {name: recent(name) for name in self._topics}  # before the logs are compared, which another thread may replace
        self._set([one for one in self._known if topics[one.name] is None or _is_as_before(one, context)], topics)

    def used(self, number: int, now_ms: int) -> KnownRequest:
        """A request that was answered now."""
        one = self._known[number]
        self._used_ms[one.name] = self._answered_ms[id(one)] = now_ms
        return one

    def look(self, context: Context) -> None:
        """Has topics that were fetched a while ago looked at, so that the next fetch needs not wait for it."""
        now_ms = context.clock.hi_res_clock_ms()
        for name in self._topics:
            if now_ms - self._used_ms.get(name, -FRESH_MS) < FRESH_MS:
                context.logs.recent(name)

    def add(self, fetch: RepeatedFetch, group: int, connection: ConnectionContext, context: Context) -> KnownRequest | None:
        """Knows a request that was answered just now; None if the loop cannot answer it."""
        for one in self._known:
            if one.group == group and one.fetch.alike == fetch.alike:
                return one
        now_ms, kept = context.clock.hi_res_clock_ms(), self._known
        if len(kept) >= REQUESTS_MAX:
            kept = [one for one in kept if now_ms - self._answered_ms.get(id(one), 0) < IDLE_MS]
        found = _known(fetch, group, connection, context) if len(kept) < REQUESTS_MAX else None
        if found is not None:
            self._answered_ms[id(found)] = now_ms
            topics = {found.name: None, **self._topics}  # a new one is checked before the loop is called again
            self._set([*kept, found], topics)
        return found

    def _set(self, known: list[KnownRequest], topics: dict[str, HostedTopic | None]) -> None:
        self._known = known
        self._topics = {one.name: topics[one.name] for one in known}
        self._used_ms = {name: used_ms for name, used_ms in self._used_ms.items() if name in self._topics}
        self._answered_ms = {id(one): self._answered_ms.get(id(one), 0) for one in known}
        self._batches.keep(one.log for one in known)
        self._tables.state["requests"] = len(known)
        for number, one in enumerate(known):
            self._write(number, one)

    def _write(self, number: int, one: KnownRequest) -> None:
        frames, fetch = self._tables.frames[_FRAMES * number :], one.fetch
        for frame, part in zip(frames, one.parts, strict=False):
            frame[: len(part)] = np.frombuffer(part, np.uint8)
        request, head, tail = one.parts
        row = self._tables.requests[number]
        is_known = self._topics[one.name] is not None  # else it is to be looked at, and is perhaps as it was then
        row["group"], row["log"] = one.group if is_known else NO_REQUEST, self._batches.number(one.log)
        row["size"], row["offset_at"], row["head"], row["tail"] = len(request), fetch.offset_at, len(head), len(tail)
        row["start"], row["end"] = one.start, one.end
        row["max_bytes"], row["min_bytes"] = fetch.max_bytes, fetch.min_bytes
        row["is_flexible"] = fetch.response.is_flexible


def _known(fetch: RepeatedFetch, group: int, connection: ConnectionContext, context: Context) -> KnownRequest | None:
    request, response = fetch.alike, fetch.response
    try:
        name, (log, start, end, _) = fetch.look(connection, context)
    except Exception:  # it comes again on the way of all requests, where it is told
        return None
    if request is None or log is None or not (log.local is None or isinstance(log.local, LogReader)):
        return None  # a log that the process writes changes with each record
    parts = request, response.before_size(end, start), b"".join(response.tail)
    return None if max(map(len, parts)) > PART_MAX else KnownRequest(fetch, group, connection, name, log, start, end, parts)


def _is_as_before(one: KnownRequest, context: Context) -> bool:
    found = _known(one.fetch, one.group, one.connection, context)
    return found is not None and found.log is one.log and found.name == one.name
