"""What is left of the logs in an archive in the end: it is read, restored, and held against the logs that were archived."""

from dataclasses import dataclass

from local_log.engine.unified_log import UnifiedLog
from local_log.errors import LogError
from local_log.formats.primitives import INT64_MAX
from local_log.ranges import Ranges
from remote.keys import PartitionPath
from remote.manifest.model import Manifest
from remote.read.log import ArchivedLog
from simulated.brokers import Cluster
from simulated.judge import Judge, Named, Watched
from simulated.own_host import OwnHost
from simulated.readers import archived, batches_of
from simulated.restores import restored


@dataclass(frozen=True)
class Remains:
    """What the archive has of the logs of `cluster` and `own`."""

    judge: Judge
    cluster: Cluster
    own: OwnHost | None

    def check(self, path: PartitionPath, watched: Watched) -> bool:
        """What is left of a log in the archive; whether something of it waits to be deleted."""
        judge, newest = self.judge, self.judge.newest(path)
        if newest is None:
            return False
        m = newest.manifest
        if m.is_deleted:
            if not watched.may_be_deleted:
                raise self.judge.violated(f"{path} was deleted by nobody")
            return bool(m.deleting)
        log = archived(judge.unwatched, m)
        found = batches_of(log, m.log_start_offset, m.end_offset)
        judge.read(path, found, "the last reader")
        judge.check_whole(m, found, m.log_start_offset, m.end_offset, "the last reader")
        judge.check_aborted(path, found, log.aborted(m.log_start_offset, m.end_offset), "the last reader")
        self._check_parts(newest, log, found)
        judge.check_gaps(m)
        if path == self.cluster.path:
            judge.check_losses(m, {broker.source: _held(broker.log) for broker in self.cluster.brokers})
        elif self.own is not None and path == self.own.path:
            judge.check_losses(m, dict.fromkeys(m.local_log_start_offsets, _held(self.own.log)))
        self._check_restore(m)
        missing = [(m.end_offset, INT64_MAX), *((gap.start, gap.end) for gap in m.gaps)]
        gone = {n for n in watched.acknowledged if n >= m.log_start_offset and any(start <= n < end for start, end in missing)}
        if gone:
            raise self.judge.violated(f"offsets {min(gone)} to {max(gone)} of {path} were archived, and {missing} are missing")
        return bool(m.deleting)

    def _check_parts(self, newest: Named, log: ArchivedLog, found: dict[int, bytes]) -> None:
        """Who reads one segment alone is told, too, which of its transactions were aborted, wherever that was."""
        m = newest.manifest
        for entry in newest.entries.values():
            start, end = max(entry.base_offset, m.log_start_offset), min(entry.end_offset, m.end_offset)
            part = {base: body for base, body in found.items() if start <= base < end}
            if part:
                who = f"the last reader of [{start}, {end}) alone"
                self.judge.check_aborted(m.path, part, log.aborted(start, end), who)

    def _check_restore(self, manifest: Manifest) -> None:
        """A restore onto an empty disk gives all that the archive has, and a log that opens."""
        try:
            found = restored(self.judge.unwatched, manifest, self.judge.schedule.now)
        except LogError as e:
            raise self.judge.violated(f"a restore of {manifest.path} fails: {e!r}") from e
        self.judge.read(manifest.path, found.batches, "a restore")
        self.judge.check_whole(manifest, found.batches, manifest.log_start_offset, manifest.end_offset, "a restore")
        self.judge.check_markers(manifest, found.batches, found.markers, "a restore")
        if found.end != manifest.end_offset + len(found.markers):
            raise self.judge.violated(f"a restored log ends at {found.end}, the archive at {manifest.end_offset}")


def _held(log: UnifiedLog) -> Ranges:
    """What can be copied of a log: an inactive segment with all of its batches, the active one from the log start offset on."""
    active = log.local.segments.active.base_offset
    return (log.local.segments.first.base_offset, active), (max(log.log_start_offset, active), log.log_end_offset)
