"""`tiering serve` beside Kafka's broker: bytes a second, CPU a GB, the time of one small fetch, and what many connections cost.

A broker with tiered storage is filled with three topics: one that it keeps, one whose segments it leaves to its remote tier (a
folder, LocalTieredStorage), and one of small batches. We serve the broker's log directory, an archive in a folder and one on a
strict S3 server. The client takes the bytes and does nothing, so that the server is what is measured; Java's consumer reads, too.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import events  # beside this file
import java_consumer  # beside this file
import raw_fetches  # beside this file
import real_kafka  # beside the tests
import strict_s3
import tiered_storage  # beside this file
from logs_to_archive import offload_all
from many_partitions import of_partitions  # beside this file
from stores import client_of  # beside this file

from remote.archive import manifests
from remote.store.open import open_store

LOCAL, TIERED, SMALL = "kept", "tiered", "small"
EVENTS, SMALL_EVENTS = 1_300_000, 60_000
SMALL_BATCH = 10
MIB = 1 << 20
SIZES = (MIB, 10 * MIB)
CONNECTIONS = (1, 50, 500)
FETCHES = 3_000
BULK_READERS = 4
IDLE = 10_000
PARTITIONS = 10_000


@dataclass(frozen=True)
class Contestant:
    """A server, the process that it is, and which topic it is read from up to where."""

    name: str
    address: str
    process: int
    topic: str
    end: int


@dataclass(frozen=True)
class Drain:
    """The best of the rounds: MB/s, and the CPU seconds of the server for a GB, each on its own."""

    speed: float = 0.0
    cpu: float = float("inf")


def run(out: Path, rounds: int) -> None:
    """Prints the figures and their ratios."""
    allow_many_connections()
    with ExitStack() as open_until_the_end:
        kafka, ours = contestants(out, open_until_the_end)
        drains(kafka, ours, rounds)
        by_java(kafka, ours, rounds)
        small_fetches(kafka[0], ours[0])
        connections_cost(ours[0])
    of_partitions(out / "partitions", PARTITIONS, rounds, served)
    shutil.rmtree(out)


def contestants(out: Path, until_the_end: ExitStack) -> tuple[list[Contestant], list[Contestant]]:
    """Kafka's two, from its log and from its remote tier; ours, from the log directory, a folder and, if there can be one, S3."""
    address, data = until_the_end.enter_context(real_kafka.tiered_broker(out / "broker")), out / "broker" / "data"
    ends = {LOCAL: EVENTS, TIERED: EVENTS, SMALL: SMALL_EVENTS}
    events.fill(address, LOCAL, EVENTS)
    events.fill(address, TIERED, EVENTS, {"remote.storage.enable": "true"})
    events.fill(address, SMALL, SMALL_EVENTS, batch_records=SMALL_BATCH)
    checkpoint = data / "replication-offset-checkpoint"
    for topic, end in ends.items():
        tiered_storage.wait_until(lambda t=topic, e=end: f"{t} 0 {e}\n" in checkpoint.read_text(), "no high watermark is written")
    archives = {"folder": str(out / "archive")}
    if strict_s3.available():
        client_of(until_the_end.enter_context(strict_s3.serving(out / "versitygw"))).close()
        archives["S3"] = "s3://bench/endpoint"
    for url in archives.values():
        offload_all(data, open_store(url), only=f"{LOCAL}-0")
    archived = next(iter(manifests(open_store(archives["folder"]), LOCAL))).end_offset
    tiered = tiered_storage.TieredTopic(address, TIERED, data, None)
    remote = int(tiered.segments()[-1].partition(".")[0])  # where the active segment begins
    tiered.leave_to_the_remote_tier(remote)
    java = process_of(str(out / "broker" / "server.properties"))
    kafka = [Contestant("Kafka, local", address, java, LOCAL, archived)]
    kafka.append(Contestant("Kafka, tiered", address, java, TIERED, remote))
    ours = [server("ours, local", ["--log-dir", str(data)], archived, until_the_end)]
    for name, url in archives.items():
        ours.append(server(f"ours, {name}", ["--archive", url], archived, until_the_end))
    return kafka, ours


def server(name: str, options: list[str], end: int, until_the_end: ExitStack) -> Contestant:
    """One of ours."""
    address, process, seconds = until_the_end.enter_context(served(options))
    print(f"  {name} is ready after {seconds:.2f} s")
    return Contestant(name, address, process, LOCAL, end)


