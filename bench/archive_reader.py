"""Reads an archived partition without the endpoint, as `tiering serve` reads it: ahead, with every checksum checked.

What the endpoint costs besides is the difference to a drain of the same bytes. As a command it reads once and prints its figures:

    python bench/archive_reader.py s3://bucket/archive TOPIC END
"""

import argparse
import time
from dataclasses import dataclass

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


def read(archive: str, topic: str, end: int) -> Reading:
    """Reads partition 0 of a topic up to offset `end`, in this process. The archive is opened before the clock starts."""
    with read_ahead_pool(READ_AHEAD_THREADS) as pool:
        log = open_tiers(None, archive, open_reading(None, 0, pool)).partition(topic, 0).archived
        if log is None:
            raise AssertionError(f"{archive} has no {topic}-0")
        size, next_offset = 0, log.log_start_offset
        began, cpu = time.perf_counter(), time.process_time()
        for chunk in log.chunks(next_offset, end):
            chunk.check()
            size, next_offset = size + int(chunk.batches.size.sum()), chunk.batches.next_offset
        if next_offset < end:
            raise AssertionError(f"{archive}: {topic}-0 ends at {next_offset} of {end}")
        return Reading(size, time.perf_counter() - began, time.process_time() - cpu)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="archive_reader", description="Reads an archived partition once.")
    parser.add_argument("archive")
    parser.add_argument("topic")
    parser.add_argument("end", type=int)
    args = parser.parse_args()
    found = read(args.archive, args.topic, args.end)
    print(f"{found.speed:.0f} MB/s {found.cpu:.2f} s/GB")
