"""Bits that change where they lie, on a broker's disk and in the store, and what must come of it in the end.

A segment with a changed bit is not archived: its replicas are. What changes in the store is found by a deep scrub, which
accuses nothing else, and a restore of it fails or gives what was committed.
"""

from random import Random  # noqa: TID251  # seeded

from local_log.engine.memory_records import memory_batches
from local_log.errors import LogError
from local_log.formats.filenames import offset_file
from local_log.formats.header_layout import ATTRIBUTES_AT, LENGTH_AT, MAGIC_AT
from remote.keys import LOG, PartitionPath
from simulated.broker import Broker
from simulated.judge import Judge
from simulated.restores import restored
from simulated.schedule import Schedule
from simulated.scrubs import anomalies

SHARE = 0.3
"""Of the schedules, those in which something rots."""
OBJECTS_MAX = 2
EPOCH_SHARE = 0.3
EPOCH_AT = LENGTH_AT + 4


class BitRot:
    """What rots in one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.random = Random(f"rot {schedule.seed}")
        self.of_disk, self.of_store = (self.random.random() < SHARE for _ in range(2))

    def rots(self, broker: Broker, archived_to: int) -> bool:
        """Changes a bit of an inactive segment that is not archived, where batches have a checksum. Whether there is one."""
        segments = [s for s in broker.log.local.segments if s.base_offset >= archived_to and s.size][:-1]
        if not self.of_disk or not segments:
            return False
        segment = self.random.choice(segments)
        batch = self.random.choice(memory_batches(broker.disk.read(segment.log_file, 0, segment.size)))
        at = batch.position + self.random.randrange(ATTRIBUTES_AT, batch.size)
        broker.disk.rot(segment.log_file, at, 1 << self.random.randrange(8))
        self.schedule.faults["disk: a bit changed"] += 1
        self.schedule.tell(f"broker {broker.name}", f"bit rot in {offset_file(segment.base_offset, '.log')} at {at}")
        return True

    def check(self, judge: Judge, paths: list[PartitionPath]) -> None:
        """Changes bits of some objects for as long as it takes to find them again."""
        live = {key: path for path in paths for key in self._live(judge, path)}
        if not self.of_store or not live:
            return
        objects, rotten = judge.store.objects, self.random.sample(sorted(live), min(len(live), OBJECTS_MAX))
        before, known = anomalies(judge), {key: objects[key] for key in rotten}
        for key in rotten:
            body = bytearray(objects[key])
            at = self._place_in(key, len(body))
            body[at] ^= 1 << self.random.randrange(8)
            objects[key] = bytes(body)
            self.schedule.faults["object: a bit changed"] += 1
            self.schedule.tell("store", f"bit rot in {key} at {at}")
        findings = anomalies(judge)
        found = {f.key for f in findings}
        unread = {live[key] for key in found & live.keys() if key.startswith(live[key].pages)}
        missed = [key for key in rotten if key not in found and live[key] not in unread]
        if missed:
            raise self.schedule.violated(f"a scrub does not find that {missed[0]} was changed: {findings}")
        if others := [f for f in findings if f.key not in rotten and f not in before]:
            raise self.schedule.violated(f"{rotten} were changed, and a scrub finds {others[0]}")
        for path in sorted({live[key] for key in rotten} & judge.watched.keys()):
            self._check_restore(judge, path)
        objects |= known

    def _place_in(self, key: str, size: int) -> int:
        """Any; often the leader epoch of a segment's first batch, if it is not encoded: no checksum of the batch covers that."""
        is_epoch = key.endswith(LOG) and self.random.random() < EPOCH_SHARE
        return self.random.randrange(EPOCH_AT, MAGIC_AT) if is_epoch else self.random.randrange(size)

    def _live(self, judge: Judge, path: PartitionPath) -> set[str]:
        """The objects of a log that are read: segments, pages and the newest manifest."""
        newest = judge.newest(path)
        if newest is None or newest.manifest.is_deleted:
            return set()
        m = newest.manifest
        entries = [e for e in newest.entries.values() if e.end_offset > m.log_start_offset]
        pages = {path.page(page.name) for page in m.pages}
        return {path.segment(name) for e in entries for name in (e.log_name, e.aux_name)} | pages

    def _check_restore(self, judge: Judge, path: PartitionPath) -> None:
        newest = judge.newest(path)
        assert newest is not None
        try:
            found = restored(judge.unwatched, newest.manifest, self.schedule.now)
        except LogError as e:
            self.schedule.tell("restore", repr(e))
            return
        judge.read(path, found.batches, "a restore of what was changed")
        judge.check_whole(
            newest.manifest, found.batches, found.start, newest.manifest.end_offset, "a restore of what was changed"
        )
