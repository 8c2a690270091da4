"""One fetch of a session, of none, or of one that there is not: which partitions it reads, and what of them it tells.

A context belongs to the request, and outlives its waiting: what the session holds changes once a request, not once a look.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.session import CachedPartition, FetchSession, Wanted, next_epoch
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

Answers = Sequence[tuple[Wanted, PartitionData]]


class FetchContext(Protocol):
    """A fetch request and its session (Kafka's FetchContext)."""

    @property
    def wanted(self) -> Sequence[Wanted]:
        """The partitions to read, in this order."""

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """The response, of the answers that are new to the consumer."""


@dataclass(frozen=True, slots=True)
class SessionError:
    """There is no such session, or the request does not fit it."""

    code: ErrorCode
    wanted: Sequence[Wanted] = ()

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """The error, and no partition."""
        return FetchResponse(error_code=self.code)


@dataclass(frozen=True, slots=True)
class SessionlessFetch:
    """A fetch that names all its partitions, and has no session afterwards."""

    wanted: Sequence[Wanted]

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """All answers."""
        return FetchResponse(responses=_by_topic(answers))


@dataclass(frozen=True, slots=True)
class FullFetch:
    """A fetch that names all its partitions, and begins a session with them if there is room for one."""

    wanted: Sequence[Wanted]
    cache: FetchSessionCache
    lock: AbstractContextManager[object]
    is_privileged: bool
    uses_topic_ids: bool

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """All answers."""
        partitions = {
            wanted.key: CachedPartition(wanted, answer.high_watermark, answer.log_start_offset) for wanted, answer in answers
        }
        with self.lock:
            session_id = self.cache.create(
                now_ms, partitions, is_privileged=self.is_privileged, uses_topic_ids=self.uses_topic_ids
            )
        return FetchResponse(session_id=session_id, responses=_by_topic(answers))


@dataclass(frozen=True, slots=True)
class IncrementalFetch:
    """A fetch of a session, which knows the partitions that the request does not name."""

    wanted: Sequence[Wanted]
    session: FetchSession
    epoch: int
    """Of the request."""

    def respond(self, answers: Answers, now_ms: int) -> FetchResponse:
        """The answers with anything new; an error if another request of the session came meanwhile."""
        session = self.session
        with session.lock:
            if session.epoch != next_epoch(self.epoch):
                return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id)
            told = [(wanted, answer) for wanted, answer in answers if session.partitions[wanted.key].must_respond(answer)]
            for wanted, answer in told:
                if any(answer.records or ()):
                    session.move_to_end(wanted.key)
        return FetchResponse(session_id=session.id, responses=_by_topic(told))


def resolved(session: FetchSession, name_of: Callable[[str], str | None]) -> tuple[Wanted, ...]:
    """All partitions of a session, whose lock is held; those whose topic was not known get its name as soon as it is."""
    for partition in session.partitions.values():
        wanted = partition.wanted
        if wanted.topic is None and (name := name_of(wanted.topic_id)) is not None:
            partition.wanted = Wanted(name, wanted.topic_id, wanted.asked)
    return tuple(partition.wanted for partition in session.partitions.values())


def _by_topic(answers: Iterable[tuple[Wanted, PartitionData]]) -> tuple[FetchableTopicResponse, ...]:
    """Answers in a row of one topic together."""
    topics = groupby(answers, lambda pair: (pair[0].topic or "", pair[0].topic_id))
    return tuple(FetchableTopicResponse(*topic, tuple(answer for _, answer in pairs)) for topic, pairs in topics)
