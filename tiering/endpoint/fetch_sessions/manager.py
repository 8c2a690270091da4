"""The session of each fetch request (Kafka's FetchManager)."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.contexts import (
    FetchContext,
    FullFetch,
    IncrementalFetch,
    SessionError,
    SessionlessFetch,
    resolved,
)
from tiering.endpoint.fetch_sessions.session import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, Key, Wanted, key_of, next_epoch
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchRequest

TOPIC_IDS_SINCE = 13
"""The first version of Fetch that names topics by id."""

NameOf = Callable[[str], str | None]
"""The name of the topic with an id, None if there is none."""


class Read(NamedTuple):
    """What was read of a partition for a request, and what the client is told of it."""

    wanted: Wanted
    high_watermark: int
    log_start_offset: int


@dataclass(slots=True)
class FetchManager:
    """Sessions for many threads. A session's lock may be held while that of the cache is taken, never the other way round."""

    cache: FetchSessionCache
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def size_of(self, request: FetchRequest) -> int:
        """How many partitions there are in the session that a request goes on with. Waits for nobody."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return 0
        session = self.cache.get(request.session_id)
        return 0 if session is None else len(session.partitions)

    def begin(self, request: FetchRequest, version: int, name_of: NameOf, now_ms: int) -> FetchContext:
        """What a request reads. A session that it belongs to takes in what it says."""
        wanted = _wanted_of(request, version, name_of)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return self._full(request, version, wanted)
        with self._lock:
            session = self.cache.get(request.session_id)
        if session is None:
            return SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        with session.lock:
            return self._incremental(session, request, version, wanted, name_of, now_ms)

    def went_on(self, session_id: int, epoch: int, read: Read, now_ms: int) -> bool:
        """The same at once as `begin` and the response do for a request that names the session's only partition, and is answered
        with batches. False, and nothing is done, if the session is no such one, or this is not its next request.
        """
        with self._lock:
            session = self.cache.get(session_id)
        if session is None:
            return False
        with session.lock:
            key = read.wanted.key
            partition = session.partitions.get(key)
            is_next = session.epoch == epoch and session.uses_topic_ids == (key[0] == read.wanted.topic_id)
            if not is_next or partition is None or len(session.partitions) > 1:
                return False
            with self._lock:
                if not self.cache.used(session, now_ms):
                    return False
            session.epoch = next_epoch(epoch)
            partition.wanted, partition.high_watermark, partition.log_start_offset = read
        return True

    def _full(self, request: FetchRequest, version: int, wanted: tuple[Wanted, ...]) -> FetchContext:
        with self._lock:
            replaced = self.cache.get(request.session_id)
            if replaced is not None:
                self.cache.remove(replaced)
        if request.session_epoch == FINAL_EPOCH:
            return SessionlessFetch(wanted)
        is_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
        return FullFetch(wanted, self.cache, self._lock, is_follower, version >= TOPIC_IDS_SINCE)

    def _incremental(
        self,
        session: FetchSession,
        request: FetchRequest,
        version: int,
        wanted: tuple[Wanted, ...],
        name_of: NameOf,
        now_ms: int,
    ) -> FetchContext:
        if session.epoch != request.session_epoch:
            return SessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != (version >= TOPIC_IDS_SINCE):
            return SessionError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        # First of all, so that the answer to a former request, over another connection, sees that it is no longer the last one,
        # also if this request ends the session.
        session.epoch = next_epoch(session.epoch)
        session.update(wanted, _forgotten_of(request))
        with self._lock:
            if not session.partitions:
                self.cache.remove(session)
                return SessionlessFetch(wanted)
            if not self.cache.used(session, now_ms):
                return SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return IncrementalFetch(resolved(session, name_of), session, request.session_epoch)


def _wanted_of(request: FetchRequest, version: int, name_of: NameOf) -> tuple[Wanted, ...]:
    """The partitions that a request names; of those that it names twice, the last."""
    found: dict[Key, Wanted] = {}
    for topic in request.topics:
        name = name_of(topic.topic_id) if version >= TOPIC_IDS_SINCE else topic.topic
        for asked in topic.partitions:
            one = Wanted(name, topic.topic_id, asked)
            found[one.key] = one
    return tuple(found.values())


def _forgotten_of(request: FetchRequest) -> Iterable[Key]:
    for topic in request.forgotten_topics_data:
        for number in topic.partitions:
            yield key_of(topic.topic, topic.topic_id, number)
