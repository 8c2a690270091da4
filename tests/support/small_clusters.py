"""Brokers of our own engine over one archive, as Kafka's tiered storage tests set theirs up (TieredStorageTestHarness).

    produce → replicas → sidecars (offload) → local retention → consume, from whichever tier has it

What is archived is soon in the archive alone: see `small_brokers` for their logs.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from archive_fakes import CountingIds, Door, MemoryStore
from small_brokers import CHECK_MS, Brokers, topic_id

from local_log.formats.filenames import TopicPartition
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.record_batch.columns import decode, per_record
from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk
from remote import archive
from remote.keys import PartitionPath, parse_segment_name
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.read.context import ReadContext
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan
from tiering.read.tiered_log import Isolation, TieredLog
from tiering.wiring import Tiers

_ROUNDS_MAX = 10


class Consumed(NamedTuple):
    """The values that a consumer was given, in order, and the base offsets of the archived segments that were read for it."""

    values: list[str]
    segments: list[int]


@dataclass
class Cluster(Brokers):
    """Brokers, a sidecar beside each, and the archive."""

    store: MemoryStore = field(init=False)
    ids: CountingIds = field(default_factory=CountingIds)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        archive.create_archive(self.store, self.clock, self.ids)

    def archived_through(self, partition: TopicPartition) -> int:
        """The last offset that is archived, which is all that local retention may take."""
        manifest = self.manifest(partition)
        return manifest.end_offset - 1 if manifest else -1

    def add_replica(self, partition: TopicPartition, broker: int) -> None:
        """A replica more. As in Kafka (TierStateMachine) it begins where the leader's local log does, and takes the leader
        epochs from before from the archive."""
        leader = self.log(partition)
        start = leader.local_log_start_offset
        log = self.manager(broker).get_or_create(partition, topic_id(partition.topic), is_new=True)
        log.truncate_fully_and_start_at(start, leader.log_start_offset)
        manifest = self.manifest(partition)
        for entry in manifest.leader_epochs if manifest else ():
            log.epochs.assign(entry.epoch, entry.start_offset)
        self.replicas[partition].append(broker)
        self.replicate(partition)

    # What goes on beside

    def offload_until_idle(self) -> None:
        """Sidecars of leaders and local retention, in turns, until neither finds anything to do."""
        for _ in range(_ROUNDS_MAX):
            before = self._state()
            for done in self.offload():
                assert done.error is None
            self.later(CHECK_MS)
            if self._state() == before:
                return
        raise AssertionError("it goes on and on")

    def _state(self) -> object:
        return [(p, broker, self.local(p, broker), self.archived(p)) for p, all_of in self.replicas.items() for broker in all_of]

    def offload(self, *brokers: int) -> list[Done]:
        """Sidecars offload what their brokers lead; with `brokers` theirs do, whatever these lead."""
        found = []
        for one in self.brokers:
            for log_dir in one.log_dirs():
                for log in log_dir.logs(self._is_copied):
                    leads = self.replicas.get(log.partition, [None])[0] == one.number
                    if one.number in brokers or (not brokers and leads):
                        due = plan(log, self.store)
                        found += offload(due, OffloadRun(self.store, self.clock, self.ids, log_dir.id(), lambda _: None))
        return found

    def _is_copied(self, topic: str) -> bool:
        config = self.configs[topic]
        return config.remote_storage_enable and not config.remote_log_copy_disable

    # What is there

    def manifest(self, partition: TopicPartition) -> Manifest | None:
        """The newest manifest."""
        newest = load_newest(self.store, path_of(partition))
        return newest.manifest if newest else None

    def archived(self, partition: TopicPartition) -> dict[int, list[str]]:
        """The values in every archived segment, by base offset, decoded from the object as it lies in the store."""
        manifest = self.manifest(partition)
        if manifest is None:
            return {}
        path = manifest.path
        return {e.base_offset: values_in(self.store.objects[path.segment(e.log_name)]) for e in Entries.of(self.store, manifest)}

    def objects(self, partition: TopicPartition) -> int:
        """How many objects of segments lie in the store, named or not."""
        return sum(key.startswith(path_of(partition).segments) for key in self.store.objects)

    def leader_dir(self, partition: TopicPartition) -> LogDir:
        """The directory with the partition's leader, as a sidecar reads it."""
        return LogDir(OsDisk(), str(self.brokers[self.replicas[partition][0]].folder_of(partition)))

    def tiered(self, partition: TopicPartition, *, reading: ReadContext | None = None, door: Door | None = None) -> TieredLog:
        """The partition over both tiers, as who reads it beside its leader's directory has it."""
        tiers = Tiers(self.leader_dir(partition), door or self.store, reading or ReadContext())
        return tiers.partition(partition.topic, partition.partition)

    def consume(
        self,
        partition: TopicPartition,
        start: int,
        isolation: Isolation = Isolation.read_uncommitted,
        *,
        reading: ReadContext | None = None,
    ) -> Consumed:
        """Everything from an offset on, as a consumer of the leader gets it."""
        door = Door(self.store)
        log = self.tiered(partition, reading=reading, door=door)
        found = [value.decode() for batch in log.read(start, isolation=isolation) for value in batch.column("value").to_pylist()]
        names = (call[1].rpartition("/")[2] for call in door.calls if call[0] == "get_range" and call[1].endswith(".log"))
        bases = [parsed[0] for name in names if (parsed := parse_segment_name(name))]
        assert len(bases) == len(set(bases)), "a segment was asked for twice"
        return Consumed(found, sorted(bases))


def path_of(partition: TopicPartition) -> PartitionPath:
    """Where a partition lies in the archive."""
    return PartitionPath(partition.topic, topic_id(partition.topic), partition.partition)


def values_in(body: bytes) -> list[str]:
    """The values of all records in a log file, markers left out."""
    batches, stop = scan(body)
    assert stop == len(body)
    found = []
    for group, records in decode(body, batches):
        ours = records.filter(pa.array(~per_record(group, group.is_control)))
        found += [value.decode() for value in ours.column("value").to_pylist()]
    return found
