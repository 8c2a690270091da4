"""What a broker is filled with for comparisons: records of every codec, transactions, and keys that its cleaner compacts."""

import random  # noqa: TID251  # seeded
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
T0 = 1_700_000_000_000


def fill(address: str, codec: str) -> None:
    r = random.Random(codec)
    config = {"bootstrap.servers": address, "log_level": 0, "compression.codec": codec, "linger.ms": 20, "batch.size": 100_000}
    # A batch that is sent again, as on a busy machine, stays before the later ones: the tests ask for records by their times.
    producer = Producer({**config, "max.in.flight": 1})
    for i in range(5_000):
        key = None if i % 7 == 0 else b"k%d" % r.randrange(100)
        value = None if i % 11 == 0 else r.randbytes(r.randrange(200)) + b"text " * r.randrange(40)
        headers = [("trace", b"%d" % i), ("empty", b""), ("null", None)] if i % 5 == 0 else None
        producer.produce("events", value, key, i % 2, timestamp=T0 + i * 20 - r.randrange(500), headers=headers)
        producer.poll(0)
    producer.flush()


def transactions(address: str) -> None:
    # The broker aborts what stays open longer, which moves the log's end in the middle of a test.
    config = {"bootstrap.servers": address, "log_level": 0, "transaction.timeout.ms": 900_000}
    producers = [Producer({**config, "transactional.id": f"t{i}"}) for i in range(3)]
    for producer in producers:
        producer.init_transactions()
    r = random.Random(3)
    for round_ in range(60):
        for producer in producers:
            producer.begin_transaction()
        for i in range(200):
            producers[i % 3].produce("payments", r.randbytes(600), b"%d" % i, i % 2, timestamp=T0 + round_ * 1000 + i)
        for producer in producers:
            producer.flush()
            producer.abort_transaction() if r.randrange(3) == 0 else producer.commit_transaction()
    producers[0].begin_transaction()  # and one that stays open
    for partition in range(2):
        producers[0].produce("payments", b"undecided", b"", partition, timestamp=T0)
    producers[0].flush()
    transactions.open = producers  # type: ignore[attr-defined]  # alive, so that nobody aborts it


def keys_again_and_again(address: str, admin: AdminClient) -> None:
    """Records of which compaction leaves nothing in the first segment, and little in the next ones."""
    r = random.Random(5)
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "batch.size": 20_000})
    for i in range(5_000):
        key = b"once %d" % i if i > 1_500 and i % 50 == 0 else b"again %d" % (i % 40)
        producer.produce("latest", r.randbytes(1_000), key, 0, timestamp=T0 + i)
        producer.poll(0)
    producer.flush()
    # Only now, so that the cleaner goes through all of it at once: what it empties in turns it merges.
    config = [ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)]
    resource = ConfigResource(ResourceType.TOPIC, "latest", incremental_configs=config)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def wait_for_cleaner(data: Path) -> None:
    """Until it has cleaned all that it can: everything below the active segment."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        active = max(int(file.stem) for file in (data / "latest-0").glob("*.log"))
        done = data / "cleaner-offset-checkpoint"
        if done.exists() and f"latest 0 {active}" in done.read_text().splitlines():
            return
        time.sleep(0.2)
    raise AssertionError("the cleaner does not come to the active segment")


def wait_for_high_watermarks(data: Path) -> None:
    """The broker writes them down twice a second."""
    file = data / "replication-offset-checkpoint"
    deadline, seen = time.monotonic() + 30, file.read_text()
    while time.monotonic() < deadline:
        time.sleep(1.5)
        if (now := file.read_text()) == seen and "payments" in now:
            return
        seen = now
    raise AssertionError("the broker does not write its high watermarks down")
