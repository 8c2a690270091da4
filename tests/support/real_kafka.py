"""A real Kafka broker on loopback, and the jars that it and Spark's own Kafka source are made of (Maven brings them once)."""

import hashlib
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache as once
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import fast_java
import quick
from kept import cache, made_once

from spark_jobs.java import java_home

BROKER = Path(__file__).parents[1] / "kafka" / "broker-pom.xml"
BROKER_3_9 = BROKER.with_name("broker-3.9-pom.xml")
"""The last broker that answers clients from before 0.11."""
SPARK_SOURCE = Path(__file__).parents[1] / "kafka" / "spark-pom.xml"
TOOLS = BROKER.with_name("tools-pom.xml")
STREAMS = BROKER.with_name("streams-pom.xml")
TIERED = Path(__file__).parents[1] / "kafka" / "tiered-pom.xml"

AT_ONCE = {"fetch.wait.max.ms": 10}
"""Of a consumer that is to hear of an end at once, which a broker else tells after half a second."""

_PORT_MIN = 10_000
_PORTS = count(os.getpid() * 64)
"""Each process of the tests begins with other ports."""
_AS_IS = "latin-1"
_CLUSTER_ID = "dGllcmluZy10ZXN0cy0wMQ"
_CONFIG = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.message.timestamp.after.max.ms=9223372036854775807
"""


def of_3_9() -> list[Path]:
    """Kafka's classes of 3.9, the last that converted batches for clients before 0.11."""
    return [jar for jar in jars(SPARK_SOURCE) if jar.name.startswith("kafka-clients-3.9.")]


def maven() -> str | None:
    """Maven, without which none of this can be had."""
    return shutil.which("mvn")


def jars(pom: Path) -> list[Path]:
    """The jars that `pom` names, from the user's cache, brought by Maven the first time."""
    folder = cache() / f"{pom.stem}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:16]}"
    made_once(folder, partial(_bring, pom), cache() / "maven.lock")  # no two write to Maven's own repository
    return sorted(folder.glob("*.jar"))


def _bring(pom: Path, to: Path) -> None:
    command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={to}"]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "JAVA_HOME": java_home()})


@contextmanager
def broker(
    folder: Path,
    *,
    killed: bool = False,
    for_speed: bool = False,
    more_jars: Iterable[Path] = (),
    pom: Path = BROKER,
    **config: str,
) -> Iterator[str]:
    """A broker that keeps its log directory in `folder`/data; gives its address. It ends with the block: cleanly, or `killed`.

    It starts soon, and is not fast then; `for_speed` turns this round. `{port}` and `{controller}` in a setting are its ports.
    """
    options = [] if for_speed else _fast_start(pom)
    with _broker(folder, [*options, "-cp", _class_path(*jars(pom), *more_jars)], killed, config, pom=pom) as address:
        yield address


@contextmanager
def _broker(
    folder: Path,
    options: Sequence[str],
    killed: bool,
    config: Mapping[str, str],
    of_broker: Sequence[str] = (),
    *,
    pom: Path = BROKER,
) -> Iterator[str]:
    quick.starts_a_server()
    folder.mkdir(parents=True, exist_ok=True)
    port, controller = free_ports()
    properties = folder / "server.properties"
    text = _CONFIG + "".join(f"{name.replace('_', '.')}={value}\n" for name, value in config.items())
    properties.write_text(text.format(port=port, controller=controller, data=folder / "data"))
    for data in config.get("log_dirs", str(folder / "data")).split(","):
        format_log_dir(Path(data), pom)
    with open(folder / "broker.out", "wb") as out:
        words = [f"{java_home()}/bin/java", "-Xmx1g", *options, *of_broker, "kafka.Kafka", properties]
        process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    try:
        try:
            wait_for(port, process, "the broker")
        except RuntimeError as e:
            raise RuntimeError(f"{e}: {(folder / 'broker.out').read_text(errors='replace')[-2_000:]}") from e
        yield f"127.0.0.1:{port}"
    finally:
        process.kill() if killed else process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def format_log_dir(data: Path, pom: Path = BROKER) -> None:
    """What `kafka-storage format --ignore-formatted` does to a log directory; one Java has done it for all."""
    data.mkdir(exist_ok=True)
    for name, text in _formatted(pom).items():
        if not (data / name).exists():
            (data / name).write_text(re.sub("directory.id=.*", f"directory.id={secrets.token_urlsafe(16)}", text), _AS_IS)


