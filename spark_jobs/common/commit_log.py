"""What a backfill has committed: a chain of small JSON objects in the target, each made with put-if-absent, so that one run wins.

    _tiering/commits/<20 digits, counting down>-v<version>.json     which offsets are covered, and the files that this run adds
    _tiering/published/<the same name>                              all files of that version are in their places

A commit has all covered offsets, also those of earlier commits, so the next run needs only the newest one, the first key listed.
It also has the staged name of each file: if a run fails between commit and publication, the next run publishes the rest.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from local_log.errors import Corrupt, Newer
from local_log.ranges import joined
from remote.manifest.numbers import whole
from remote.store.api import ObjectStore
from spark_jobs.common.once import put_once
from spark_jobs.common.target import HIDDEN, STAGING, inside

COMMITS = f"{HIDDEN}commits/"
PUBLISHED = f"{HIDDEN}published/"
FORMAT = 1
_VERSION_MAX = 10**20 - 1
_NAME = re.compile(r"[0-9]{20}-v([1-9][0-9]{0,18})\.json")

Bounds = tuple[int, int]
"""Offsets `[start, end)`."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A partition, of the topic with this id."""

    topic: str
    topic_id: str
    partition: int


@dataclass(frozen=True, slots=True)
class File:
    """A file of a commit: its name, where it was staged, and what is in it."""

    name: str
    staged: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What has to be the same in all runs into one folder, or its files would not fit together."""

    columns: tuple[str, ...]
    by: str
    read_committed: bool


@dataclass(frozen=True, slots=True)
class Commit:
    """One version. `covered` has, for each partition, disjoint ranges in order; they only grow from version to version."""

    version: int
    run_id: str
    committed_at_ms: int
    settings: Settings
    covered: Mapping[Part, tuple[Bounds, ...]]
    files: tuple[File, ...] = field(default=())

    @property
    def name(self) -> str:
        """The last part of its key."""
        return f"{_VERSION_MAX - self.version:020d}-v{self.version}.json"


def nothing(settings: Settings) -> Commit:
    """Version 0, which is never stored."""
    return Commit(0, "", 0, settings, {})


def following(head: Commit, run_id: str, now_ms: int, added: Iterable[tuple[Part, Bounds]], files: Iterable[File]) -> Commit:
    """The version after `head`, which covers `added`, too."""
    covered = {part: list(ranges) for part, ranges in head.covered.items()}
    for part, bounds in added:
        covered.setdefault(part, []).append(bounds)
    merged = {part: joined(sorted(ranges)) for part, ranges in covered.items()}
    return replace(head, version=head.version + 1, run_id=run_id, committed_at_ms=now_ms, covered=merged, files=tuple(files))


def newest(store: ObjectStore) -> Commit | None:
    """The newest version, None where nothing was committed. Raises Corrupt, Newer, Unavailable."""
    version = _newest_version(store, COMMITS)
    return load(store, version) if version else None


def load(store: ObjectStore, version: int) -> Commit:
    """A version. Raises NotFound, Corrupt, Newer, Unavailable."""
    key = f"{COMMITS}{_VERSION_MAX - version:020d}-v{version}.json"
    return decode(store.get(key), key)


def put(store: ObjectStore, commit: Commit) -> Commit:
    """Commits, and gives what stands as that version now: `commit`, or another run's that came first. Raises Unavailable."""
    key = f"{COMMITS}{commit.name}"
    return decode(put_once(store, key, encode(commit)), key)


def unpublished(store: ObjectStore, head: Commit) -> Iterator[Commit]:
    """The versions up to `head` that no mark says are published, the oldest first. Raises as `load`."""
    for version in range(_newest_version(store, PUBLISHED) + 1, head.version + 1):
        yield load(store, version)


def mark_published(store: ObjectStore, commit: Commit) -> None:
    """Says that all files of a version, and of those before it, are in their places."""
    put_once(store, f"{PUBLISHED}{commit.name}", b"{}\n")


def _newest_version(store: ObjectStore, prefix: str) -> int:
    for meta in store.list(prefix, limit=1):
        named = _NAME.fullmatch(meta.key.removeprefix(prefix))
        if named is None:
            raise Corrupt("this is no name of a version; move it elsewhere", file=meta.key)
        return int(named[1])
    return 0


def encode(commit: Commit) -> bytes:
    """The commit as indented JSON, the body of its object."""
    partitions = [{**asdict(part), "ranges": ranges} for part, ranges in sorted(commit.covered.items())]
    document = {
        "format": FORMAT,
        "version": commit.version,
        "run_id": commit.run_id,
        "committed_at_ms": commit.committed_at_ms,
        "settings": asdict(commit.settings),
        "covered": partitions,
        "files": [asdict(f) for f in commit.files],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def decode(body: bytes, key: str) -> Commit:
    """What `encode` has made. Raises Corrupt, Newer."""
    try:
        read: Any = json.loads(body)
        if whole(read["format"], "format") > FORMAT:
            raise Newer(f"{key} has format {read['format']}, and this version reads {FORMAT}; upgrade")
        covered = {part_of(p): tuple((whole(start), whole(end)) for start, end in p["ranges"]) for p in read["covered"]}
        settings = Settings(**{**read["settings"], "columns": tuple(read["settings"]["columns"])})
        files = tuple(file_of(f, "topic=", STAGING) for f in read["files"])
        version, at_ms = whole(read["version"]), whole(read["committed_at_ms"], "committed_at_ms")
        return Commit(version, str(read["run_id"]), at_ms, settings, covered, files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f"this is no commit of a backfill ({e!r}); restore it from a copy", file=key) from e


def part_of(value: Mapping[str, Any]) -> Part:
    """A partition as JSON has it. Raises KeyError, TypeError, ValueError."""
    return Part(str(value["topic"]), str(value["topic_id"]), whole(value["partition"], "partition"))


def file_of(value: Mapping[str, Any], below: str, staged_below: str) -> File:
    """A file as JSON has it, whose names lead nowhere but there: they are moved and deleted by. Raises as `part_of`."""
    name, staged = inside(value["name"], below), inside(value["staged"], staged_below)
    if not name.endswith(".parquet"):
        raise ValueError(f"{name!r} is no Parquet file")
    return File(name, staged, whole(value["rows"]), whole(value["bytes"]))
