"""What a read will take, from its plan and before a byte of a segment is read: for who wonders whether filters leave things out.

PySpark gives a data source no way to show numbers of its own in Spark's UI, so this is asked for in Python:

    plan_report(open_store(url), parse({"archive": url, "subscribe": "orders"}), pushdown_of([EqualTo(("partition",), 3)]))
"""

from dataclasses import dataclass

from remote.clock import stopwatch
from remote.store.api import ObjectStore
from remote.store.instrumented import Instrumented, Meter
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import splits
from spark_jobs.source.pushdown import EVERYTHING, Pushdown
from spark_jobs.source.ranges import resolve


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Of `partitions` that the options and filters name, so much is read, of so much that their manifests hold.

    `bytes` are of segments' logs, as if all records of a segment were of one size. `requests` are those of planning.
    """

    partitions: int
    splits: int
    segments: int
    segments_of: int
    bytes: int
    bytes_of: int
    requests: int


def plan_report(store: ObjectStore, options: ReadOptions, pushdown: Pushdown = EVERYTHING) -> PlanReport:
    """Plans without pins and counts. Raises what `plan_splits` raises."""
    meter = Meter()
    counted = Instrumented(store, meter, stopwatch)
    ranges = resolve(counted, options, pushdown)
    found = splits(counted, ranges, options, pushdown)
    return PlanReport(
        partitions=len(ranges),
        splits=len(found),
        segments=len({s.span.entry.segment_id for s in found}),
        segments_of=sum(r.manifest.segment_count for r in ranges),
        bytes=sum(s.bytes for s in found),
        bytes_of=sum(r.manifest.log_bytes for r in ranges),
        requests=sum(c.calls for c in meter.snapshot().values()),
    )
