"""What a job will read and write, and about what it will cost: from its plan, before a byte of it is read. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from remote.read.read_ahead import WINDOW_BYTES
from remote.store.instrumented import Counted
from spark_jobs.common.prices import Prices
from spark_jobs.source.partitions import Split

_READS = {"get", "get_range", "head"}
_FREE = {"delete", "abort_upload"}
_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class Work:
    """Requests and bytes of one store. A read is a get or a head, a write a put, a copy or a listing."""

    reads: int = 0
    writes: int = 0
    read_bytes: int = 0

    @property
    def requests(self) -> int:
        """Reads and writes together, each one request."""
        return self.reads + self.writes

    def __add__(self, other: "Work") -> "Work":
        return Work(self.reads + other.reads, self.writes + other.writes, self.read_bytes + other.read_bytes)


def of_split(split: Split, *, with_aborted: bool = False) -> Work:
    """What reading a split takes: a request a window, and one for the indexes where the segment is cut.

    Bytes are taken to be spread evenly over a segment's offsets. `with_aborted` is for read_committed, which needs the
    transaction index of segments that have any.
    """
    span, entry = split.span, split.span.entry
    size = bytes_of(split)
    is_cut = span.start > entry.base_offset or span.end < entry.end_offset
    needs_indexes = is_cut or (with_aborted and not entry.txn_index_empty)
    return Work(-(-size // WINDOW_BYTES) + needs_indexes, 0, size + entry.stored_aux.size * needs_indexes)


def bytes_of(split: Split) -> int:
    """About the stored bytes that a split reads of its segment's log."""
    span, entry = split.span, split.span.entry
    offsets = max(entry.end_offset - entry.base_offset, 1)
    return -(-entry.stored_log.size * (span.end - span.start) // offsets)


def of_splits(splits: Iterable[Split], *, with_aborted: bool = False) -> Work:
    """What reading all of these splits takes."""
    return sum((of_split(split, with_aborted=with_aborted) for split in splits), Work())


def counted(snapshot: Mapping[str, Counted]) -> Work:
    """What has been asked of a store already, as a Meter counted it."""
    reads = sum(c.calls for verb, c in snapshot.items() if verb in _READS)
    writes = sum(c.calls for verb, c in snapshot.items() if verb not in _READS | _FREE)
    return Work(reads, writes, sum(c.bytes for verb, c in snapshot.items() if verb in _READS))


def cost(work: Work, prices: Prices) -> dict[str, Any]:
    """US dollars for requests and retrieval. Egress is apart, since within the region there is none."""
    requests = work.reads / 1000 * prices.reads_per_1000 + work.writes / 1000 * prices.writes_per_1000
    retrieval = work.read_bytes / _GB * prices.retrieval_per_gb
    return {
        "class": prices.name,
        "as_of": prices.as_of.isoformat(),
        "region": prices.region,
        "unverified": list(prices.unverified),
        "requests_usd": round(requests, 6),
        "retrieval_usd": round(retrieval, 6),
        "total_usd": round(requests + retrieval, 6),
        "egress_usd_from_elsewhere": round(work.read_bytes / _GB * prices.egress_per_gb, 6),
    }


def as_rows(splits: Iterable[Split]) -> list[dict[str, Any]]:
    """What the splits, in their order, have of each partition: its offsets, splits and bytes."""
    rows = []
    for (topic, partition), group in groupby(splits, key=lambda s: (s.topic, s.partition)):
        of_it = list(group)
        rows.append(
            {
                "topic": topic,
                "partition": partition,
                "start": of_it[0].span.start,
                "end": of_it[-1].span.end,
                "splits": len(of_it),
                "bytes": sum(map(bytes_of, of_it)),
            }
        )
    return rows


def dry_run(job: str, splits: Iterable[Split], reading: Work, read_prices: Prices, **more: Any) -> dict[str, Any]:
    """What `--dry-run` prints: splits, bytes, requests and cost of reading the archive, the partitions, then `more`."""
    splits = tuple(splits)
    return {
        "job": job,
        "dry_run": True,
        "splits": len(splits),
        "bytes": reading.read_bytes,
        "requests": reading.requests,
        "cost": cost(reading, read_prices),
        "partitions": as_rows(splits),
        **more,
    }