@once
def _formatted(pom: Path) -> dict[str, str]:
    """The files of a log directory that Kafka has formatted, by name. They depend on cluster and node, which are all brokers'."""
    with tempfile.TemporaryDirectory() as folder:
        properties, data = Path(folder, "server.properties"), Path(folder, "data")
        properties.write_text(_CONFIG.format(port=1, controller=2, data=data))
        java = [f"{java_home()}/bin/java", "-XX:TieredStopAtLevel=1", "-cp", _class_path(*jars(pom))]
        storage = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", properties]
        subprocess.run(storage, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return {path.name: path.read_text(_AS_IS) for path in data.iterdir()}


def program(source: Path, *, before: Iterable[Path] = (), arguments: Iterable[str] = (), **pipes: Any) -> "subprocess.Popen[str]":
    """A program of ours, in Java, that has Kafka's classes; those of the jars `before` come first."""
    quick.starts_a_server()
    of_kafka = [*before, *jars(BROKER)]
    classes = fast_java.compiled(source, of_kafka, cache())
    java = [f"{java_home()}/bin/java", "-Xmx512m", *_fast_start(BROKER), "-cp", _class_path(*of_kafka, classes)]
    command = [*java, source.stem, *arguments]
    return subprocess.Popen(command, text=True, **pipes)


def tool(name: str, *arguments: str) -> str:
    """What a command line tool of Kafka prints; `name` is that of its class below `org.apache.kafka.tools`."""
    quick.starts_a_server()
    return _run_tool(fast_tools(), name, *arguments)


def _run_tool(options: Sequence[str], name: str, *arguments: str) -> str:
    java = [f"{java_home()}/bin/java", "-Xmx512m", *options, "-cp", _class_path(*jars(TOOLS))]
    command = [*java, f"org.apache.kafka.tools.{name}", *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True, timeout=60).stdout


@once
def fast_tools() -> list[str]:
    """Options with which tools start in half of their time: one of an admin, a producer and a consumer has run for them."""
    of_tools = jars(TOOLS)

    def run(options: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as address:
            _run_tool(options, "EndToEndLatency", address, "asked", "1", "1", "10")

    return fast_java.options(of_tools, of_tools[0].parent, run)


@once
def _fast_start(pom: Path) -> list[str]:
    of_kafka = jars(pom)
    class_path = ["-cp", _class_path(*of_kafka)]

    def run(options: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory() as folder, _broker(Path(folder), class_path, False, {}, options, pom=pom):
            pass

    return fast_java.options(of_kafka, of_kafka[0].parent, run)


def _class_path(*jars: Path) -> str:
    return ":".join(map(str, jars))


def tiered_broker(folder: Path, **config: str) -> AbstractContextManager[str]:
    """As `broker`, with Kafka's own tiered storage, which keeps the segments of topics that ask for it in `folder`/remote."""
    of_metadata = "rlmm_config_remote_log_metadata_topic"
    settings = {
        "remote_log_storage_system_enable": "true",
        "remote_log_storage_manager_class_name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote_log_storage_manager_impl_prefix": "rsm.config.",
        "rsm_config_dir": str(folder / "remote"),
        "rsm_config_delete_on_close": "false",
        "remote_log_metadata_manager_impl_prefix": "rlmm.config.",
        f"{of_metadata}_replication_factor": "1",
        f"{of_metadata}_num_partitions": "1",
        "remote_log_metadata_manager_listener_name": "PLAINTEXT",
        "remote_log_manager_task_interval_ms": "1000",
        "log_retention_check_interval_ms": "1000",
        "replica_high_watermark_checkpoint_interval_ms": "1000",
    }
    return broker(folder, for_speed=True, more_jars=jars(TIERED), **settings | config)


def free_ports() -> tuple[int, int]:
    """Two ports on which nobody listens now. The system gives them to nobody else either: a broker listens seconds later."""
    lowest_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = list[int]()
    while len(found) < 2:
        port = _PORT_MIN + next(_PORTS) % (lowest_given - _PORT_MIN)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
    return found[0], found[1]


def wait_for(port: int, process: "subprocess.Popen[bytes]", what: str, seconds: float = 60, *, host: str = "127.0.0.1") -> None:
    """Until a process listens on a port of this machine. Raises RuntimeError when it ends, or takes longer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{what} ended with exit code {process.returncode}; see its output")
        with socket.socket() as s:
            if s.connect_ex((host, port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{what} does not answer on port {port} after {seconds} s")
