"""Kafka's own consumer, in Java, as a contestant: one process that reads what it is asked for, so that it stays compiled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import real_kafka

from spark_jobs.java import java_home

READ_BACK = real_kafka.BROKER.with_name("ReadBack.java")


class JavaConsumer:
    """A consumer of partitions 0."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def read(self, topic: str, end: int) -> int:
        """Reads all records below `end`, and gives their number."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("both are pipes")
        self._process.stdin.write(f"{topic} {end}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def of(address: str, *trusted: str) -> Iterator[JavaConsumer]:
    """One of the broker at `address`, by TLS with the file of an authority; behind the block its input is closed, and it ends."""
    classes = ":".join(map(str, real_kafka.jars(real_kafka.BROKER)))
    command = [f"{java_home()}/bin/java", "-Xmx1g", "-cp", classes, str(READ_BACK), address, *trusted]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, text=True) as process:
        yield JavaConsumer(process)
