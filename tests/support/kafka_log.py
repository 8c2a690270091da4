"""Kafka's own log engine as the judge of ours: the same directory, the same commands, the same answers and bytes."""

import json
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import real_kafka

NOW = 1_800_000_000_000
ORACLE = Path(__file__).parents[1] / "kafka" / "LogOracle.java"

Answer = dict[str, Any]


class KafkaLog:
    """One log at a time, opened by Kafka's UnifiedLog in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, *words: object) -> Answer:
        """The answer to a command of LogOracle.java; it has `error`, an exception's name, where Kafka refuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer: Answer = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def kafka_log() -> Iterator[KafkaLog]:
    """Kafka's engine, at the time NOW."""
    with real_kafka.program(ORACLE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        kafka = KafkaLog(process)
        kafka.ask("clock", NOW)
        try:
            yield kafka
        finally:
            assert process.stdin is not None
            process.stdin.close()


def files(folder: Path) -> dict[str, object]:
    """Every file's bytes; a snapshot's producers in any order, as a hash map has them; what is only still to be deleted, not."""
    kept = (f for f in sorted(folder.iterdir()) if not f.name.endswith(".deleted"))
    return {f.name: _unordered(f.read_bytes()) if f.suffix == ".snapshot" else f.read_bytes() for f in kept}


def _unordered(snapshot: bytes) -> object:
    if len(snapshot) < 10:
        return snapshot
    (count,) = struct.unpack_from(">i", snapshot, 6)
    producers = [snapshot[10 + 46 * i : 56 + 46 * i] for i in range(max(0, count))]
    return snapshot[:2], count, sorted(producers), snapshot[10 + 46 * max(0, count) :]
