"""What the part `endpoint` measures: a broker with tiered storage and `tiering serve` on its log directory and on archives of it.

Both listen with and without TLS, with certificates of one authority.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import events  # beside this file
import real_kafka  # beside the tests
import strict_s3
import tiered_storage  # beside this file
from certificates import Authority
from logs_to_archive import offload_all
from stores import client_of  # beside this file

from remote.archive import manifests
from remote.store.open import open_store

LOCAL, TIERED, SMALL, SPREAD = "kept", "tiered", "small", "spread"
EVENTS, SMALL_EVENTS = 2_000_000, 60_000
"""The former are 540 MB, more than our cache of chunks has room for: what is on S3 is requested in each round."""
SMALL_BATCH = 10
SPREAD_TOPICS, SPREAD_EVENTS = 12, 75_000
CONNECTIONS_MAX = 20_000
CPUCLOCK_SCHED = 2
"""With a process's number, which clock_getcpuclockid(3) makes a clock of."""


@dataclass(frozen=True)
class Contestant:
    """A server, the process that it is, and which topic it is read from up to where; by TLS if there is an authority's file."""

    name: str
    address: str
    process: int
    topic: str
    end: int
    trusted: str | None = None


@dataclass(frozen=True)
class Servers:
    """Kafka's from its log and from its remote tier, ours by what they read, and both by TLS; the archives by where they lie.

    Of ours, by what they read, the options and the seconds until the first one was ready.
    """

    kafka: list[Contestant]
    ours: list[Contestant]
    by_tls: list[Contestant]
    archives: dict[str, str]
    options: dict[str, list[str]]
    ready: dict[str, float]


def started(out: Path, until_the_end: ExitStack) -> Servers:
    """All of them, with their topics."""
    out.mkdir(parents=True)
    authority = Authority(out)
    own = authority.signed("CN=localhost", "server.pem")
    tls_port, _ = real_kafka.free_ports()
    broker = real_kafka.tiered_broker(out / "broker", **with_tls(tls_port, own))
    address, data = until_the_end.enter_context(broker), out / "broker" / "data"
    fill(address, data)
    archives = {"folder": str(out / "archive")}
    if strict_s3.available():
        client_of(until_the_end.enter_context(strict_s3.serving(out / "versitygw"))).close()
        archives["S3"] = "s3://bench/endpoint"
    for url in archives.values():
        offload_all(data, open_store(url), only=f"{LOCAL}-0")
    for number in range(SPREAD_TOPICS):
        offload_all(data, open_store(archives["folder"]), only=f"{SPREAD}-{number}-0")
    # A consumer that comes to an archive's end asks for more and waits: all stop where there is a segment left to read ahead.
    archived = next(iter(manifests(open_store(archives["folder"]), LOCAL))).entries[-1].base_offset
    tiered = tiered_storage.TieredTopic(address, TIERED, data, None)
    remote = int(tiered.segments()[-1].partition(".")[0])  # where the active segment begins
    tiered.leave_to_the_remote_tier(remote)
    java = process_of(str(out / "broker" / "server.properties"))
    kafka = [Contestant("Kafka, local", address, java, LOCAL, archived)]
    kafka.append(Contestant("Kafka, tiered", address, java, TIERED, remote))
    ours, by_tls, ready = [], [Contestant("Kafka, local", f"127.0.0.1:{tls_port}", java, LOCAL, archived, authority.file)], {}
    all_options = {"local": ["--log-dir", str(data)], **{name: ["--archive", url] for name, url in archives.items()}}
    for name, options in all_options.items():
        at, process, ready[name] = until_the_end.enter_context(served(options))
        ours.append(Contestant(f"ours, {name}", at, process, LOCAL, archived))
        if name != "S3":
            encrypted = [*options, "-c", f"ssl.keystore.location={own}"]
            at, process, _ = until_the_end.enter_context(served(encrypted, "SSL://127.0.0.1:0"))
            by_tls.append(Contestant(f"ours, {name}", at, process, LOCAL, archived, authority.file))
    return Servers(kafka, ours, by_tls, archives, all_options, ready)


def with_tls(port: int, own: str) -> dict[str, str]:
    """A broker's settings for a listener with TLS besides its own."""
    both = f"PLAINTEXT://127.0.0.1:{{port}},SSL://127.0.0.1:{port}"
    return {
        "listeners": f"{both},CONTROLLER://127.0.0.1:{{controller}}",
        "advertised_listeners": both,
        "listener_security_protocol_map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": own,
    }


def fill(address: str, data: Path) -> None:
    """The topics; their high watermarks are written down then, so that we serve all of it."""
    ends = {LOCAL: EVENTS, TIERED: EVENTS, SMALL: SMALL_EVENTS}
    events.fill(address, LOCAL, EVENTS)
    events.fill(address, TIERED, EVENTS, {"remote.storage.enable": "true"})
    events.fill(address, SMALL, SMALL_EVENTS, batch_records=SMALL_BATCH)
    for number in range(SPREAD_TOPICS):
        ends[f"{SPREAD}-{number}"] = SPREAD_EVENTS
        events.fill(address, f"{SPREAD}-{number}", SPREAD_EVENTS, {"segment.bytes": str(8 << 20)})
    checkpoint = data / "replication-offset-checkpoint"
    for topic, end in ends.items():
        tiered_storage.wait_until(written(checkpoint, f"{topic} 0 {end}\n"), "no high watermark is written")


def written(file: Path, line: str) -> Callable[[], bool]:
    """Whether a file has a line by now."""
    return lambda: line in file.read_text()


@contextmanager
def served(options: list[str], listen: str = "127.0.0.1:0") -> Iterator[tuple[str, int, float]]:
    """`tiering serve` with these options: its address, its process, and how long it took to be ready."""
    began = time.perf_counter()
    connections = ["-c", f"max.connections={CONNECTIONS_MAX}"]
    command = [sys.executable, "-m", "tiering", "serve", *options, "--listen", listen, *connections]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        while " topics at " not in line:
            if not line:
                raise AssertionError(f"{command} has ended")
            line = process.stderr.readline()
        try:
            yield line.split()[-1], process.pid, time.perf_counter() - began
        finally:
            process.terminate()


def process_of(argument: str) -> int:
    """The process that was started with this argument."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and argument.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
            return int(folder.name)
    raise AssertionError(f"no process has {argument}")


def cpu_seconds(process: int) -> float:
    """Of all its threads, in the kernel and outside, to the nanosecond; `/proc` has hundredths of a second."""
    return time.clock_gettime(~process << 3 | CPUCLOCK_SCHED)


def resident_bytes(process: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
