"""What an agent remembers when it starts again: when it last swept and scrubbed, what the scrub said, and where it can be asked.

One small file of its own. It may be lost: then the sweep and the scrub come sooner, and nobody is told of the last one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from local_log.errors import NotFound
from local_log.storage import WritableDisk, replace_file
from tiering.agent.view import Scrub

FORMAT = 1
FINDINGS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept. `address` is where the last agent was, or is, reached by HTTP."""

    swept_ms: int = 0
    scrub: Scrub | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory in a file."""

    disk: WritableDisk
    folder: str
    name: str

    @classmethod
    def of(cls, disk: WritableDisk, folder: str, log_dirs: Sequence[str], archive: str) -> "MemoryFile":
        """That of the agent of these log directories and this archive."""
        digest = sha256("\n".join((*sorted(log_dirs), archive)).encode()).hexdigest()
        return cls(disk, folder, f"agent-{digest[:16]}.json")

    def load(self) -> Memory:
        """What was kept; nothing where there is none, or where it cannot be understood. Raises Unreadable."""
        try:
            body = json.loads(self.disk.read(f"{self.folder}/{self.name}"))
            return _memory(body)
        except (NotFound, ValueError, TypeError, KeyError, AttributeError):
            return Memory()

    def save(self, memory: Memory) -> None:
        """Keeps it in place of what was kept. Raises Unreadable: the disk is full, or not ours."""
        scrub = memory.scrub.row() if memory.scrub else None
        if scrub is not None:
            scrub["findings"] = scrub["findings"][:FINDINGS_MAX]
        body = {"format": FORMAT, "swept_ms": memory.swept_ms, "scrub": scrub, "address": memory.address}
        self.disk.make_folder(self.folder)
        replace_file(self.disk, f"{self.folder}/{self.name}", json.dumps(body, indent=1).encode() + b"\n")


def _memory(body: dict[str, Any]) -> Memory:
    if body["format"] != FORMAT:
        raise ValueError(f"format {body['format']}")
    of = body["scrub"]
    scrub = None
    if of is not None:
        started_ms, ended_ms, topics, failed = (int(of[name]) for name in ("started_ms", "ended_ms", "topics", "failed"))
        scrub = Scrub(started_ms, ended_ms, topics, failed, tuple(map(str, of["findings"])))
    return Memory(int(body["swept_ms"]), scrub, str(body["address"]))
