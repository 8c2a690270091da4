"""`tiering serve` beside Kafka's broker: bytes a second, CPU a GB, the time of one small fetch, and what many connections cost.

A broker with tiered storage is filled with topics: one that it keeps, one whose segments it leaves to its remote tier (a
folder, LocalTieredStorage), and others. We serve the broker's log directory, an archive in a folder and one on a strict S3
server. The client takes the bytes and does nothing, so that the server is what is measured; Java's consumer reads, too.
"""

import argparse
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import archive_reader  # beside this file
import endpoint_brokers  # beside this file
import endpoint_latencies  # beside this file
import java_consumer  # beside this file
import raw_fetches  # beside this file
from endpoint_servers import Contestant, Servers, cpu_seconds, served, started  # beside this file
from many_partitions import of_partitions  # beside this file
from targets import Targets  # beside this file

MIB = 1 << 20
SIZES = (MIB, 10 * MIB)
PARTITIONS = 10_000
SPEEDS = {MIB: (1.0, 3.5, 1.3), 10 * MIB: (0.8, 5.0, 1.6)}
"""What is to be reached by size: a log directory of Kafka's from its log, a folder and S3 of Kafka's from its remote tier."""
READER, SENT = "our reader alone", "our reader, sent"


@dataclass(frozen=True)
class Drain:
    """The best of the rounds: MB/s, and the CPU seconds of the server for a GB, each on its own."""

    speed: float = 0.0
    cpu: float = float("inf")


def run(out: Path, rounds: int) -> None:
    """Prints the figures, their ratios and their targets."""
    allow_many_connections()
    targets = Targets()
    with ExitStack() as open_until_the_end:
        servers = started(out, open_until_the_end)
        ready(servers, rounds, targets)
        drains(servers, rounds, targets)
        by_java(servers, min(rounds, 3), targets)
        by_tls(servers, min(rounds, 3))
        endpoint_latencies.small_fetches(servers.kafka[0], servers.ours[0], rounds, targets)
        endpoint_latencies.connections_cost(servers.ours[0], targets)
        endpoint_brokers.throughput(servers.archives["folder"], min(rounds, 3))
    of_partitions(out / "partitions", PARTITIONS, rounds, served, targets)
    shutil.rmtree(out)
    targets.show()


def ready(servers: Servers, rounds: int, targets: Targets) -> None:
    """How long each takes to start, the best of the rounds. The first one starts while the topics are written to disk."""
    print("Ready")
    for name, options in servers.options.items():
        first = servers.ready[name]
        best = min([first, *(started_in(options) for _ in range(rounds - 1))])
        print(f"  ours, {name} is ready after {best:.2f} s, the first time after {first:.2f} s", flush=True)
        targets.at_most(f"seconds until ready, {name}", best, 1.0 if name == "local" else 2.0)


def started_in(options: list[str]) -> float:
    """Seconds until another one is ready, which then ends."""
    with served(options) as (_, _, seconds):
        return seconds


def drains(servers: Servers, rounds: int, targets: Targets) -> None:
    """All take turns; the best of each counts."""
    for size in SIZES:
        passes = passes_of([*servers.kafka, *servers.ours], size)
        if "S3" in servers.archives:
            passes[READER] = partial(read_alone, servers.archives["S3"], servers.ours[-1])
            passes[SENT] = partial(read_and_sent, servers.archives["S3"], servers.ours[-1], size)
        best = in_turns(passes, rounds)
        local, tiered = best[servers.kafka[0].name], best[servers.kafka[1].name]
        mib = f"{size // MIB} MiB a fetch"
        print(f"One connection, {mib}; ratios to Kafka from its log and from its remote tier; CPU of the server")
        for name, found in best.items():
            print(
                f"  {name:16} {found.speed:6.0f} MB/s {found.speed / local.speed:6.2f} {found.speed / tiered.speed:6.2f}"
                f"   {found.cpu:5.2f} s/GB {found.cpu / local.cpu:6.2f} {found.cpu / tiered.cpu:6.2f}",
                flush=True,
            )
        of_log, of_folder, of_s3 = SPEEDS[size]
        targets.at_least(f"{mib}, local / Kafka local", best["ours, local"].speed / local.speed, of_log)
        targets.at_most(f"{mib}, local, CPU / Kafka local", best["ours, local"].cpu / local.cpu, 1.0)
        targets.at_least(f"{mib}, folder / Kafka tiered", best["ours, folder"].speed / tiered.speed, of_folder)
        targets.at_most(f"{mib}, folder, CPU / Kafka tiered", best["ours, folder"].cpu / tiered.cpu, 1 / 6)
        if READER in best:
            targets.at_least(f"{mib}, S3 / Kafka tiered", best["ours, S3"].speed / tiered.speed, of_s3)
            targets.at_least(f"{mib}, S3 / our reader alone", best["ours, S3"].speed / best[READER].speed, 0.8)


