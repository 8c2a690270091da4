"""Writes and reads with a client of Python's: a line of standard input is a command and its words, and its answer is a line.

python write.py kafka_python|aio_kafka|librdkafka ADDRESS

create TOPIC PARTITIONS                  ok
write TOPIC CODEC FIRST UNTIL            writes numbers, with the last digit as key, up to UNTIL, or until there is a file UNTIL;
                                         the number after the last acknowledged one
transact TOPIC ID FIRST UNTIL GROUP      commits these numbers and the offset 7 of partition 0 for a group, and aborts others; ok
read TOPIC GROUP COUNT                   reads so many committed records as a member, and commits; a digest of them
"""

import hashlib
import importlib
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

AT_ONCE = 20
"""Records that are written before the acknowledgements are waited for."""
COMMITTED = 7

Record = tuple[bytes, bytes]
Read = tuple[int, int, bytes, bytes]


def chunks(first: int, until: str) -> Iterator[list[Record]]:
    """Keys and values, for as long as there are any to be written."""
    while first < int(until) if until.isdigit() else not Path(until).exists():
        last = min(first + AT_ONCE, int(until)) if until.isdigit() else first + AT_ONCE
        yield [record(number) for number in range(first, last)]
        first = last
        time.sleep(0 if until.isdigit() else 0.01)


def record(number: int) -> Record:
    """One of a number."""
    return b"%d" % (number % 10), b"%d" % number


def aborted(first: str, until: str) -> list[Record]:
    """What nobody may read."""
    return [(b"aborted", b"%d" % number) for number in range(int(first), int(until))]


def digest(records: Iterable[Read]) -> str:
    """As all programs compute it: partition, offset, key and value of each record, in the order of the lines."""
    lines = sorted(b"%d %d %s %s\n" % one for one in records)
    return f"{len(lines)} {hashlib.sha256(b''.join(lines)).hexdigest()}"


def main() -> None:
    name, address = sys.argv[1:]
    client = importlib.import_module(name).Client(address)
    for line in sys.stdin:
        command, *words = line.split()
        print(getattr(client, command)(*words), flush=True)


if __name__ == "__main__":
    main()
