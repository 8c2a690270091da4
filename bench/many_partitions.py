"""A log directory with many partitions: when `tiering serve` is ready with it, and how long Metadata of all of them takes."""

import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import raw_fetches  # beside this file
from asked_by_wire import Wire
from targets import Targets  # beside this file

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG, offset_file
from tiering.endpoint.protocol.api_keys import CREATE_TOPICS
from tiering.endpoint.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

TOPICS = 100
METADATA, VERSION = 3, 9
_ALL_TOPICS = b"\0"
ANSWER_BYTES_MAX = 16 << 20

Served = Callable[[list[str]], AbstractContextManager[tuple[str, int, float]]]


def of_partitions(out: Path, count: int, rounds: int, served: Served, targets: Targets) -> None:
    """Prints both."""
    make_log_dir(out, count)
    ready = list[float]()
    for _ in range(rounds):
        with served(["--log-dir", str(out)]) as (address, _, seconds):
            ready.append(seconds)
            first, *others = (asked(address) for _ in range(rounds * 4))
    seconds = min(ready)
    print(f"{count:,} partitions of {TOPICS} topics: ready after {seconds:.2f} s, the first time after {ready[0]:.2f} s")
    print(f"  Metadata: {min(others) * 1e3:.1f} ms, and {first * 1e3:.0f} ms for the first, which opens their logs", flush=True)
    targets.at_most(f"seconds until ready, {count:,} partitions", seconds, 1.0)
    targets.at_most(f"ms of Metadata of {count:,} partitions", min(others) * 1e3, 20.0)


def of_own_partitions(out: Path, count: int, rounds: int, served: Served) -> None:
    """Prints both for a log directory of its own, where a topic may be created between two answers. For information."""
    make_log_dir(out, count)
    with served(["--own-log-dir", str(out)]):
        pass  # the first start takes the directory over
    with served(["--own-log-dir", str(out)]) as (address, _, seconds):
        first, *others = (asked(address) for _ in range(rounds * 4))
        with closing(Wire(address)) as wire:
            changed = [_changed(wire, address, f"new-{number}") for number in range(rounds)]
    print(f"{count:,} partitions of its own, of {TOPICS} topics: ready after {seconds:.2f} s")
    told = f"{min(others) * 1e3:.1f} ms, {min(changed) * 1e3:.1f} ms after a topic was created"
    print(f"  Metadata: {told}, {first * 1e3:.0f} ms for the first", flush=True)


def _changed(wire: Wire, address: str, topic: str) -> float:
    assert not wire.ask(CREATE_TOPICS, 2, CreateTopicsRequest((CreatableTopic(topic, 1, 1),), 10_000)).topics[0].error_code
    return asked(address)


def make_log_dir(out: Path, count: int) -> None:
    """Empty logs, as a broker has them when their topics are new."""
    lines = []
    for topic in range(TOPICS):
        for number in range(count // TOPICS):
            folder = out / f"many-{topic:03}-{number}"
            folder.mkdir(parents=True)
            (folder / offset_file(0, LOG)).touch()
            (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic:022}\n")
            lines.append(f"many-{topic:03} {number} 0")
    (out / HIGH_WATERMARK_CHECKPOINT).write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def asked(address: str) -> float:
    """Seconds until the answer for all topics is there."""
    body = struct.pack(">hhih", METADATA, VERSION, 1, 5) + b"bench\0" + _ALL_TOPICS + b"\0\0\0\0"
    buffer = memoryview(bytearray(ANSWER_BYTES_MAX))
    with raw_fetches.connected(address) as to:
        began = time.perf_counter()
        to.sendall(struct.pack(">i", len(body)) + body)
        raw_fetches.receive(to, buffer)
        return time.perf_counter() - began
