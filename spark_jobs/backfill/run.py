"""A backfill from plan to publication: what is missing is staged by tasks, committed by one put, then published."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from local_log.errors import Conflict
from remote.clock import Clock, Ids, stopwatch
from remote.parallel import in_order
from remote.store.api import ObjectMeta, ObjectStore
from remote.store.open import open_store
from remote.store.store_time import store_time_ms
from spark_jobs.backfill.forms import BINARY, Form
from spark_jobs.backfill.plan import (
    Covered,
    Pack,
    cut,
    digest_of,
    missing,
    packs_of,
    part_of,
    passed_over,
    refuse_other_histories,
    refuse_other_settings,
    refuse_other_topics,
    without,
)
from spark_jobs.backfill.task import BackfillSpec, stage_parts
from spark_jobs.common import commit_log
from spark_jobs.common.commit_log import Bounds, Commit, Part, Settings
from spark_jobs.common.estimate import bytes_of
from spark_jobs.common.layout import By
from spark_jobs.common.offset_ranges import OffsetRanges
from spark_jobs.common.outcome import collect_outcomes
from spark_jobs.common.parquet_files import FILE_BYTES
from spark_jobs.common.staging import Done, leftovers, reusable
from spark_jobs.common.target import HIDDEN, STAGING, Target
from spark_jobs.common.tasks import TaskLimits, run_tasks
from spark_jobs.errors import OptionError
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import splits
from spark_jobs.source.ranges import Range

ROUNDS_MAX = 10
"""How often a run plans again after another run has committed before it."""
THREADS = 16
"""For requests of the driver; an object store serves many at a time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The ranges that a run has to write after the commit `head`, and what it covers without writing (see `passed_over`)."""

    head: Commit
    ranges: tuple[Range, ...]
    passed: tuple[tuple[Part, Bounds], ...]


def spec_of(  # seven parameters: the last three have defaults, which programs mostly leave
    options: ReadOptions,
    target: Target,
    by: By,
    compression: str,
    *,
    key: Form = BINARY,
    value: Form = BINARY,
    file_bytes: int = FILE_BYTES,
) -> BackfillSpec:
    """What all tasks have in common."""
    spec = BackfillSpec(options, target, by, compression, "", key, value, file_bytes)
    return replace(spec, digest=digest_of(_settings(spec), compression))


def plan(spec: BackfillSpec, ranges: Iterable[Range]) -> Plan:
    """What of the ranges the target does not have.

    Raises OptionError where the target's files would not fit to this run's, what `missing` raises, BadAddress where the target
    cannot be committed to.
    """
    asked, store = tuple(ranges), spec.target.store
    head = commit_log.newest(store)
    if head is None and (foreign := _files_of(spec.target, asked)):
        head = commit_log.newest(store)  # another run may have published them just now
        if head is None:
            raise OptionError(
                f"{spec.target.url} holds {len(foreign)} files that no backfill has committed, {foreign[0]} first; the "
                "same offsets could be there twice: choose an empty folder"
            )
    head = head or commit_log.nothing(_settings(spec))
    refuse_other_settings(head, _settings(spec))
    refuse_other_topics(head.covered, asked)
    if spec.options.fail_on_data_loss:
        refuse_other_histories(asked, head.covered, partial(_covered_at, store, head))
    todo = tuple(missing(asked, head.covered, fail_on_data_loss=spec.options.fail_on_data_loss))
    return Plan(head, todo, tuple(passed_over(asked, head.covered)))


def packs(spec: BackfillSpec, ranges: Iterable[Range]) -> tuple[Pack, ...]:
    """What tasks write of the ranges. Raises what `splits` raises."""
    return tuple(packs_of(splits(open_store(spec.options.archive), ranges, spec.options), spec.options))


def run(spec: BackfillSpec, ranges: Iterable[Range], clock: Clock, ids: Ids, master: str | None = None) -> dict[str, Any]:
    """Writes what of the ranges the target does not have, and gives the report.

    A split that fails keeps no other from being committed; then its error is raised. Raises also what `plan` and `packs` raise,
    Conflict, and Spark's errors: then what was staged is left to the next run.
    """
    started_s, asked, run_id = stopwatch(), tuple(ranges), ids.new_id()
    store = spec.target.store
    for _ in range(ROUNDS_MAX):
        todo = plan(spec, asked)
        publish_all(spec.target, store, todo.head)
        done, found, error = _staged(spec, store, todo, ids, master)
        if not done and error is not None:
            raise error
        if not done and not todo.passed:
            sweep(store, todo.head, ids)
            return _report(spec, todo.head, (), 0, stopwatch() - started_s)
        files = sorted((f for d in done for f in d.files), key=lambda f: f.name)
        added = [*todo.passed, *((d.part, (d.start, d.end)) for d in done)]
        commit = commit_log.following(todo.head, run_id, clock.now_ms(), added, files)
        if commit_log.put(store, commit).run_id != run_id:
            continue  # another run has come first; what it did not commit is staged already
        publish_all(spec.target, store, commit)
        sweep(store, commit, ids)
        if error is not None:
            raise error
        return _report(spec, commit, done, found, stopwatch() - started_s)
    raise Conflict(f"{spec.target.url}: {ROUNDS_MAX} other runs have committed in the meantime; run again when they have ended")


def publish_all(target: Target, store: ObjectStore, head: Commit) -> None:
    """Has the files of every version up to `head` appear that are not in their places yet. Raises NotFound, Unavailable."""
    for commit in commit_log.unpublished(store, head):
        with in_order(lambda f: target.publish(f.staged, f.name), commit.files, THREADS) as published:
            for _ in published:
                pass
        commit_log.mark_published(store, commit)


def sweep(store: ObjectStore, head: Commit, ids: Ids) -> None:
    """Deletes staged files that are not needed after `head`, whose files must be published. Raises Unavailable."""
    listing = tuple(store.list(STAGING))
    with in_order(store.delete, leftovers(listing, head.covered, _now_ms(store, listing, ids)), THREADS) as deleted:
        for _ in deleted:
            pass


def _staged(
    spec: BackfillSpec, store: ObjectStore, todo: Plan, ids: Ids, master: str | None
) -> tuple[Sequence[Done], int, Exception | None]:
    """Everything that is staged, how much of it was found so, and the worst error of what is not."""
    wanted: dict[Part, tuple[Bounds, ...]] = {}
    for r in todo.ranges:
        wanted[part_of(r.manifest)] = (*wanted.get(part_of(r.manifest), ()), (r.start, r.end))
    listing = tuple(store.list(f"{STAGING}{spec.digest}/")) if wanted else ()
    found = tuple(reusable(store, wanted, listing, _now_ms(store, listing, ids)))
    by_part: dict[Part, list[Bounds]] = {}
    for done in found:
        by_part.setdefault(done.part, []).append((done.start, done.end))

    outcomes, error = run_tasks(
        "backfill",
        packs(spec, without(todo.ranges, by_part)),
        lambda pack: stage_parts(spec, pack),
        lambda pack: sum(map(bytes_of, pack)),
        limits=TaskLimits(master, spec.options.bytes_per_split, spec.options.min_partitions),
        cut=lambda pack, pieces: cut(pack, pieces, spec.options.bytes_per_split),
    )
    fresh, failure = collect_outcomes(chain.from_iterable(outcomes))
    return (*found, *fresh), len(found), failure or error


def _now_ms(store: ObjectStore, listing: Sequence[ObjectMeta], ids: Ids) -> int:
    """The time by the store's clock, 0 where there is nothing that could be old."""
    return store_time_ms(store, f"{HIDDEN}time-{ids.new_id()}") if any(m.modified_ms is not None for m in listing) else 0


