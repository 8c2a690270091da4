"""What version 0.1.0 has written, unpacked for today's code to take up, and what one asks of an archive by commands.

See tests/golden/version_0_1_0/README.md for what there is and how it was made.
"""

import hashlib
import itertools
import json
import lzma
import os
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from key_files import write_keys

from tiering.cli import main

Row = dict[str, Any]

_FOLDER = Path(__file__).parents[1] / "golden" / "version_0_1_0"
_DONE, _LOST, _ANOMALY = 0, 3, 6
TIMES_MS = (0, 1_700_000_012_002, 1_700_000_020_500, 4_102_444_830_000, "earliest", "latest", "max-timestamp")
ISOLATIONS = ("read_uncommitted", "read_committed")
EXPIRY = (
    ("retention.ms=31536000000", "g-*:retention.ms=-1"),
    ("retention.bytes=6000",),
    ("retention.ms=-1", "payments:retention.bytes=0"),
)
"""All records but Kafka's own are of 2023 and of 2100: a year keeps the same whenever it is asked."""
LAST = 36
"""So many offsets before the end of a partition there is no gap any more."""


def unpacked(name: str, into: Path) -> Path:
    """One of the folders that lie there, as `into`; all in it was last changed in 1970."""
    with tarfile.open(_FOLDER / f"{name}.tar.xz") as packed:
        packed.extractall(into, filter="data")
    return into


def touched(folder: Path) -> Path:
    """The same, of which everything has changed just now."""
    for path in folder.rglob("*"):
        os.utime(path)
    return folder


@cache
def answers() -> dict[str, Any]:
    """What version 0.1.0 answered."""
    found: dict[str, Any] = json.loads(lzma.decompress((_FOLDER / "answers.json.xz").read_bytes()))
    return found


def key_file(folder: Path) -> Path:
    """The keys of the encrypted archive."""
    return write_keys(folder / "keys.json", "k2", k1=bytes(range(32)), k2=bytes(range(32, 64)))


def run(*args: object) -> Result:
    """`tiering ARGS…`."""
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


class Asked:
    """An archive, asked by commands; `options` say where it is and with which keys it is read."""

    def __init__(self, archive: Path, *more: object) -> None:
        self.options = ("--archive", archive, *more)

    def rows(self, *args: object, codes: Sequence[int] = (_DONE,)) -> list[Row]:
        """The rows of a command."""
        result = run(*args, *self.options, "--output", "jsonl")
        assert result.exit_code in codes, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    def described(self) -> list[Row]:
        return self.rows("describe", "--no-coverage")

    def records(self) -> dict[str, list[Any]]:
        """For each partition the exit code, number and digest of its records, from its first and from one of its last offsets on.

        A reader that comes to a gap ends there.
        """
        found = {}
        for row in self.described():
            start, end = row["log_start_offset"], row["archived_up_to"]
            for offset, isolation in itertools.product({start, max(start, end - LAST)}, ISOLATIONS):
                asked = {"topic": row["topic"], "partition": row["partition"], "offset": offset, "isolation": isolation}
                found[" ".join(map(str, asked.values()))] = self._records(asked)
        return found

    def _records(self, asked: Mapping[str, object]) -> list[Any]:
        options = [word for name, value in asked.items() for word in (f"--{name}", value)]
        result = run("fetch", *self.options, *options, "--output", "jsonl", "--encoding", "base64")
        records = [json.loads(line) for line in result.stdout.splitlines()]
        assert {record.pop("partition") for record in records} <= {asked["partition"]}  # version 0.1.0 did not say it
        return [result.exit_code, len(records), hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()]

    def offsets(self) -> dict[str, list[Row]]:
        """The first offsets of each topic at some times."""
        topics = sorted({row["topic"] for row in self.described()})
        found = {}
        for topic, time in itertools.product(topics, TIMES_MS):
            # Where an answer would lie in a gap, the partition has no row, and the exit code tells.
            found[f"{topic} {time}"] = self.rows("offsets", "--topic", topic, "--time", time, codes=range(8))
        return found

    def scrubbed(self) -> list[list[Any]]:
        """The findings of a scrub that reads everything: kind, key and position."""
        found = self.rows("scrub", "--deep", codes=(_DONE, _ANOMALY))
        return sorted(([row["kind"], row["key"], row["position"]] for row in found), key=str)

    def expiring(self) -> dict[str, list[Row]]:
        """What would expire by some settings."""
        return {" ".join(settings): self._expiring(settings) for settings in EXPIRY}

    def _expiring(self, settings: Sequence[str]) -> list[Row]:
        given = [word for one in (*settings, "file.delete.delay.ms=0") for word in ("-c", one)]
        planned = self.rows("expire", "--archive-alone", "--dry-run", *given)
        return [{name: value for name, value in row.items() if name != "reason"} for row in planned]  # reasons are prose

    def swept(self) -> list[list[Any]]:
        """What a sweep would delete: what it is, its key and its bytes."""
        return [[row["what"], row["key"], row["bytes"]] for row in self.rows("sweep", "--dry-run")]

    def restored(self, into: Path) -> dict[str, str]:
        """The digest of every file that a restore writes."""
        self.rows("restore", "--to", into, codes=(_DONE, _LOST))
        files = (path for path in sorted(into.rglob("*")) if path.is_file())
        return {str(path.relative_to(into)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def everything(self, scratch: Path) -> dict[str, Any]:
        """All of it, by name."""
        return {
            "records": self.records(),
            "offsets": self.offsets(),
            "described": self.described(),
            "scrubbed": self.scrubbed(),
            "expiring": self.expiring(),
            "swept": self.swept(),
            "restored": self.restored(scratch),
        }
