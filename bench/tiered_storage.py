"""Kafka's own tiered storage as a contestant: a topic whose old segments are on the remote tier alone, and Java's consumer."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import events  # beside this file
import java_consumer  # beside this file
import real_kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG, offset_file

SECONDS_MAX = 120


class TieredTopic:
    """A topic of one partition on a broker with tiered storage."""

    def __init__(self, address: str, topic: str, log_dir: Path, consumer: java_consumer.JavaConsumer) -> None:
        self.topic = topic
        self.log_dir = log_dir
        self._address = address
        self._consumer = consumer

    def segments(self) -> list[str]:
        """The names of those on the local tier, in order."""
        return sorted(file.name for file in (self.log_dir / f"{self.topic}-0").glob(f"*{LOG}"))

    def leave_to_the_remote_tier(self, end: int) -> None:
        """Has the broker delete its own segments below `end`, which it does when they are on the remote tier."""
        resource = ConfigResource(
            ResourceType.TOPIC,
            self.topic,
            incremental_configs=[ConfigEntry("local.retention.bytes", "1", incremental_operation=AlterConfigOpType.SET)],
        )
        admin = AdminClient({"bootstrap.servers": self._address})
        admin.incremental_alter_configs([resource])[resource].result()
        active = offset_file(end, LOG)
        wait_until(lambda: self.segments() == [active], "the broker keeps its segments")

    def read(self, end: int) -> int:
        """Java's consumer reads all records below `end`, and gives their number."""
        return self._consumer.read(self.topic, end)


@contextmanager
def filled(folder: Path, topic: str, records: int) -> Iterator[TieredTopic]:
    """A topic with so many events, all of whose segments are still on the local tier, too; its broker ends with the block."""
    with real_kafka.tiered_broker(folder) as address:
        events.fill(address, topic, records, {"remote.storage.enable": "true"})
        with java_consumer.of(address) as consumer:
            tiered = TieredTopic(address, topic, folder / "data", consumer)
            checkpoint = f"{topic} 0 {records}\n"
            file = tiered.log_dir / HIGH_WATERMARK_CHECKPOINT
            wait_until(lambda: checkpoint in file.read_text(), "the broker does not write its high watermarks down")
            yield tiered


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    """Looks now and then. Raises TimeoutError."""
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{otherwise} after {SECONDS_MAX} s")
        time.sleep(0.2)
