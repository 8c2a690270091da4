"""Kafka's own classes as a judge: a Java process that is asked a line at a time (tests/kafka/Judge.java)."""

import base64
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import real_kafka

_SOURCE = Path(__file__).parents[1] / "kafka" / "Judge.java"
_DOWN_CONVERSION = _SOURCE.with_name("DownConversion.java")
_MESSAGES = _SOURCE.with_name("Messages.java")
_ASSIGNORS = _SOURCE.with_name("Assignors.java")


def oracle(test: Any) -> Any:
    """Marks a test that asks the judge."""
    missing = pytest.mark.skipif(real_kafka.maven() is None, reason="Kafka's jars are brought by Maven, which is not here")
    return pytest.mark.oracle(missing(test))


class Judge:
    """Asks and waits for the answer's words; the first is `ok` or `refused`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, *words: object) -> list[str]:
        """Bytes among the words go as base64, None as -."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(" ".join(map(_word, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the judge has ended"
        return answer.rstrip("\n").split(" ")


@contextmanager
def judge() -> Iterator[Judge]:
    """Starts the judge, and ends it with the block."""
    with _asked(_SOURCE) as asked:
        yield asked


@contextmanager
def judge_of_down_conversion() -> Iterator[Judge]:
    """The same for Kafka 3.9's conversion of batches for older clients (tests/kafka/DownConversion.java)."""
    with _asked(_DOWN_CONVERSION, real_kafka.of_3_9()) as asked:
        yield asked


@contextmanager
def judge_of_messages(*, of_3_9: bool = False) -> Iterator[Judge]:
    """The same for messages of the protocol, in Kafka 4.3 or 3.9 (tests/kafka/Messages.java)."""
    with _asked(_MESSAGES, real_kafka.of_3_9() if of_3_9 else ()) as asked:
        yield asked


@contextmanager
def judge_of_assignors() -> Iterator[Judge]:
    """The same for the assignors of consumer groups (tests/kafka/Assignors.java)."""
    with _asked(_ASSIGNORS) as asked:
        yield asked


@contextmanager
def _asked(source: Path, before: Iterable[Path] = ()) -> Iterator[Judge]:
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with real_kafka.program(source, before=before, **pipes) as process:
        yield Judge(process)
        assert process.stdin
        process.stdin.close()


def _word(word: object) -> str:
    if word is None:
        return "-"
    return base64.b64encode(word).decode() if isinstance(word, (bytes, bytearray, memoryview)) else str(word)