def _covered_at(store: ObjectStore, head: Commit, time_ms: int) -> Covered:
    """What the newest version up to a time had covered. Looks at few of the versions: their times go up. Raises as `load`."""
    if head.committed_at_ms <= time_ms:
        return head.covered
    versions = range(1, head.version)
    count = bisect_right(versions, time_ms, key=lambda version: commit_log.load(store, version).committed_at_ms)
    return commit_log.load(store, count).covered if count else {}


def _settings(spec: BackfillSpec) -> Settings:
    columns = tuple(spec.forms[name].named(name) if name in spec.forms else name for name in spec.columns)
    return Settings(columns, str(spec.by), spec.options.read_committed)


def _files_of(target: Target, ranges: Iterable[Range]) -> list[str]:
    """The files in the target that hold records of these topics, also of other writers."""
    topics = {f"topic={r.manifest.topic}" for r in ranges}
    return sorted(n for n in target.names(".parquet") if n.partition("/")[0] in topics)


def _report(spec: BackfillSpec, head: Commit, done: Sequence[Done], found: int, seconds: float) -> dict[str, Any]:
    files = head.files if done else ()
    added: OffsetRanges = {}
    for d in sorted(done, key=lambda d: (d.part, d.start)):
        start, _ = added.setdefault(d.part.topic, {}).get(d.part.partition, (d.start, 0))
        added[d.part.topic][d.part.partition] = start, d.end
    return {
        "job": "backfill",
        "target": spec.target.url,
        "version": head.version,
        "splits": len(done),
        "splits_found_staged": found,
        "offsets": added,
        "files": [{k: v for k, v in asdict(f).items() if k != "staged"} for f in files],
        "file_count": len(files),
        "rows": sum(f.rows for f in files),
        "bytes": sum(f.bytes for f in files),
        "unparsed_keys": sum(d.unparsed_keys for d in done),
        "unparsed_values": sum(d.unparsed_values for d in done),
        "read_requests": sum(d.requests for d in done),
        "read_bytes": sum(d.read_bytes for d in done),
        "seconds": round(seconds, 3),
    }
