"""Appends of one batch to one partition, which most appends are, by a short way.

It has the same effect as `produce`, and gives the same bytes, for what is appended at once and has nothing to be told but where
the records are. Whatever is out of the ordinary takes the way of all requests, which also says why something is refused.
"""

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from local_log.formats.header_layout import TRANSACTIONAL
from tiering.endpoint.apis.context import INTERNAL_TOPICS, Context
from tiering.endpoint.apis.produce import ACKS, ALL, append_failed
from tiering.endpoint.apis.produced_records import attributes_of_one_batch
from tiering.endpoint.appends.at_once import is_short
from tiering.endpoint.protocol.produce_frames import VERSIONS, OneAppend, answer_frame, find_one_append
from tiering.endpoint.settings import STORAGE_MIN_FREE_BYTES

if TYPE_CHECKING:
    from tiering.local_tier.local_tier import LocalTier

_HEADER: Final = Struct(">hhih")
_BYTES_MIN: Final = 32
"""Of a request with a batch."""


def append_one(frame: bytes, context: Context, done: dict[Any, Any]) -> list[Any] | None:
    """The parts of the answer to a frame; None for one that is to take the way of all requests, with what is `done` of it."""
    tier = context.local_tier
    if tier is None or len(frame) < _BYTES_MIN or context.acls is not None or context.quotas is not None:
        return None
    _, version, correlation_id, client_id_size = _HEADER.unpack_from(frame)
    pos = _HEADER.size + max(client_id_size, 0)
    if version not in VERSIONS or pos >= len(frame) or frame[pos]:
        return None
    asked = find_one_append(frame, pos + 1, version)
    if asked is None or asked.acks not in ACKS or (asked.acks == ALL and context.group_commit is not None):
        return None
    named, topic_id = asked.topic(version)
    name = named or tier.name_of(topic_id)
    if name is None or not _is_plain(name, asked, tier, context):
        return None
    found = _appended(name, (named, topic_id, asked.number), asked.records, tier, context, done)
    if found is None or not asked.acks:
        return None if found is None else []
    return [answer_frame(correlation_id, asked.named, (asked.number, 0, *found), 0)]


def _is_plain(name: str, asked: OneAppend, tier: "LocalTier", context: Context) -> bool:
    """Whether the partition is here, and the batch one that any client may append at once."""
    topic, attributes = tier.topics().get(name), attributes_of_one_batch(asked.records)
    return (
        topic is not None
        and asked.number in topic.partitions
        and name not in INTERNAL_TOPICS
        and context.cluster.live.leads(name, asked.number)
        and attributes is not None
        and not attributes & TRANSACTIONAL
        and is_short(asked.records)
    )


# Six parameters: what is appended, to what, and where it is told.
def _appended(
    name: str, place: tuple[str, str, int], records: memoryview, tier: "LocalTier", context: Context, done: dict[Any, Any]
) -> tuple[int, int, int] | None:
    """First offset, time of the append and log start offset."""
    number, size, began_ms = place[-1], len(records), context.clock.hi_res_clock_ms()
    if not context.at_once.may(began_ms):
        return None
    try:
        log = tier.log(TopicPartition(name, number))
        if not place[0] and tier.name_of(place[1]) != name:  # the log is of a topic created anew
            return None
        if not context.room.take(log, size, context.settings[STORAGE_MIN_FREE_BYTES], began_ms):
            return None
    except LogError:  # the way of all requests tells why
        return None
    try:
        info = log.append_at_once(records, log.epochs.latest_epoch or 0)
    except LogError as e:  # it may be in the log, and must not be tried again
        done[place] = append_failed(context, name, number, e), None
        return None
    if info is None:
        return None
    context.at_once.took(began_ms, context.clock.hi_res_clock_ms())
    context.metrics.produced(name, size, info.last_offset - info.first_offset + 1)
    return info.first_offset, info.log_append_time, info.log_start_offset
