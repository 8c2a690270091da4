"""Computes the value of each metric from the agent's view. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from local_log.engine.manager.cleaner_status import CleanerStatus
from remote.store.instrumented import Counted
from tiering.agent.view import AgentView, PartitionView
from tiering.local_tier.service import TierStatus
from tiering.metrics import series as of
from tiering.metrics.series import Series

Samples = Mapping[tuple[str, ...], float]
"""A series' values by the values of its labels."""


def values(view: AgentView, counted: Mapping[str, Counted]) -> dict[Series, Samples]:
    """The samples of every series in `series.ALL`; empty for a series without a value yet."""
    topics = _by_topic(view.partitions)
    found: dict[Series, Samples] = {series: {} for series in of.ALL}
    found |= _of_topics(view, topics)
    found |= _of_partitions(view)
    found |= _of_agent(view)
    found |= _of_store(counted)
    if view.local_tier is not None:
        found |= of_local_tier(view.local_tier)
    return found


def _by_topic(partitions: Iterable[PartitionView]) -> dict[str, list[PartitionView]]:
    topics: dict[str, list[PartitionView]] = defaultdict(list)
    for partition in partitions:
        topics[partition.partition.topic].append(partition)
    return topics


def _of_topics(view: AgentView, topics: Mapping[str, list[PartitionView]]) -> dict[Series, Samples]:
    counts = {topic: c for topic, c in view.counts.items() if topic}
    archived = {topic: [p.archived for p in of_topic if p.archived] for topic, of_topic in topics.items()}
    copied = {topic: max(p.copied_ms for p in of_topic) for topic, of_topic in topics.items()}
    now_ms = view.now_ms
    return {
        of.COPY_BYTES: {(t,): c.copy_bytes for t, c in counts.items()},
        of.COPY_REQUESTS: {(t,): c.copy_requests for t, c in counts.items()},
        of.COPY_ERRORS: {(t,): c.copy_errors for t, c in counts.items()},
        of.REPLACED: {(t,): c.replaced_segments for t, c in counts.items()},
        of.DELETE_REQUESTS: {(t,): c.delete_requests for t, c in counts.items()},
        of.DELETE_ERRORS: {(t,): c.delete_errors for t, c in counts.items()},
        of.COPY_LAG_BYTES: {(t,): sum(p.lag.bytes for p in ps) for t, ps in topics.items()},
        of.COPY_LAG_SEGMENTS: {(t,): sum(p.lag.segments for p in ps) for t, ps in topics.items()},
        of.COPY_LAG_SECONDS: {(t,): max(p.lag.age_ms(now_ms) for p in ps) / 1000 for t, ps in topics.items()},
        of.WAITING: {(t,): sum(p.lag.waiting for p in ps) for t, ps in topics.items()},
        of.PARTITIONS: {(t,): len(ps) for t, ps in topics.items()},
        of.FAILING: {(t,): sum(p.is_failing for p in ps) for t, ps in topics.items()},
        of.COPIED_TIME: {(t,): ms / 1000 for t, ms in copied.items() if ms},
        of.DELETE_LAG_BYTES: {(t,): sum(a.deleting_bytes for a in found) for t, found in archived.items()},
        of.DELETE_LAG_SEGMENTS: {(t,): sum(a.deleting_segments for a in found) for t, found in archived.items()},
        of.METADATA_COUNT: {(t,): sum(a.segments for a in found) for t, found in archived.items()},
        of.SIZE_BYTES: {(t,): sum(a.bytes for a in found) for t, found in archived.items()},
    }


def _of_partitions(view: AgentView) -> dict[Series, Samples]:
    unprotected = {(p.partition.topic, str(p.partition.partition)): p.unprotected(view.now_ms) for p in view.partitions}
    retention = {p.partition.topic: p.retention.ms for p in view.partitions if p.retention is not None}
    return {
        of.UNPROTECTED_BYTES: {labels: u.bytes for labels, u in unprotected.items()},
        of.UNPROTECTED_RECORDS: {labels: u.records for labels, u in unprotected.items()},
        of.UNPROTECTED_SECONDS: {labels: u.age_ms(view.now_ms) / 1000 for labels, u in unprotected.items()},
        of.UNPROTECTED_DELETED: {labels: u.deleted_ms / 1000 for labels, u in unprotected.items() if u.deleted_ms is not None},
        of.LOST: {(p.partition.topic, str(p.partition.partition)): p.lost_offsets for p in (*view.gone, *view.partitions)},
        of.LOCAL_RETENTION: {(topic,): ms / 1000 for topic, ms in retention.items() if ms is not None},
    }


