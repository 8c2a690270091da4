"""Fetches of one connection that are like the one before: of one partition, each from another offset on.

Most fetches are, so they take a short way: the frame is compared with the one before instead of read, the answer is made of a
few numbers, and what is known of the log is kept for as long as the log is the same. Whatever is out of the ordinary takes the
way of all requests, which gives the same bytes. Frames are without their size here.
"""

from dataclasses import replace
from typing import Any, Final, NamedTuple

from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import ISOLATION_LEVELS, NO_EPOCH, Context, leader_epoch_of
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.fetch_sessions.manager import TOPIC_IDS_SINCE, Read
from tiering.endpoint.fetch_sessions.session import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, Wanted
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.fetch_frames import LOG_START_OFFSET_SINCE, RequestFrames, ResponseFrames, request_frames
from tiering.endpoint.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, PartitionData
from tiering.endpoint.protocol.requests import RequestHeader, UnknownApiVersions, read_request
from tiering.endpoint.request_context import ConnectionContext, RequestContext
from tiering.read.tiered_log import TieredLog

FRAME_BYTES_MAX: Final = 1 << 10
"""Names may be long, but hardly are."""
UNLIKE_MAX: Final = 256
"""So many fetches at most take the long way before it is looked again what the next ones will be like."""
_FETCH_KEY: Final = FETCH.key.to_bytes(2, "big")
_READ_UNCOMMITTED: Final = ISOLATION_LEVELS[0]
_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time
_CONSUMER: Final = -1
"""The replica id of those that are none."""


KnownFetches = dict[int, "RepeatedFetch"]
"""By the size of their frames, of which there are so few that nothing else bounds them."""


class Answer(NamedTuple):
    """The parts of an answer of `size` bytes, to a request of a version, which is `fetch` of `[offset, next_offset)`."""

    parts: list[Any]
    size: int
    version: int
    fetch: "RepeatedFetch"
    offset: int
    next_offset: int


class Seen(NamedTuple):
    """A log, and what it says of itself; None for one that cannot be answered for at once."""

    log: TieredLog | None
    start: int
    end: int
    leader_epoch: int


_NOTHING: Final = Seen(None, 0, 0, NO_EPOCH)


class RepeatedFetches:
    """Those of one connection; for the thread that answers at once. `known` is shared by all connections."""

    __slots__ = ("_fetch", "_known", "_left", "_unlike")

    def __init__(self, known: "KnownFetches") -> None:
        self._known = known
        self._fetch: RepeatedFetch | None = None
        self._unlike = 1
        """How many fetches took the long way before it was last looked what they are like."""
        self._left = 1

    def answer(self, frame: bytes, connection: ConnectionContext, context: Context) -> Answer | None:
        """The answer to a frame; None for one that is to take the way of all requests."""
        fetch = self._fetch or self._known.get(len(frame))
        try:
            return None if fetch is None else fetch.answer(frame, connection, context)
        except Exception:  # it comes again on the way of all requests, where it is told or waited for
            return None

    def unlike(self, frame: bytes, bytes_max: int) -> None:
        """A request was answered the long way: perhaps the next ones are like it.

        They give `bytes_max` at most. The more often they were not, the more seldom it is looked what they are like.
        """
        if frame[:2] != _FETCH_KEY or len(frame) > FRAME_BYTES_MAX:
            return
        known = self._known.get(len(frame))
        if known is not None and known.is_like(frame):
            self._fetch = known
        elif self._left:
            self._left -= 1
        else:
            self._left = self._unlike = min(2 * self._unlike, UNLIKE_MAX)
            self._fetch = repeated(frame, bytes_max)
            if self._fetch is not None:
                self._known[len(frame)] = self._fetch


