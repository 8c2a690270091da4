"""Reads an archived partition without the endpoint, as `tiering serve` reads it: ahead, with every checksum checked.

What the endpoint costs besides is the difference to a drain of the same bytes. As a command it reads once and prints its figures,
and with an address sends what it reads there:

    python bench/archive_reader.py s3://bucket/archive TOPIC END [--to ADDRESS]
"""

import argparse
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from local_log.formats.record_batch.columns import warm_up
from tiering.endpoint.broker_server import READ_AHEAD_THREADS
from tiering.wiring import open_reading, open_tiers, read_ahead_pool


@dataclass(frozen=True)
class Reading:
    """`bytes` of whole batches, and the seconds of the clock and of the CPU that they took."""

    bytes: int
    seconds: float
    cpu_seconds: float

    @property
    def speed(self) -> float:
        """MB/s."""
        return self.bytes / self.seconds / 1e6

    @property
    def cpu(self) -> float:
        """CPU seconds of this process a GB."""
        return self.cpu_seconds / self.bytes * 1e9


def read(archive: str, topic: str, end: int, take: Callable[[memoryview], object] = len) -> Reading:
    """Reads partition 0 of a topic up to offset `end`, in this process.

    The archive is opened, and what reads batches is loaded, before the clock starts.
    `take` is given the batches.
    """
    warm_up()
    with read_ahead_pool(READ_AHEAD_THREADS) as pool:
        log = open_tiers(None, archive, open_reading(None, 0, pool)).partition(topic, 0).archived
        if log is None:
            raise AssertionError(f"{archive} has no {topic}-0")
        size, next_offset = 0, log.log_start_offset
        began, cpu = time.perf_counter(), time.process_time()
        for chunk in log.chunks(next_offset, end):
            chunk.check()
            batches = chunk.batches
            take(memoryview(chunk.buffer)[int(batches.positions[0]) : int(batches.end[-1])])
            size, next_offset = size + int(batches.size.sum()), batches.next_offset
        if next_offset < end:
            raise AssertionError(f"{archive}: {topic}-0 ends at {next_offset} of {end}")
        return Reading(size, time.perf_counter() - began, time.process_time() - cpu)


def read_and_sent(archive: str, topic: str, end: int, address: str) -> Reading:
    """The same, with all of it sent by one connection."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as to:
        return read(archive, topic, end, to.sendall)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="archive_reader", description="Reads an archived partition once.")
    parser.add_argument("archive")
    parser.add_argument("topic")
    parser.add_argument("end", type=int)
    parser.add_argument("--to", help="The address of who takes what is read.")
    args = parser.parse_args()
    of = args.archive, args.topic, args.end
    found = read_and_sent(*of, args.to) if args.to else read(*of)
    print(f"{found.speed:.0f} MB/s {found.cpu:.2f} s/GB")
