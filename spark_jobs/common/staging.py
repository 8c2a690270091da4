"""What tasks leave for the commit: staged files, and a mark that says which of them are a split's. Loaded by executors.

    _tiering/staging/<settings>/<topic>/<topic id>/<partition>-<start>-<end>.done.json           put if absent: one attempt wins
    _tiering/staging/<settings>/<topic>/<topic id>/<partition>-<start>-<end>.<attempt>-<number>  a file that an attempt wrote

An attempt writes under names of its own, so a retry, a speculative duplicate or another run overwrites nothing. The first mark
stays; who comes second drops its own files. A mark outlives its run: after a driver died, the next run finds it and need not
do the split again.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from local_log.errors import Corrupt
from remote.manifest.numbers import whole
from remote.store.api import ObjectMeta, ObjectStore
from spark_jobs.common.commit_log import Bounds, File, Part, file_of, part_of
from spark_jobs.common.target import STAGING

_MARK = ".done.json"
_NAME = re.compile(rf"{STAGING}[0-9a-f]+/([^/]+)/([^/]+)/([0-9]+)-([0-9]+)-([0-9]+)\..+")

REUSE_MS = 3 * 24 * 3_600_000
KEEP_MS = 7 * 24 * 3_600_000
"""What died is done again after three days and swept after seven: a run of up to four days keeps what it has taken over."""


@dataclass(frozen=True, slots=True)
class Done:
    """Offsets whose files are staged, by the attempt with this id. It read `read_bytes` by `requests` of the archive.

    Of the keys and values so many could not be read in the form that was asked for.
    """

    attempt: str
    part: Part
    start: int
    end: int
    files: tuple[File, ...]
    requests: int
    read_bytes: int
    unparsed_keys: int = 0
    unparsed_values: int = 0


def stem_of(settings: str, part: Part, bounds: Bounds) -> str:
    """What the names of everything that the attempts at a split leave start with."""
    return f"{STAGING}{settings}{_mark_name(part, bounds).removesuffix(_MARK)}"


def _mark_name(part: Part, bounds: Bounds) -> str:
    return f"/{part.topic}/{part.topic_id}/{part.partition}-{bounds[0]}-{bounds[1]}{_MARK}"


def mark_of(stem: str) -> str:
    """The key of a split's mark."""
    return f"{stem}{_MARK}"


def encode(done: Done) -> bytes:
    """The mark as indented JSON, the body of its object."""
    return json.dumps(asdict(done), indent=1).encode() + b"\n"


def decode(body: bytes, key: str) -> Done:
    """What `encode` has made, of the split that the key names. Raises Corrupt."""
    try:
        read: Any = json.loads(body)
        part, start, end = part_of(read["part"]), whole(read["start"]), whole(read["end"])
        _check_split(key, part, (start, end))
        files = tuple(file_of(f, f"topic={part.topic}/", key.removesuffix(_MARK)) for f in read["files"])
        unparsed = whole(read.get("unparsed_keys", 0)), whole(read.get("unparsed_values", 0))  # an older mark has none
        asked = whole(read["requests"]), whole(read["read_bytes"])
        return Done(str(read["attempt"]), part, start, end, files, *asked, *unparsed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f"this is no mark of a staged split ({e!r}); delete it", file=key) from e


def _check_split(key: str, part: Part, bounds: Bounds) -> None:
    if not key.endswith(_mark_name(part, bounds)):
        raise ValueError(f"it is of {part} and {bounds}")


def reusable(
    store: ObjectStore, wanted: Mapping[Part, tuple[Bounds, ...]], listing: Iterable[ObjectMeta], now_ms: int
) -> Iterator[Done]:
    """What is staged of the wanted ranges, each offset once: marks not older than REUSE_MS whose files are all there.

    Other marks in these ranges are deleted. Where the ranges of two overlap, the one that begins first counts, or else the longer
    one: a run of other options may have divided the offsets in another way.
    """
    metas: dict[str, ObjectMeta] = {meta.key: meta for meta in listing}
    ends: dict[Part, int] = {}
    for part, start, minus_end, meta in sorted(_marks(metas.values()), key=lambda mark: mark[:3]):
        end = -minus_end
        is_wanted = any(first <= start and end <= last for first, last in wanted.get(part, ()))
        if not is_wanted or start < ends.get(part, 0):
            continue
        done = decode(store.get(meta.key), meta.key)
        is_young = meta.modified_ms is not None and now_ms - meta.modified_ms <= REUSE_MS
        if is_young and all(f.staged in metas and metas[f.staged].size == f.bytes for f in done.files):
            ends[part] = end
            yield done
        else:
            store.delete(meta.key)


def _marks(listing: Iterable[ObjectMeta]) -> Iterator[tuple[Part, int, int, ObjectMeta]]:
    """The marks of a listing, with the bounds that their names have; the end is negative: the longer one is sorted first."""
    for meta in listing:
        named = _NAME.fullmatch(meta.key)
        if named is not None and meta.key.endswith(_MARK):
            yield Part(named[1], named[2], int(named[3])), int(named[4]), -int(named[5]), meta


def leftovers(listing: Iterable[ObjectMeta], covered: Mapping[Part, Iterable[Bounds]], now_ms: int) -> tuple[str, ...]:
    """The staged objects that are not needed: those of covered offsets, and those older than KEEP_MS. Marks come first."""
    found = [meta.key for meta in listing if _is_leftover(meta, covered, now_ms)]
    return tuple(sorted(found, key=lambda key: not key.endswith(_MARK)))


def _is_leftover(meta: ObjectMeta, covered: Mapping[Part, Iterable[Bounds]], now_ms: int) -> bool:
    named = _NAME.fullmatch(meta.key)
    if named is None:
        return False
    part, start, end = Part(named[1], named[2], int(named[3])), int(named[4]), int(named[5])
    if any(first <= start and end <= last for first, last in covered.get(part, ())):
        return True
    return meta.modified_ms is not None and now_ms - meta.modified_ms > KEEP_MS
