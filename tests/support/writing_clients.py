"""Clients of Kafka that others wrote, all at work at the same time: what each has done, and what it answered."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from foreign_clients import PYTHON, Client, go_clients, js_clients

ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_WRITE = PYTHON.with_name("write.py")

Words = Callable[["Program"], list[object]]


@dataclass
class Program:
    """A client, and what it can. `wrote` is how many records are acknowledged, `read` a digest of those that it read."""

    name: str
    command: Callable[[], list[object]]
    codecs: tuple[str, ...] = ALL_CODECS
    commits_offsets: bool = True
    needs: str | None = None
    client: Client | None = None
    wrote: int = 0
    read: str = ""
    failures: list[str] = field(default_factory=list)

    @property
    def is_here(self) -> bool:
        """Whether this machine has what it runs on."""
        return self.needs is None or shutil.which(self.needs) is not None


def programs() -> list[Program]:
    """All of them."""
    return [
        Program("kafka-python", lambda: [sys.executable, _WRITE, "kafka_python"]),
        Program("aiokafka", lambda: [sys.executable, _WRITE, "aio_kafka"]),
        Program("librdkafka", lambda: [sys.executable, _WRITE, "librdkafka"]),
        Program("franz-go", lambda: [go_clients(), "write-franz"], commits_offsets=False, needs="go"),
        Program("sarama", lambda: [go_clients(), "write-sarama"], needs="go"),
        Program("kafkajs", lambda: ["node", js_clients().with_name("write.js")], ("none", "gzip"), needs="npm"),
    ]


def answers(of: list[Program], words: Words, meanwhile: Callable[[], None] = lambda: None) -> list[tuple[Program, str]]:
    """Of all that have not failed, when each was sent these words. Who fails is asked no more."""
    asked = [(one, one.client, words(one)) for one in of if one.client is not None and not one.failures]
    for _, client, sent in asked:
        client.send(*sent)
    meanwhile()
    found = []
    for one, client, sent in asked:
        try:
            found.append((one, client.answer()))
        except AssertionError as e:
            one.failures.append(f"{sent}: {e}")
    return found
