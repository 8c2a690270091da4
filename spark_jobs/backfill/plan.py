"""Which offsets a backfill still has to write: what is asked for without what its target has. Pure."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise

from local_log.errors import OffsetOutOfRange
from local_log.ranges import clipped, uncovered
from remote.manifest.gaps import emptied_ranges
from remote.manifest.model import Manifest
from remote.read.plan import MissingRange
from spark_jobs.common.commit_log import Bounds, Commit, Part, Settings
from spark_jobs.errors import OptionError
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split
from spark_jobs.source.ranges import Range
from spark_jobs.work_division import PackLimits, pack_neighbours

Covered = Mapping[Part, tuple[Bounds, ...]]
"""What a commit has of each partition: disjoint ranges in order."""

Pack = tuple[Split, ...]
"""Splits of one partition, each beginning where the one before ends: what a task writes together."""

RETAINED = "retention has deleted them before this backfill wrote them; to continue without them, set failOnDataLoss=false once"


def part_of(manifest: Manifest) -> Part:
    """The partition that a manifest is of."""
    return Part(manifest.topic, manifest.topic_id, manifest.partition)


def bounds_of(pack: Pack) -> tuple[Part, Bounds]:
    """The partition and the offsets of a pack."""
    return part_of(pack[0].manifest), (pack[0].span.start, pack[-1].span.end)


def packs_of(splits: Sequence[Split], options: ReadOptions) -> Iterator[Pack]:
    """The splits in their order, as packs of `bytesPerSplit`. Offsets between two splits, which are missing, are in no pack: once
    they are archived they are still to be written, unless compaction had emptied them."""
    limits = PackLimits(options.bytes_per_split, options.max_records_per_partition, options.min_partitions)
    for pack in pack_neighbours(splits, limits):
        ends = [i for i in range(1, len(pack)) if pack[i - 1].span.end != pack[i].span.start]
        yield from (pack[start:end] for start, end in pairwise([0, *ends, len(pack)]))


def cut(pack: Pack, pieces: int, file_bytes: int) -> tuple[Pack, ...]:
    """A pack in so many pieces of about one size, or in fewer where they would be less than a quarter of a file."""
    total = max(sum(split.bytes for split in pack), 1)
    pieces = min(pieces, -(-4 * total // file_bytes))
    parts = [part for split in pack for part in split.cut(-(-split.bytes * pieces // total))]
    found: list[list[Split]] = [[] for _ in range(pieces)]
    before = 0
    for part in parts:
        found[min(before * pieces // total, pieces - 1)].append(part)
        before += part.bytes
    return tuple(tuple(piece) for piece in found if piece)


def digest_of(settings: Settings, compression: str) -> str:
    """What keeps files of other settings apart in the staging area; 16 hexadecimal digits."""
    text = json.dumps([asdict(settings), compression], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def refuse_other_settings(head: Commit, settings: Settings) -> None:
    """Raises OptionError where the target's files were written with other settings."""
    for name, was in asdict(head.settings).items():
        now = asdict(settings)[name]
        if now != was:
            raise OptionError(
                f"the target was written with {name} {_shown(was)}, not {_shown(now)}; choose an empty folder, or the options of "
                "before"
            )


def refuse_other_topics(covered: Iterable[Part], ranges: Iterable[Range]) -> None:
    """Raises OptionError where the target has a topic of the same name that was another one."""
    ids = {part.topic: part.topic_id for part in covered}
    for r in ranges:
        if ids.get(r.manifest.topic, r.manifest.topic_id) != r.manifest.topic_id:
            raise OptionError(
                f"topic {r.manifest.topic} was deleted and created again: the target has records of the one with the id "
                f"{ids[r.manifest.topic]}, the archive of {r.manifest.topic_id}; choose an empty folder"
            )


def refuse_other_histories(ranges: Iterable[Range], covered: Covered, covered_at: Callable[[int], Covered]) -> None:
    """Raises OptionError where the target has offsets that have other records in the archive since a divergence was resolved.

    `covered_at` gives what was covered at a time. Who has written more of the partition since then was allowed to.
    """
    for r in ranges:
        part = part_of(r.manifest)
        has = covered.get(part, ())
        for d in r.manifest.diverged:
            others = clipped(has, d.fork_offset, d.end)
            if others and covered_at(d.resolved_at_ms).get(part) == has:
                start, end = others[0][0], others[-1][1]
                raise OptionError(
                    f"{r.name}: the target has records of [{start}, {end}) from a history that the archive has given up for "
                    f"another one; choose an empty folder, or set failOnDataLoss=false to keep them and continue from {end}"
                )


def missing(ranges: Iterable[Range], covered: Covered, *, fail_on_data_loss: bool) -> Iterator[Range]:
    """The parts of the ranges that are not covered.

    Raises OffsetOutOfRange if the archive does not have them. Raises MissingRange, unless data loss is allowed, if retention has
    deleted offsets behind the first covered one that are not covered: else the target would have a gap without a notice.
    """
    for r in ranges:
        has = covered.get(part_of(r.manifest), ())
        first, name = r.manifest.log_start_offset, r.name
        lost = _lost(r, has)
        if lost and fail_on_data_loss:
            raise MissingRange(name, *lost[0], RETAINED)
        todo = uncovered(has, r.start, r.end)
        # Covered offsets may have been deleted from the archive, but an empty range must be inside of it too.
        for offset in (r.start,) if r.start >= r.end else (bound for bounds in todo for bound in bounds):
            if not first <= offset <= r.manifest.end_offset:
                raise OffsetOutOfRange(name, offset, first, r.manifest.end_offset)
        yield from (Range(r.manifest, start, end) for start, end in todo)


def passed_over(ranges: Iterable[Range], covered: Covered) -> Iterator[tuple[Part, Bounds]]:
    """What a commit has to cover besides what is written: else a later run would take it for lost.

    Compaction has left nothing there, or retention has deleted it and the run was allowed to continue.
    """
    for r in ranges:
        part = part_of(r.manifest)
        has = covered.get(part, ())
        for start, end in (*_lost(r, has), *clipped(emptied_ranges(r.manifest.gaps), r.start, r.end)):
            yield from ((part, left) for left in uncovered(has, start, end))


def _lost(r: Range, has: Sequence[Bounds]) -> Sequence[Bounds]:
    """What retention has deleted behind the first offset of `has`, and `has` lacks; for a range from the log's start on."""
    first = r.manifest.log_start_offset
    return uncovered(has, has[0][0], first) if has and r.start == first else ()


def without(ranges: Iterable[Range], staged: Mapping[Part, Sequence[Bounds]]) -> Iterator[Range]:
    """The ranges without what is staged of them, whose bounds are sorted."""
    for r in ranges:
        found = staged.get(part_of(r.manifest), ())
        yield from (Range(r.manifest, *left) for left in uncovered(found, r.start, r.end))


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