def _of_agent(view: AgentView) -> dict[Series, Samples]:
    seen_ms = max((p.seen_ms for p in view.partitions), default=0)
    scrub = view.scrub
    return {
        of.SUCCESS_TIME: dict(_time(seen_ms)),
        of.LOOP_TIME: dict(_time(view.looped_ms)),
        of.START_TIME: dict(_time(view.started_ms)),
        of.PAUSED: {(): float(view.is_paused)},
        of.SCRUBS: {(): float(view.scrubs)},
        of.RUNNING: {(): view.running},
        of.QUEUED: {(): view.waiting},
        of.STORE_FAILING: {(): float(view.store is not None)},
        of.STORE_FAILING_SINCE: dict(_time(view.store.at_ms if view.store else 0)),
        of.SWEEP_TIME: dict(_time(view.swept_ms)),
        of.SCRUB_TIME: dict(_time(scrub.ended_ms if scrub else 0)),
        of.SCRUB_ANOMALIES: {(): len(scrub.findings)} if scrub else {},
        of.SCRUB_FAILED: {(): scrub.failed} if scrub else {},
        of.SCRUB_UNREADABLE: {(): len(scrub.unreadable)} if scrub else {},
    }


def of_local_tier(tier: TierStatus) -> dict[Series, Samples]:
    """The samples of log directories of our own, which some process has open."""
    offsets = {(now.partition.topic, str(now.partition.partition)): now for now in tier.offsets}
    cleaner = {} if tier.cleaner is None else _of_cleaner(tier.cleaner)
    return cleaner | {
        of.OFFLINE_DIRS: {(): len(tier.offline)},
        of.LOG_START: {labels: now.log_start_offset for labels, now in offsets.items()},
        of.LOG_END: {labels: now.log_end_offset for labels, now in offsets.items()},
        of.LOCAL_LOG_START: {labels: now.local_log_start_offset for labels, now in offsets.items()},
        of.LOG_SIZE: {labels: now.size for labels, now in offsets.items()},
        of.LOG_SEGMENTS: {labels: now.segments for labels, now in offsets.items()},
        of.UNFLUSHED: {labels: now.unflushed for labels, now in offsets.items()},
        of.TIER_MISSING: {(): len(tier.missing)},
        of.TIER_PROBLEMS: {(): tier.problem_count},
        of.TIER_TICK: dict(_time(tier.ticked_ms)),
    }


def _of_cleaner(cleaner: CleanerStatus) -> dict[Series, Samples]:
    return {
        of.CLEANER_RECOPY: {(): cleaner.recopy_percent},
        of.CLEANER_TIME: {(): cleaner.max_clean_time_secs},
        of.CLEANER_BUFFER: {(): cleaner.max_buffer_utilization_percent},
        of.CLEANER_DELAY: {(): cleaner.max_compaction_delay_secs},
        of.CLEANER_DEAD: {(): cleaner.dead_threads},
        of.UNCLEANABLE: {(path,): count for path, (count, _) in cleaner.uncleanable.items()},
        of.UNCLEANABLE_BYTES: {(path,): size for path, (_, size) in cleaner.uncleanable.items()},
        of.CLEANER_DIRTY: {(): cleaner.max_dirty_percent},
        of.CLEANER_IDLE: {(): cleaner.time_since_last_run_ms},
    }


def _time(ms: int) -> Iterator[tuple[tuple[str, ...], float]]:
    if ms:
        yield (), ms / 1000


def _of_store(counted: Mapping[str, Counted]) -> dict[Series, Samples]:
    reads = [counted[verb] for verb in ("get", "get_range") if verb in counted]
    return {
        of.FETCH_BYTES: {(): sum(c.bytes for c in reads)},
        of.FETCH_REQUESTS: {(): sum(c.calls for c in reads)},
        of.FETCH_ERRORS: {(): sum(c.failures for c in reads)},
        of.STORE_REQUESTS: {(verb,): c.calls for verb, c in counted.items()},
        of.STORE_FAILURES: {(verb,): c.failures for verb, c in counted.items()},
        of.STORE_BYTES: {(verb,): c.bytes for verb, c in counted.items()},
        of.STORE_SECONDS: {(verb,): c.seconds for verb, c in counted.items()},
    }