def by_tls(servers: Servers, rounds: int) -> None:
    """Encrypted: Kafka and ours, by the raw client and by Java's consumer."""
    for size in SIZES:
        best = in_turns(passes_of(servers.by_tls, size), rounds)
        kafka = best[servers.kafka[0].name]
        print(f"TLS, one connection, {size // MIB} MiB a fetch; ratios to Kafka with TLS from its log; CPU of the server")
        for name, found in best.items():
            ratios = f"{found.speed / kafka.speed:6.2f}   {found.cpu:5.2f} s/GB {found.cpu / kafka.cpu:6.2f}"
            print(f"  {name:16} {found.speed:6.0f} MB/s {ratios}", flush=True)
    print("TLS, Java's consumer with large fetches: M records/s, as ratios to Kafka with TLS")
    found = read_by_java(servers.by_tls, rounds)
    for name, speed in found.items():
        print(f"  {name:16} {speed / 1e6:6.2f} {speed / found[servers.kafka[0].name]:6.2f}", flush=True)


def passes_of(servers: list[Contestant], size: int) -> dict[str, Callable[[], Drain]]:
    """A pass over each, by its name."""
    return {one.name: partial(drained, one, size) for one in servers}


def in_turns(passes: Mapping[str, Callable[[], Drain]], rounds: int) -> dict[str, Drain]:
    """The best of each."""
    best: dict[str, Drain] = {}
    for _ in range(rounds):
        for name, once in passes.items():
            best[name] = better(best.get(name, Drain()), once())
    return best


def read_alone(archive: str, of: Contestant) -> Drain:
    """What the endpoint reads, in this process."""
    found = archive_reader.read(archive, of.topic, of.end)
    return Drain(found.speed, found.cpu)


def read_and_sent(archive: str, of: Contestant, size: int) -> Drain:
    """The same in another process, which sends it as it comes, without a request, to the client that reads from servers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        host, port = listener.getsockname()
        command = [sys.executable, archive_reader.__file__, archive, of.topic, str(of.end), "--to", f"{host}:{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader, listener.accept()[0] as connection:
            raw_fetches.take_all(connection, size)
            speed, _, cpu, _ = reader.communicate()[0].split()
    return Drain(float(speed), float(cpu))


def drained(one: Contestant, size: int) -> Drain:
    """One pass."""
    cpu, began = cpu_seconds(one.process), time.perf_counter()
    count = raw_fetches.drain(one.address, one.topic, size, one.end, one.trusted)
    seconds = time.perf_counter() - began
    return Drain(count / seconds / 1e6, (cpu_seconds(one.process) - cpu) / count * 1e9)


def better(one: Drain, other: Drain) -> Drain:
    """The best of both figures."""
    return Drain(max(one.speed, other.speed), min(one.cpu, other.cpu))


def by_java(servers: Servers, rounds: int, targets: Targets) -> None:
    """Java's consumer with large fetches, which is most often the slower side."""
    local, tiered = (one.name for one in servers.kafka)
    best = read_by_java([*servers.kafka, *servers.ours], rounds)
    print(f"Java's consumer with large fetches: M records/s, as ratios to {local} and {tiered}")
    for name, speed in best.items():
        print(f"  {name:16} {speed / 1e6:6.2f} {speed / best[local]:6.2f} {speed / best[tiered]:6.2f}", flush=True)
    targets.at_least("Java, local / Kafka local", best["ours, local"] / best[local], 0.95)
    targets.at_least("Java, folder / Kafka tiered", best["ours, folder"] / best[tiered], 1.7)


def read_by_java(servers: list[Contestant], rounds: int) -> dict[str, float]:
    """Records a second, the best of each; they take turns."""
    best: dict[str, float] = {}
    with ExitStack() as ending:
        trusted = {one.name: [] if one.trusted is None else [one.trusted] for one in servers}
        readers = {one: ending.enter_context(java_consumer.of(one.address, *trusted[one.name])) for one in servers}
        for _ in range(rounds):
            for one, consumer in readers.items():
                began = time.perf_counter()
                count = consumer.read(one.topic, one.end)
                assert count == one.end, f"{one.name}: {count} of {one.end}"
                best[one.name] = max(best.get(one.name, 0), count / (time.perf_counter() - began))
    return best


def allow_many_connections() -> None:
    """As many open files as this user may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="endpoint", description="This part of make bench alone.")
    parser.add_argument("--rounds", type=int, default=5)
    run(Path("bench-out/endpoint").absolute(), parser.parse_args().rounds)
