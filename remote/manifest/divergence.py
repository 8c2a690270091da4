"""Where a log and the archive of it have parted: pure, from the leader epochs of both and where they end.

    offset    0         700      1 400   1 650
    archive   epoch 0   epoch 1          end
    log       epoch 0   epoch 2  ···             an unclean election at 700, which is the fork

After an unclean election the new leader lacks what was archived of the former one: both histories are true, and not one log.
"""

from itertools import count, pairwise
from typing import Final

from local_log.errors import Conflict
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.ranges import Range
from remote.keys import topic_id_from
from remote.manifest.history import History, check_history
from remote.manifest.model import Manifest

OTHER_RECORDS_REMEDY: Final = (
    "where the directory was truncated or restored from an older copy, its records are not archived: read them from the log, "
    "create the topic anew and append them there"
)
"""What to do about a log that has other records than the archive at the same offsets and leader epochs."""


def fork_offset(manifest: Manifest, lineage: tuple[EpochEntry, ...], end_offset: int) -> int | None:
    """The greatest offset up to which the archive and a log with these leader epochs up to `end_offset` are of one history.

    None if they do not contradict each other, or if one of them has no leader epochs and cannot be compared. Two histories
    diverge at the start offset of an epoch. If they have no epoch in common, they diverge where the log starts: nothing is known
    of the log below that offset.
    """
    known = History.of(manifest)
    if not is_another_history(manifest, lineage, end_offset) or not lineage or not known.epochs:
        return None
    starts = {e.start_offset for e in (*known.epochs, *lineage) if e.start_offset <= known.end}
    for fork in sorted({0, known.end, *starts}, reverse=True):
        short = known.below(fork)
        if not short.with_epochs_in_gaps(lineage, end_offset, end_offset).contradicts(lineage, end_offset):
            return short.end
    return None


def others_below_start(manifest: Manifest, fork: int, lineage: tuple[EpochEntry, ...], log_start_offset: int) -> Range | None:
    """The offsets below the archive's log start offset where a log may have other records than the archive had; None if none.

    They are never archived, since that offset does not go back. The archive knows no leader epochs there, but its first one
    began at its start or below: if the log has this epoch, too, both have the same records up to the log's next epoch. If
    not, or if the topic has no id, nothing is known of what lies below.
    """
    if fork > manifest.log_start_offset:
        return None
    epoch = manifest.leader_epochs[0].epoch if manifest.topic_id != ZERO_TOPIC_ID else None
    ends = (after.start_offset for of, after in pairwise(lineage) if of.epoch == epoch)
    start, end = max(log_start_offset, next(ends, 0)), manifest.log_start_offset
    return (start, end) if start < end else None


def is_another_history(manifest: Manifest, lineage: tuple[EpochEntry, ...], end_offset: int) -> bool:
    """Whether a log is refused since its history contradicts the archive's. Raises TopicDeleted."""
    try:
        check_history(manifest, lineage, end_offset)
    except Conflict:
        return True
    return False


def kept_topic_id(manifest: Manifest, fork: int) -> str:
    """The id of the topic under which the history from a fork on is kept: the same one for all who keep it."""
    epochs = ",".join(f"{e.epoch}:{e.start_offset}" for e in manifest.leader_epochs)
    of = f"{manifest.topic}\0{manifest.topic_id}\0{manifest.partition}\0{fork}\0{epochs}"
    return next(filter(None, (topic_id_from(f"{of}\0{attempt}".encode()) for attempt in count())))


def is_older(manifest: Manifest, lineage: tuple[EpochEntry, ...]) -> bool:
    """Whether a log is of an older history than the archive: its broker gives that up as soon as it follows the leader."""
    return manifest.topic_id != ZERO_TOPIC_ID and lineage[-1].epoch < manifest.leader_epochs[-1].epoch
