"""A backfill from plan to publication: what is missing is staged by tasks, committed by one put, then published."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from local_log.errors import Conflict
from remote.clock import Clock, Ids, stopwatch
from remote.parallel import in_order
from remote.store.api import ObjectMeta, ObjectStore
from remote.store.open import open_store
from remote.store.store_time import store_time_ms
from spark_jobs.backfill.plan import bounds_of, digest_of, missing, refuse_other_settings, refuse_other_topics
from spark_jobs.backfill.task import BackfillSpec, stage
from spark_jobs.common import commit_log
from spark_jobs.common.commit_log import Commit, Settings
from spark_jobs.common.estimate import bytes_of
from spark_jobs.common.layout import By
from spark_jobs.common.offset_ranges import OffsetRanges
from spark_jobs.common.staging import Done, leftovers, reusable, stem_of
from spark_jobs.common.target import HIDDEN, STAGING, Target
from spark_jobs.common.tasks import TaskLimits, run_tasks
from spark_jobs.errors import OptionError
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split, splits
from spark_jobs.source.ranges import Range

ROUNDS_MAX = 10
"""How often a run plans again after another run has committed before it."""
THREADS = 16
"""For requests of the driver; an object store serves many at a time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do after the commit `head`: ranges, and the splits of them."""

    head: Commit
    ranges: tuple[Range, ...]
    splits: tuple[Split, ...]


def spec_of(options: ReadOptions, target: Target, by: By, compression: str) -> BackfillSpec:
    """What all tasks have in common."""
    spec = BackfillSpec(options, target, by, compression, "")
    return BackfillSpec(options, target, by, compression, digest_of(_settings(spec), compression))


def plan(spec: BackfillSpec, ranges: Iterable[Range]) -> Plan:
    """What of the ranges the target does not have.

    Raises OptionError where the target's files would not fit to this run's, what `missing` and `splits` raise, BadAddress where
    the target cannot be committed to.
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
    todo = tuple(missing(asked, head.covered, fail_on_data_loss=spec.options.fail_on_data_loss))
    return Plan(head, todo, splits(open_store(spec.options.archive), todo, spec.options))


def run(spec: BackfillSpec, ranges: Iterable[Range], clock: Clock, ids: Ids, master: str | None = None) -> dict[str, Any]:
    """Writes what of the ranges the target does not have, and gives the report.

    A split that fails keeps no other from being committed; then its error is raised. Raises also what `plan` raises, Conflict,
    and Spark's errors: then what was staged is left to the next run.
    """
    started_s, asked, run_id = stopwatch(), tuple(ranges), ids.new_id()
    store = spec.target.store
    for _ in range(ROUNDS_MAX):
        todo = plan(spec, asked)
        publish_all(spec.target, store, todo.head)
        done, found, error = _staged(spec, store, todo, ids, master)
        if not done:
            if error is not None:
                raise error
            sweep(store, todo.head, ids)
            return _report(spec, todo.head, (), 0, stopwatch() - started_s)
        files = sorted((f for d in done for f in d.files), key=lambda f: f.name)
        added = [(d.part, (d.start, d.end)) for d in done]
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
    """All splits that are staged, how many of them were found so, and the worst error of those that are not."""
    by_stem = {stem_of(spec.digest, *bounds_of(split)): split for split in todo.splits}
    listing = tuple(store.list(f"{STAGING}{spec.digest}/")) if by_stem else ()
    found = tuple(reusable(store, by_stem, listing, _now_ms(store, listing, ids)))
    for done in found:
        del by_stem[stem_of(spec.digest, done.part, (done.start, done.end))]

    def task(split: Split) -> Done:
        return stage(spec, split)

    fresh, error = run_tasks(
        "backfill",
        list(by_stem.values()),
        task,
        bytes_of,
        limits=TaskLimits(master, spec.options.bytes_per_split, spec.options.min_partitions),
        cut=Split.cut,
    )
    return (*found, *fresh), len(found), error


def _now_ms(store: ObjectStore, listing: Sequence[ObjectMeta], ids: Ids) -> int:
    """The time by the store's clock, 0 where there is nothing that could be old."""
    return store_time_ms(store, f"{HIDDEN}time-{ids.new_id()}") if any(m.modified_ms is not None for m in listing) else 0


def _settings(spec: BackfillSpec) -> Settings:
    return Settings(spec.columns, str(spec.by), spec.options.read_committed)


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
        "rows": sum(f.rows for f in files),
        "bytes": sum(f.bytes for f in files),
        "read_requests": sum(d.requests for d in done),
        "read_bytes": sum(d.read_bytes for d in done),
        "seconds": round(seconds, 3),
    }
