"""Kafka's command line tools, run one after the other by one Java, which starts once."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import fast_java
import real_kafka
from foreign_clients import Client, running
from kept import cache

from spark_jobs.java import java_home

_SOURCE = Path(__file__).parents[1] / "kafka" / "Tools.java"


class Tools:
    """The tools, for one server."""

    def __init__(self, address: str, client: Client) -> None:
        self._address, self._client = address, client

    def __call__(self, name: str, *arguments: object, stdin: str = "", code: int = 0, address: str = "") -> str:
        """What a tool writes, ended with this code. `name` is its class, below `org.apache.kafka.tools` if not `kafka`."""
        verb = arguments[:1] if name == "ClusterTool" else ()
        words = (*verb, "--bootstrap-server", address or self._address, *arguments[len(verb) :])
        coded = [base64.b64encode(str(word).encode()).decode() for word in (stdin, *words)]
        of_class = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
        ended, _, written = self._client.ask("\t".join([of_class, *coded])).partition(" ")
        text = base64.b64decode(written).decode()
        assert int(ended) == code, f"{name} ended with {ended}: {text}"
        return text


@contextmanager
def tools(address: str) -> Iterator[Tools]:
    """They end with the block."""
    with running(java(_SOURCE, real_kafka.jars(real_kafka.TOOLS), real_kafka.fast_tools())) as client:
        yield Tools(address, client)


def java(source: Path, jars: Sequence[Path], options: Sequence[str] = ("-XX:TieredStopAtLevel=1",)) -> list[str]:
    """The command of a program of one file, which is compiled once."""
    classes = fast_java.compiled(source, jars, cache())
    class_path = ":".join(map(str, (*jars, classes)))
    return [f"{java_home()}/bin/java", "-Xmx512m", *options, "-cp", class_path, source.stem]
