"""A partition that is gone from its log directory: its manifest is told, and says what is lost by that.

Partitions are moved between brokers and topics are deleted, both on purpose: nothing is lost where another log directory has the
partition, or where all of it was archived. Until the manifest has said so, what was not archived counts as lost.
"""

from functools import partial

from local_log.errors import LogError
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.losses import source_gone
from remote.manifest.store import ManifestWriter, load_newest
from remote.store.api import ObjectStore
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job
from tiering.agent.watch import Mark
from tiering.lag.archived import Archived
from tiering.lag.local_log import LogSeen


def tell_gone(job: Job, mark: Mark, seen: LogSeen, store: ObjectStore, clock: Clock, ids: Ids) -> Outcome:
    """Tells the manifest that a log directory does not have the partition any more. What nobody has archived has no manifest."""
    try:
        path = PartitionPath(mark.partition.topic, seen.topic_id, mark.partition.partition)
        stored = load_newest(store, path)
        if stored is None:
            return Outcome(job)
        if stored.manifest.is_deleted:
            return Outcome(job, is_left_alone=True)
        source, now_ms = mark.log_dir.id(), clock.now_ms()
        writer = ManifestWriter(store, path, clock, ids, source, stored.manifest.writer_epoch)
        change = partial(source_gone, source=source, log_end_offset=seen.end_offset, now_ms=now_ms)
        return Outcome(job, archived=Archived.of(writer.commit(stored.manifest, change)))
    except LogError as e:
        return Outcome(job, error=e)
