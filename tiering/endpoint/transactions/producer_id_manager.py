"""Producer ids, each given once (Kafka's ProducerIdManager and ProducerIdControlManager).

    {"format": 1, "next_producer_id": 3000}

`tiering-producer-ids.json` in every log directory says which ids nobody has been given: it is written, durably, before any of a
block of 1,000 is given, and a start begins a new block. Of several files the one with the greatest id counts. A directory that is
offline may have a greater one, so that many ids are left out then. No file counts below an id that a log or a transaction has.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from local_log.errors import Corrupt, Newer, placed
from local_log.formats.filenames import PRODUCER_IDS

BLOCK: Final = 1_000
LEFT_OUT: Final = 1 << 32
"""So many ids are left out if a directory is offline: more than are ever given while it is."""
GIVEN_MAX: Final = 1 << 62
"""No id above this one was ever given: a client has made it up, and ids do not begin after it, where there would soon be none."""
_FORMAT: Final = 1


class ProducerIdFiles(Protocol):
    """Where the files are: a local tier."""

    @property
    def offline(self) -> tuple[Any, ...]:
        """The directories that are offline."""

    def read_files(self, name: str) -> dict[str, bytes]:
        """A file's content by its path, in the directories that are online and have it."""

    def write_files(self, name: str, data: bytes) -> None:
        """Replaces a file in every directory that is online, durably. Raises LogError."""


@dataclass(slots=True)
class ProducerIdManager:
    """The ids that are not given yet, of which those below `_end` may be. One thread at a time may call it."""

    files: ProducerIdFiles
    _next: int
    _end: int

    @classmethod
    def of(cls, files: ProducerIdFiles, used: Iterable[int]) -> "ProducerIdManager":
        """After those that the files and `used`, ids that somebody has, tell of. Raises Corrupt, Newer."""
        saved = [_read(path, data) for path, data in files.read_files(PRODUCER_IDS).items()]
        greatest = max((one for one in used if one <= GIVEN_MAX), default=-1)
        known = max([0, *saved, (greatest // BLOCK + 1) * BLOCK])
        known += LEFT_OUT if files.offline else 0
        return cls(files, known, known)

    def next_id(self) -> int:
        """An id that was never given. Raises LogError if that cannot be kept."""
        if self._next == self._end:
            end = self._next + BLOCK
            body = json.dumps({"format": _FORMAT, "next_producer_id": end}).encode() + b"\n"
            self.files.write_files(PRODUCER_IDS, body)
            self._end = end
        given = self._next
        self._next += 1
        return given


def _read(path: str, data: bytes) -> int:
    with placed(path):
        try:
            content = json.loads(data)
            if content["format"] > _FORMAT:
                raise Newer(
                    f"{path} has format {content['format']}, and this version reads {_FORMAT} at most; use the one that wrote it"
                )
            return int(content["next_producer_id"])
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            raise Corrupt(
                f"not the next producer id ({type(e).__name__}); copy the file from another log directory or a backup, or "
                "delete it: ids then begin after those that logs and transactions have"
            ) from e
