"""One, two and three processes of `tiering serve` that share an archive: bytes a second together, beside the cores they have."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack

import raw_fetches  # beside this file
import tiered_storage  # beside this file
from confluent_kafka.admin import AdminClient
from endpoint_servers import SPREAD, SPREAD_TOPICS, cpu_seconds, served  # beside this file

from remote.archive import manifests
from remote.store.open import open_store

COUNTS = (1, 2, 3)
READERS = 3
"""Processes with several connections each: one would be slower than what it reads from."""
FETCH_BYTES = 1 << 20
NAMES = [f"{SPREAD}-{number}" for number in range(SPREAD_TOPICS)]


def throughput(archive: str, rounds: int) -> None:
    """Prints it: a connection for each of the topics, to the process that leads it."""
    store = open_store(archive)
    ends = {name: next(iter(manifests(store, name))).end_offset for name in NAMES}
    print(
        f"Several brokers that serve {len(NAMES)} topics of a folder, on {len(os.sched_getaffinity(0))} cores with their readers"
    )
    for count in COUNTS:
        with ExitStack() as running:
            options = ["--archive", archive, "--register"]
            brokers = [running.enter_context(served([*options, "--broker-id", str(number)])) for number in range(1, count + 1)]
            leaders = leaders_of(brokers[0][0], count)
            asked = [f"{leaders[name]},{name},{ends[name]}" for name in NAMES]
            readers = [running.enter_context(reader(asked[number::READERS])) for number in range(READERS)]
            read_by(readers)  # their checksums are known from now on
            best, cpu = 0.0, float("inf")
            for _ in range(rounds):
                before, began = cpu_of(brokers), time.perf_counter()
                size = read_by(readers)
                best = max(best, size / (time.perf_counter() - began) / 1e6)
                cpu = min(cpu, (cpu_of(brokers) - before) / size * 1e9)
            for one in readers:
                one.kill()
        of_each = sorted(list(leaders.values()).count(address) for address in set(leaders.values()))
        print(f"  {count} of them        {best:6.0f} MB/s   {cpu:5.2f} s/GB   topics of each: {of_each}", flush=True)


def reader(asked: list[str]) -> "subprocess.Popen[str]":
    """A process that reads these topics whenever it is told to."""
    command = [sys.executable, raw_fetches.__file__, str(FETCH_BYTES), *asked]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read_by(readers: list["subprocess.Popen[str]"]) -> int:
    """How many bytes all have read, at the same time."""
    for one in readers:
        assert one.stdin is not None
        print(file=one.stdin, flush=True)
    return sum(int(one.stdout.readline()) for one in readers if one.stdout is not None)


def cpu_of(brokers: list[tuple[str, int, float]]) -> float:
    """CPU seconds of all."""
    return sum(cpu_seconds(process) for _, process, _ in brokers)


def leaders_of(address: str, count: int) -> dict[str, str]:
    """Where each topic is led, as soon as all brokers know each other."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    tiered_storage.wait_until(lambda: len(admin.list_topics(timeout=30).brokers) == count, "the brokers do not find each other")
    known = admin.list_topics(timeout=30)
    at = {broker.id: f"{broker.host}:{broker.port}" for broker in known.brokers.values()}
    return {name: at[known.topics[name].partitions[0].leader] for name in NAMES}
