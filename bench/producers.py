"""Kafka's own ProducerPerformance, as many at once as are asked for: in one process, so that they stay compiled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import real_kafka

from spark_jobs.java import java_home

TOGETHER = real_kafka.BROKER.with_name("ProduceTogether.java")
RECORD_BYTES = 1024


@dataclass(frozen=True)
class Produced:
    """How long it took until all was acknowledged, and the 99th percentile of the time from a record's send to that."""

    seconds: float
    p99_ms: float


class Producers:
    """A process that produces what it is told to."""

    def __init__(self, process: "subprocess.Popen[str]", errors: Path) -> None:
        self._process, self._errors = process, errors

    def produce(self, address: str, topic: str, count: int, records: int, *config: str, a_second: int = -1) -> Produced:
        """`count` producers send so many records each, or as many a second."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = f"{count} --bootstrap-server {address} --topic {topic} --num-records {records} --record-size {RECORD_BYTES}"
        print(words, "--throughput", a_second, "--command-property", *config, file=self._process.stdin, flush=True)
        ms, acknowledged, p99 = map(int, self._process.stdout.readline().split())
        assert acknowledged == count * records, f"{acknowledged} of {count * records} are acknowledged: see {self._errors}"
        return Produced(ms / 1e3, p99)


@contextmanager
def producers(errors: Path) -> Iterator[Producers]:
    """What a producer complains about is in the file. Behind the block its input is closed, and it ends."""
    classes = ":".join(map(str, real_kafka.jars(real_kafka.TOOLS)))
    command = [f"{java_home()}/bin/java", "-Xmx1g", "-cp", classes, str(TOGETHER)]
    pipe = subprocess.PIPE
    with errors.open("w") as file, subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file, text=True) as process:
        yield Producers(process, errors)
