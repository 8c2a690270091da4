"""A broker with one replica, on its simulated disk: its log while it runs, the files of its log directory, and a copy of them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from local_log.disk import replace_file
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.formats.checkpoints import write_epochs, write_offsets
from local_log.formats.filenames import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    TopicPartition,
)
from local_log.formats.partition_metadata import write_topic_id
from remote.keys import PartitionPath
from simulated.disks import Machine, QuietDisk

if TYPE_CHECKING:
    from simulated.brokers import Cluster

LOGS = "/logs"
PATH = PartitionPath("orders", "T" * 22, 0)
PARTITION = TopicPartition(PATH.topic, PATH.partition)


@dataclass(eq=False)
class Broker:
    """A broker with its disk, and the log while it runs."""

    name: str
    cluster: "Cluster"
    config: Any
    disk: QuietDisk = field(default_factory=QuietDisk)
    log: UnifiedLog = field(init=False)
    written_start: int = 0
    """The log start offset that its file has."""
    machine: Machine | None = None
    is_mounted: bool = True
    """Whether those beside it have its disk, too."""
    unmounts: int = 0
    """How often they had not."""

    def __post_init__(self) -> None:
        self.disk.make_folder(LOGS)
        replace_file(
            self.disk, f"{LOGS}/{META_PROPERTIES}", f"version=1\nnode.id={self.name}\ndirectory.id={self.source}\n".encode()
        )
        self.open()
        self._is_of_topic()
        self.checkpoint()

    @property
    def has_replica(self) -> bool:
        return self.cluster.brokers.index(self) not in self.cluster.without

    @property
    def source(self) -> str:
        """The id of its log directory."""
        return self.name * 22

    def _is_of_topic(self) -> None:
        topic_id = write_topic_id(self.cluster.path.topic_id)
        replace_file(self.disk, f"{LOGS}/{PARTITION}/{PARTITION_METADATA}", topic_id)
        self.disk.sync_folder("/")

    def remake(self) -> None:
        """The topic was deleted and made again: its folder goes at once, its files later, and a new one is there."""
        self.gives_up()
        self.takes_up()

    def gives_up(self) -> None:
        """It has no replica any more."""
        gone = f"{LOGS}/{PARTITION}.{self.cluster.path.topic_id.lower()}-delete"
        self.disk.rename(f"{LOGS}/{PARTITION}", gone)
        self.disk.sync_folder(LOGS)  # as Kafka's Utils.atomicMoveWithFallback does
        self.disk.delete_folder(gone)
        self.checkpoint_of({HIGH_WATERMARK_CHECKPOINT: -1, LOG_START_OFFSET_CHECKPOINT: -1})

    def takes_up(self) -> None:
        """It has a replica that is empty."""
        self.open()
        self._is_of_topic()
        self.checkpoint()

    def open(self, start: int = 0, point: int = 0) -> None:
        """The log, opened as after a crash."""
        now_ms, folder = self.cluster.schedule.now_ms, f"{LOGS}/{PARTITION}"
        self.log = open_log(
            self.disk, folder, self.config, now_ms, lambda: 0.5, log_start_offset=start, recovery_point=point
        )  # fmt: skip

    def checkpoint(self, *, with_start: bool = True) -> None:
        """Writes the files that a broker writes every few seconds, or with the log start offset, every minute."""
        offsets = {HIGH_WATERMARK_CHECKPOINT: self.log.high_watermark}
        self.checkpoint_of(offsets | ({LOG_START_OFFSET_CHECKPOINT: self.log.log_start_offset} if with_start else {}))
        self.written_start = self.log.log_start_offset if with_start else self.written_start

    def checkpoint_of(self, offsets: dict[str, int]) -> None:
        for name, offset in offsets.items():
            replace_file(self.disk, f"{LOGS}/{name}", write_offsets({PARTITION: offset} if offset >= 0 else {}))

    def loses_power(self) -> None:
        """What was not synced may be lost; the broker starts again and recovers its log."""
        random = self.cluster.random
        start, point = self.written_start, self.log.recovery_point
        self.disk = self.disk.after_power_failure(random.choice([0.0, 0.5, 1.0]), random.getrandbits(32))
        self.disk.now_ms = self.cluster.schedule.now
        self.open(start, point if random.random() < 0.5 else 0)
        if self.machine is not None:
            self.machine.loses_power(random.choice([0.0, 0.5, 1.0]), random.getrandbits(32))


@dataclass(frozen=True)
class Mount:
    """A broker's disk as those beside it have it, say in a container: while it is not mounted there, its folder is empty."""

    broker: Broker

    @property
    def disk(self) -> QuietDisk:
        """The disk of the moment. All is mounted when nothing goes wrong any more."""
        if self.broker.is_mounted or self.broker.cluster.schedule.is_calm:
            return self.broker.disk
        empty = QuietDisk()
        empty.make_folder(LOGS)
        return empty


class Copy:
    """What was copied of a broker's disk, and a checkpoint of leader epochs that was lost and has only the last one again."""

    def __init__(self, broker: Broker) -> None:
        self.disk = broker.disk.after_power_failure(0.0)
        epochs = write_epochs(broker.log.epochs.entries[-1:])
        replace_file(self.disk, f"{LOGS}/{PARTITION}/{LEADER_EPOCH_CHECKPOINT}", epochs)
        start = f"{LOGS}/{LOG_START_OFFSET_CHECKPOINT}"
        replace_file(self.disk, start, self.disk.read(start))  # as its broker does every minute
