"""All fetch sessions: how many there may be, and which one makes room for another (Kafka's FetchSessionCache).

A new session takes the place of another one if that

- was not used for `eviction_ms`, or
- is a consumer's and the new one a follower's, or
- has fewer partitions than the new one, and is older than `eviction_ms`.

Not as in Kafka, all partitions together are limited as well, so that memory is.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from local_log.formats.primitives import INT32_MAX
from remote.clock import Ids
from tiering.endpoint.fetch_sessions.session import NO_SESSION, CachedPartition, FetchSession, Key

SLOTS_MAX: Final = 1000
"""`max.incremental.fetch.session.cache.slots`."""
EVICTION_MS: Final = 120_000
"""Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""
PARTITIONS_MAX: Final = 200_000
"""Each takes about 400 bytes of memory."""


@dataclass(slots=True)
class FetchSessionCache:
    """Sessions by id, those not used for longest first. One thread at a time may use it."""

    ids: Ids
    slots_max: int = SLOTS_MAX
    eviction_ms: int = EVICTION_MS
    partitions_max: int = PARTITIONS_MAX
    partitions: int = 0
    """Those of all sessions together."""
    evictions: int = 0
    """Sessions that made room for others."""
    _sessions: OrderedDict[int, FetchSession] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        """The session, None if there is none with this id."""
        return self._sessions.get(session_id)

    def create(self, now_ms: int, partitions: dict[Key, CachedPartition], *, is_privileged: bool, uses_topic_ids: bool) -> int:
        """The id of a new session, to which `partitions` belong from now on; NO_SESSION if there is no room for it."""
        size = len(partitions)
        if size > self.partitions_max:
            return NO_SESSION
        while len(self) >= self.slots_max or self.partitions + size > self.partitions_max:
            evictable = self._evictable(now_ms, size, is_privileged=is_privileged)
            if evictable is None:
                return NO_SESSION
            self.remove(evictable)
            self.evictions += 1
        session = FetchSession(self._new_id(), is_privileged, uses_topic_ids, partitions, now_ms, now_ms)
        self._sessions[session.id] = session
        self.used(session, now_ms)
        return session.id

    def used(self, session: FetchSession, now_ms: int) -> bool:
        """The session is used now, and may have more or fewer partitions than before. False if it is over.

        It has made room for another one, or has grown out of its own: its consumer begins anew, with a session or without.
        """
        if self._sessions.get(session.id) is not session:
            return False
        session.last_used_ms = now_ms
        session.is_old = now_ms - session.created_ms > self.eviction_ms
        self._sessions.move_to_end(session.id)
        self.partitions += len(session.partitions) - session.cached_size
        session.cached_size = len(session.partitions)
        if self.partitions > self.partitions_max:
            self.remove(session)
            return False
        return True

    def remove(self, session: FetchSession) -> None:
        """Ends a session, unless it is over."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self.partitions -= session.cached_size

    def _evictable(self, now_ms: int, size: int, *, is_privileged: bool) -> FetchSession | None:
        """The session that makes room for one of this size, None if none does."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now_ms - oldest.last_used_ms > self.eviction_ms:
            return oldest
        candidates = [s for s in self._sessions.values() if s.is_old or (is_privileged and not s.is_privileged)]
        least = min(candidates, key=lambda s: (s.is_privileged, s.cached_size, s.id), default=None)
        if least is None or (is_privileged, size) <= (least.is_privileged, least.cached_size):
            return None
        return least

    def _new_id(self) -> int:
        while True:
            found = int(self.ids.new_id()[-8:], 16) & INT32_MAX
            if found != NO_SESSION and found not in self._sessions:
                return found
