"""A way in which our answers may differ from a broker's."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from compared_answers import Compared, Difference

from tiering.endpoint.protocol.api_keys import FETCH, Api
from tiering.endpoint.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """What differs, and why; `holds` says whether a difference is one of these."""

    what: str
    reason: str
    holds: Callable[[Compared, Difference], bool]
    shown_by: tuple[tuple[Api, int, object], ...]
    """A request, or the life of a group."""


def fails_inside(of: Compared, found: Difference) -> bool:
    """Whether the broker answered so."""
    codes = [getattr(theirs, "error_code", 0) for theirs, _ in found.within]
    whole = [topic.error_code for topic in getattr(of.theirs, "topics", ()) if hasattr(topic, "error_code")]
    if of.api is FETCH:  # the other partitions have its bytes
        whole += [one.error_code for one in fetched(of.theirs)]
    return ErrorCode.UNKNOWN_SERVER_ERROR in codes or ErrorCode.UNKNOWN_SERVER_ERROR in whole


def fetched(answer: Any) -> Iterator[Any]:
    """The partitions of an answer to Fetch."""
    for topic in answer.responses:
        yield from topic.partitions
