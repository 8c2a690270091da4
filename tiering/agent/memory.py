"""What an agent remembers when it starts again: when it last swept and scrubbed, what the scrub said, and where it can be asked.

And what it knew to be archived, by which it tells how far the archive lags while the store does not answer. One file of its own.
It may be lost: then the sweep and the scrub come sooner, and until the store has answered all counts as not archived.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from hashlib import sha256
from typing import Any

from local_log.disk import WritableDisk, make_missing_folder, replace_file
from local_log.errors import NotFound
from local_log.formats.filenames import TopicPartition
from remote.manifest.numbers import whole
from tiering.agent.view import Scrub
from tiering.lag.archived import Archived

FORMAT = 1
FINDINGS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept. `address` is where the last agent was, or is, reached by HTTP, `archived` what it knew of each partition.

    Its keys are those of `key_of`: a topic that is made again has another archive.
    """

    swept_ms: int = 0
    scrub: Scrub | None = None
    address: str = ""
    archived: Mapping[str, Archived] = field(default_factory=dict)


def key_of(partition: TopicPartition, topic_id: str | None) -> str:
    """The key of a partition in Memory.archived: its name and the id of its topic."""
    return f"{partition} {topic_id}"


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """The file `name` in `folder`, which holds a memory as JSON."""

    disk: WritableDisk
    folder: str
    name: str

    @classmethod
    def of(cls, disk: WritableDisk, folder: str, log_dirs: Sequence[str], archive: str) -> "MemoryFile":
        """That of the agent of these log directories and this archive, wherever a relative path is given from."""
        digest = sha256("\n".join((*sorted(map(disk.real_path, log_dirs)), archive)).encode()).hexdigest()
        return cls(disk, folder, f"agent-{digest[:16]}.json")

    def load(self) -> Memory:
        """What was kept; nothing where there is none, or where it cannot be understood. Raises Unreadable."""
        try:
            body = json.loads(self.disk.read(f"{self.folder}/{self.name}"))
            return _memory(body)
        except (NotFound, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return Memory()

    def save(self, memory: Memory) -> None:
        """Keeps it in place of what was kept. Raises Unreadable: the disk is full, or not ours."""
        scrub = memory.scrub.row() if memory.scrub else None
        if scrub is not None:
            scrub |= {name: scrub[name][:FINDINGS_MAX] for name in ("findings", "unreadable")}
        body = {"format": FORMAT, "swept_ms": memory.swept_ms, "scrub": scrub, "address": memory.address}
        body["archived"] = {name: [*astuple(one)] for name, one in memory.archived.items()}
        make_missing_folder(self.disk, self.folder)
        replace_file(self.disk, f"{self.folder}/{self.name}", json.dumps(body, indent=1).encode() + b"\n")


def _memory(body: dict[str, Any]) -> Memory:
    if body["format"] != FORMAT:
        raise ValueError(f"format {body['format']}")
    of = body["scrub"]
    scrub = None
    if of is not None:
        started_ms, ended_ms, topics, failed = (whole(of[name], name) for name in ("started_ms", "ended_ms", "topics", "failed"))
        findings, unreadable = (tuple(map(str, told)) for told in (of["findings"], of.get("unreadable", ())))
        scrub = Scrub(started_ms, ended_ms, topics, failed, findings, unreadable)
    archived = {str(name): _archived(one) for name, one in body.get("archived", {}).items()}
    return Memory(whole(body["swept_ms"], "swept_ms"), scrub, str(body["address"]), archived)


def _archived(of: list[Any]) -> Archived:
    *numbers, lost_since_ms, gaps = of
    start, end, segments, size, deleting_segments, deleting_bytes, lost = map(whole, numbers)
    ranges = tuple((whole(a), whole(b)) for a, b in gaps)
    since_ms = None if lost_since_ms is None else whole(lost_since_ms, "since_ms")
    return Archived(start, end, segments, size, deleting_segments, deleting_bytes, lost, since_ms, ranges)
