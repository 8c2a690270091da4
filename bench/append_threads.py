"""Appends from many threads to the logs of a log manager, as a service has them, beside one thread and a bare log.

Producers' batches come to logs that are their only replica: each append publishes the log's offsets. Python runs one thread at a
time, except while one writes to a file, so that the sum hardly grows with the threads; what counts is that it does not fall.
"""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine import batch, ours  # beside this file
from kafka_log import NOW

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.filenames import TopicPartition
from local_log.os_disk import OsWritableDisk

THREADS = (1, 4, 16)
SHAPES = ((200, 1, 40_000), (16_000, 16, 8_000))
MB = 1_000_000


def started(folder: Path) -> LogManager:
    """A manager of an empty directory."""
    folder.mkdir()
    config = ManagerConfig(log_dirs=(str(folder),))
    manager = LogManager(OsWritableDisk(), config, lambda: NOW, lambda: 0.0, lambda: "0" * 32, only_replica=True)
    manager.start()
    return manager


def seconds_of(logs: list[UnifiedLog], threads: int, sent: bytes, times: int) -> float:
    """How long it takes to append a batch so many times, each thread to its log (to one of them, if there are fewer)."""
    ready = threading.Barrier(threads + 1)

    def append(log: UnifiedLog) -> None:
        ready.wait()
        for _ in range(times // threads):
            log.append_as_leader(sent, 0)

    running = [threading.Thread(target=append, args=(logs[n % len(logs)],)) for n in range(threads)]
    for thread in running:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in running:
        thread.join()
    return time.perf_counter() - start


def alone(folder: Path, sent: bytes, times: int) -> float:
    """The same with a bare log and without threads."""
    log = ours(folder, clean=True)
    start = time.perf_counter()
    for _ in range(times):
        log.append_as_leader(sent, 0)
    spent = time.perf_counter() - start
    log.close()
    return spent


def by_threads(folder: Path, threads: int, partitions: int, sent: bytes, times: int) -> float:
    """Seconds of `seconds_of` with a new manager."""
    manager = started(folder)
    logs = [manager.get_or_create(TopicPartition("orders", n)) for n in range(partitions)]
    spent = seconds_of(logs, threads, sent, times)
    manager.stop()
    return spent


def run(out: Path, rounds: int) -> None:
    """Prints the appends and MB in a second, and the ratio to the engine alone."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    print(f"{'Appends of a leader':64} {'per s':>9} {'MB/s':>7} {'ratio':>7}")
    for size, records, times in SHAPES:
        sent = batch(0, records, size // records - 10)
        cases: dict[str, Callable[[Path], float]] = {
            "the engine alone": lambda folder, sent=sent, times=times: alone(folder, sent, times)  # type: ignore[misc]
        }
        for threads in THREADS:
            for partitions in sorted({1, threads}):
                to = "one log" if partitions == 1 else "a log each"
                cases[f"{threads} thread{'s'[: threads - 1]} to {to}"] = (  # type: ignore[assignment]
                    lambda folder, n=threads, p=partitions, sent=sent, times=times: by_threads(folder, n, p, sent, times)
                )
        best = dict.fromkeys(cases, float("inf"))
        for turn in range(rounds):
            for what, spent in cases.items():
                folder = out / f"{turn}-0"
                best[what] = min(best[what], spent(folder))
                shutil.rmtree(folder)
        for what, spent_s in best.items():
            name = f"{size // 1000} KB" if size >= 1000 else f"{size} bytes"
            ratio = best["the engine alone"] / spent_s
            print(f"{name}, {what:54} {times / spent_s:9.0f} {times * len(sent) / spent_s / MB:7.1f} {ratio:7.2f}", flush=True)
    shutil.rmtree(out)