@contextmanager
def served(options: list[str]) -> Iterator[tuple[str, int, float]]:
    """`tiering serve` with these options: its address, its process, and how long it took to be ready."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "tiering", "serve", *options, "--listen", "127.0.0.1:0", "--max-connections", str(2 * IDLE)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            yield line.split()[-1], process.pid, time.perf_counter() - began
        finally:
            process.terminate()


def drains(kafka: list[Contestant], ours: list[Contestant], rounds: int) -> None:
    """All take turns; the best of each counts."""
    for size in SIZES:
        best: dict[str, Drain] = {}
        for _ in range(rounds):
            for one in (*kafka, *ours):
                best[one.name] = better(best.get(one.name, Drain()), drained(one, size))
        print(
            f"One connection, {size >> 20} MiB a fetch; ratios to Kafka from its log and from its remote tier; CPU of the server"
        )
        for name, found in best.items():
            local, tiered = best[kafka[0].name], best[kafka[1].name]
            print(
                f"  {name:16} {found.speed:6.0f} MB/s {found.speed / local.speed:6.2f} {found.speed / tiered.speed:6.2f}"
                f"   {found.cpu:5.2f} s/GB {found.cpu / local.cpu:6.2f} {found.cpu / tiered.cpu:6.2f}",
                flush=True,
            )


def drained(one: Contestant, size: int) -> Drain:
    """One pass."""
    cpu, began = cpu_seconds(one.process), time.perf_counter()
    count = raw_fetches.drain(one.address, one.topic, size, one.end)
    seconds = time.perf_counter() - began
    return Drain(count / seconds / 1e6, (cpu_seconds(one.process) - cpu) / count * 1e9)


def better(one: Drain, other: Drain) -> Drain:
    """The best of both figures."""
    return Drain(max(one.speed, other.speed), min(one.cpu, other.cpu))


def by_java(kafka: list[Contestant], ours: list[Contestant], rounds: int) -> None:
    """Java's consumer with large fetches, which is most often the slower side."""
    best: dict[str, float] = {}
    with ExitStack() as ending:
        readers = {one.name: (one, ending.enter_context(java_consumer.of(one.address))) for one in (*kafka, *ours)}
        for _ in range(min(rounds, 3)):
            for name, (one, consumer) in readers.items():
                began = time.perf_counter()
                count = consumer.read(one.topic, one.end)
                assert count == one.end, f"{name}: {count} of {one.end}"
                best[name] = max(best.get(name, 0), count / (time.perf_counter() - began))
    print(f"Java's consumer with large fetches: M records/s, as ratios to {kafka[0].name} and {kafka[1].name}")
    for name, speed in best.items():
        print(f"  {name:16} {speed / 1e6:6.2f} {speed / best[kafka[0].name]:6.2f} {speed / best[kafka[1].name]:6.2f}", flush=True)


def small_fetches(kafka: Contestant, ours: Contestant) -> None:
    """One batch of about 2.6 KB, asked for by many connections, and by one beside readers of large ones."""
    both = [replace(one, topic=SMALL, end=SMALL_EVENTS) for one in (kafka, ours)]
    print("One small batch, ms: p50 and p99 of Kafka, of ours, and the ratios")
    for connections in CONNECTIONS:
        found = [latencies(one, connections, FETCHES) for one in both]
        show_latencies(f"{connections} connections", found)
    found = []
    for one in both:
        command = [sys.executable, raw_fetches.__file__, one.address, LOCAL, str(10 * MIB), str(BULK_READERS), str(kafka.end)]
        bulk = subprocess.Popen(command)
        try:
            time.sleep(1.0)
            found.append(latencies(one, 1, FETCHES // 3))
        finally:
            bulk.kill()
            bulk.wait()
    show_latencies(f"beside {BULK_READERS} bulk readers", found)


def latencies(one: Contestant, connections: int, count: int) -> tuple[float, float]:
    """p50 and p99 of the best of three runs, in ms; the first one of all is for the server to get warm."""
    best = (float("inf"), float("inf"))
    for _ in range(3):
        found = raw_fetches.latencies(one.address, one.topic, connections, count, one.end)
        best = min(best, (found[len(found) // 2] * 1e3, found[len(found) * 99 // 100] * 1e3), key=sum)
    return best


def show_latencies(what: str, found: list[tuple[float, float]]) -> None:
    """Kafka's and ours."""
    (kafka_p50, kafka_p99), (our_p50, our_p99) = found
    ratios = f"{our_p50 / kafka_p50:6.2f} {our_p99 / kafka_p99:6.2f}"
    print(f"  {what:24} {kafka_p50:7.2f} {kafka_p99:7.2f}   {our_p50:7.2f} {our_p99:7.2f}   {ratios}", flush=True)


def connections_cost(ours: Contestant) -> None:
    """Memory of connections that have asked once and are idle."""
    before, began = resident_bytes(ours.process), time.perf_counter()
    idle = [raw_fetches.connected(ours.address) for _ in range(IDLE)]
    seconds = time.perf_counter() - began
    buffer = memoryview(bytearray(1 << 20))
    for one in idle:
        one.sendall(raw_fetches.request(SMALL, 0, 1))
    for one in idle:
        raw_fetches.receive(one, buffer)
    each = (resident_bytes(ours.process) - before) / IDLE / 1024
    print(f"{IDLE:,} idle connections: {each:.2f} KiB each, opened in {seconds:.1f} s")
    for one in idle:
        one.close()


def allow_many_connections() -> None:
    """As many open files as this user may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def process_of(argument: str) -> int:
    """The process that was started with this argument."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and argument.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
            return int(folder.name)
    raise AssertionError(f"no process has {argument}")


def cpu_seconds(process: int) -> float:
    """Of all its threads, in the kernel and outside."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(process: int) -> int:
    """Memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="endpoint", description="This part of make bench alone.")
    parser.add_argument("--rounds", type=int, default=5)
    run(Path("bench-out/endpoint").absolute(), parser.parse_args().rounds)
