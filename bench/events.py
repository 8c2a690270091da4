"""The records that the figures are about, and the topic of a broker filled with them."""

import json
import random  # noqa: TID251  # seeded: the same data every time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

SEGMENT_BYTES = 64 << 20
T0 = 1_700_000_000_000


def fill(
    address: str, topic: str, count: int, config: dict[str, str] | None = None, codec: str = "none", batch_records: int = 10_000
) -> None:
    """JSON events of about 245 bytes with a 13-byte key, a ms apart, compressed by the producer, in segments of 64 MiB.

    A batch has 256 KiB, or `batch_records` if that is less.
    """
    settings = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"} | (config or {})
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result()
    r = random.Random(7)  # the same data every time
    values = [json.dumps(event(r, i)).encode() for i in range(20_000)]
    batches = {"linger.ms": 50, "batch.size": 262_144, "queue.buffering.max.kbytes": 1 << 20, "compression.codec": codec}
    batches["batch.num.messages"] = batch_records
    producer = Producer({"bootstrap.servers": address} | batches)
    for i in range(count):
        while True:
            try:
                producer.produce(topic, values[i % len(values)], key=b"user-%08d" % (i % 1_000_003), timestamp=T0 + i)
                break
            except BufferError:
                producer.poll(0.1)
        if i % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def event(r: random.Random, i: int) -> dict[str, object]:
    """One event."""
    return {
        "id": i,
        "user": r.randrange(10**9),
        "event": r.choice(["click", "view", "buy", "scroll"]),
        "url": f"https://example.com/{r.choice(['a', 'bb', 'ccc', 'product', 'search'])}/{r.randrange(10**6)}",
        "agent": r.choice(["Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (Windows NT 10.0)", "curl/8.0"]),
        "price": round(r.random() * 1000, 2),
        "tags": [r.choice("abcdefghij") for _ in range(8)],
        "session": f"{r.getrandbits(128):032x}",
    }