class RepeatedFetch:
    """All fetches of one partition by one client: what is asked, and what is known of the log."""

    def __init__(self, header: RequestHeader, message: FetchRequest, frames: RequestFrames, bytes_max: int) -> None:
        (topic,) = message.topics
        (asked,) = topic.partitions
        self._header, self.version = header, header.version
        self._size, self._unpack, self._same = frames.layout.size, frames.layout.unpack, frames.same
        self._name = None if header.version >= TOPIC_IDS_SINCE else topic.topic
        self._session_id, self._asked = message.session_id, asked
        self._id, self._number, self._epoch = topic.topic_id, asked.partition, max(NO_EPOCH, asked.current_leader_epoch)
        self.max_bytes: Final = max(0, min(asked.partition_max_bytes, message.max_bytes, bytes_max))
        self.min_bytes: Final = min(message.min_bytes, message.max_bytes, bytes_max)
        self.alike: Final = frames.alike
        self.offset_at: Final = frames.offset_at
        answer = FetchableTopicResponse(topic.topic, topic.topic_id, (PartitionData(asked.partition),))
        self.response: Final = ResponseFrames(header, message.session_id, answer)
        self._tail_size = sum(map(len, self.response.tail))
        self._head, self._tail = self.response.head, self.response.tail
        self._seen = _NOTHING

    def is_like(self, frame: bytes) -> bool:
        """Whether a frame is that of such a fetch."""
        return len(frame) == self._size and self._unpack(frame)[::2] == self._same

    def answer(self, frame: bytes, connection: ConnectionContext, context: Context) -> Answer | None:
        """See `RepeatedFetches`. Raises whatever goes wrong, and NotAtHand."""
        if len(frame) != self._size:
            return None
        values = self._unpack(frame)
        if values[::2] != self._same or context.quotas is not None:
            return None
        context.look()
        name, (log, start, end, _) = self.look(connection, context)
        offset, max_bytes = values[-2], self.max_bytes
        if log is None or not start <= offset < end:
            return None
        batches = context.reads.read_at_once(log, offset, max_bytes, one_at_least=True)
        size = batches.size
        min_bytes = self.min_bytes
        if not size or (size < min_bytes and (max_bytes < min_bytes or batches.next_offset >= end)):
            return None
        if self._session_id:
            asked = Wanted(name, self._id, replace(self._asked, fetch_offset=offset))
            if not context.fetches.went_on(self._session_id, values[3], Read(asked, end, start), context.clock.hi_res_clock_ms()):
                return None
        context.metrics.fetched(name, 1, 0, size)
        head, tail = self._head(values[1], end, start, size), self._tail
        whole = len(head) + size + self._tail_size
        return _tuple(Answer, ([head, *batches.parts, *tail], whole, self.version, self, offset, batches.next_offset))

    def look(self, connection: ConnectionContext, context: Context) -> tuple[str, Seen]:
        """The topic's name and the log, if the client may read it, it can be read at once and this process leads it."""
        name = self._name or context.logs.name_of(self._id)
        if name is None or not (context.acls is None or self._is_authorized(name, connection, context)):
            return "", _NOTHING
        return name, self._look(name, context)

    def _is_authorized(self, name: str, connection: ConnectionContext, context: Context) -> bool:
        request_context = RequestContext(self._header, connection)
        return is_authorized(context, request_context, Operation.READ, ResourceType.TOPIC, name, is_told=False)

    def _look(self, name: str, context: Context) -> Seen:
        """The same also if the client knows the log's leader epoch."""
        topic = context.logs.recent(name)
        log = None if topic is None else topic.partitions.get(self._number)
        if topic is None or log is None or not context.cluster.live.leads(name, self._number):
            return _NOTHING
        seen = self._seen
        if log is not seen.log:
            seen = self._seen = _seen_of(log) if isinstance(log, TieredLog) else _NOTHING
        is_asked = self._name is not None or topic.id == self._id
        return seen if is_asked and self._epoch in (NO_EPOCH, seen.leader_epoch) else _NOTHING


def _seen_of(log: TieredLog) -> Seen:
    """Of a log that does not change and is measured."""
    if log.local is None or log.local.is_measured:
        return Seen(log, log.log_start_offset, log.end_offset(), leader_epoch_of(log))
    return _NOTHING


def repeated(frame: bytes, bytes_max: int) -> RepeatedFetch | None:
    """The fetches like that of a frame, which was answered before; None if they are to take the way of all requests."""
    request = read_request(frame)
    assert not isinstance(request, UnknownApiVersions)
    header, message = request.header, request.message
    replica_ids = {message.replica_id, message.replica_state.replica_id}
    if header.version < LOG_START_OFFSET_SINCE or message.isolation_level != _READ_UNCOMMITTED or replica_ids != {_CONSUMER}:
        return None
    begins = message.session_epoch == INITIAL_EPOCH
    if begins or (message.session_id == NO_SESSION) != (message.session_epoch == FINAL_EPOCH):
        return None
    if len(message.topics) != 1 or message.forgotten_topics_data:
        return None
    asked = message.topics[0].partitions
    if len(asked) != 1 or asked[0].last_fetched_epoch >= 0:
        return None
    frames = request_frames(frame, header, message)
    return None if frames is None else RepeatedFetch(header, message, frames, bytes_max)
