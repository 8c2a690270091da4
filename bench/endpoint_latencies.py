"""The time of one small fetch, of many connections and beside readers of large ones, and what an idle connection costs."""

import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace

import raw_fetches  # beside this file
from endpoint_servers import LOCAL, SMALL, SMALL_EVENTS, Contestant, resident_bytes  # beside this file
from targets import Targets  # beside this file

CONNECTIONS = (1, 50, 500)
FETCHES = 3_000
BULK_READERS, BULK_BYTES = 4, 10 << 20
IDLE = 10_000

Percentiles = tuple[float, float]
"""p50 and p99, in ms."""


def small_fetches(kafka: Contestant, ours: Contestant, rounds: int, targets: Targets) -> None:
    """One batch of about 2.6 KB. Both take turns; of each the best p50 and the best p99 count."""
    print("One small batch, ms: p50 and p99 of Kafka, of ours, and the ratios")
    for connections in CONNECTIONS:
        show(f"{connections} connections", in_turns(kafka, ours, rounds, connections, False), (1.0, 1.0), targets)
    show(f"beside {BULK_READERS} bulk readers", in_turns(kafka, ours, rounds, 1, True), (None, 2.0), targets)


def in_turns(kafka: Contestant, ours: Contestant, rounds: int, connections: int, is_beside: bool) -> list[Percentiles]:
    """Kafka's and ours."""
    best = [(float("inf"), float("inf"))] * 2
    for _ in range(rounds):
        for number, one in enumerate((kafka, ours)):
            with ExitStack() as ending:
                if is_beside:
                    bulk = ending.enter_context(subprocess.Popen(bulk_readers(one)))
                    ending.callback(bulk.kill)
                    time.sleep(1.0)
                small = replace(one, topic=SMALL, end=SMALL_EVENTS)
                found = latencies(small, connections, FETCHES // 3 if is_beside else FETCHES)
            best[number] = (min(best[number][0], found[0]), min(best[number][1], found[1]))
    return best


def bulk_readers(of: Contestant) -> list[str]:
    """A process that reads the large topic again and again."""
    asked = (of.address, LOCAL, BULK_BYTES, BULK_READERS, of.end)
    return [sys.executable, raw_fetches.__file__, *map(str, asked)]


def latencies(one: Contestant, connections: int, count: int) -> Percentiles:
    """Of one run."""
    found = raw_fetches.latencies(one.address, one.topic, connections, count, one.end)
    return found[len(found) // 2] * 1e3, found[len(found) * 99 // 100] * 1e3


def show(what: str, found: list[Percentiles], bounds: tuple[float | None, float], targets: Targets) -> None:
    """Kafka's and ours, and how they stand to their targets."""
    (kafka_p50, kafka_p99), (our_p50, our_p99) = found
    ratios = our_p50 / kafka_p50, our_p99 / kafka_p99
    figures = f"{kafka_p50:7.2f} {kafka_p99:7.2f}   {our_p50:7.2f} {our_p99:7.2f}   {ratios[0]:6.2f} {ratios[1]:6.2f}"
    print(f"  {what:24} {figures}", flush=True)
    for name, ratio, bound in zip(("p50", "p99"), ratios, bounds, strict=True):
        if bound is not None:
            targets.at_most(f"a small fetch, {what}, {name} / Kafka's", ratio, bound)


def connections_cost(ours: Contestant, targets: Targets) -> None:
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
    targets.at_most("KiB of an idle connection", each, 2.0)
    for one in idle:
        one.close()
