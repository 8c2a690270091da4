"""Kafka's command line tools, run one after the other by one Java, which starts once."""

import base64
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fast_java
import quick
import real_kafka
from foreign_clients import Client

from spark_jobs.java import java_home

_SOURCE = Path(__file__).parents[1] / "kafka" / "Tools.java"


class Tools:
    """The tools, for one server."""

    def __init__(self, address: str, client: Client) -> None:
        self._address, self._client = address, client

    def __call__(self, name: str, *arguments: object, stdin: str = "", code: int = 0) -> str:
        """What a tool writes, which has to end with this code; `name` is that of its class below `org.apache.kafka.tools`."""
        words = ("--bootstrap-server", self._address, *arguments)
        coded = [base64.b64encode(str(word).encode()).decode() for word in (stdin, *words)]
        ended, _, written = self._client.ask("\t".join([name, *coded])).partition(" ")
        text = base64.b64decode(written).decode()
        assert int(ended) == code, f"{name} ended with {ended}: {text}"
        return text


@contextmanager
def tools(address: str) -> Iterator[Tools]:
    """They end with the block."""
    quick.starts_a_server()
    jars = real_kafka.jars(real_kafka.TOOLS)
    classes = fast_java.compiled(_SOURCE, jars, real_kafka.cache())
    java = [f"{java_home()}/bin/java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, (*jars, classes)))]
    with subprocess.Popen([*java, "Tools"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Tools(address, Client(process))
        finally:
            process.kill()
