"""`tiering scrub`: the proof that an archive is what its manifests say."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

import click

from local_log.errors import NotFound, listed
from remote import archive
from remote.object_store import ObjectStore
from remote.scrub.budget import Budget
from remote.scrub.finding import Finding
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from remote.stores import open_store
from tiering.clock import SystemClock
from tiering.console import Exit, Row, archive_option, emit, keys_option, output_option, reports_errors, say
from tiering.service import open_reading


@click.command("scrub")
@archive_option(required=True)
@click.option("--topic", "topics", multiple=True, metavar="GLOB", help="Only topics that match; may be given several times.")
@click.option("--deep", is_flag=True, help="Read segments from end to end: every batch, every index.")
@click.option("--sample", type=click.FloatRange(0, 1), metavar="F", help="With --deep: only this fraction of the segments.")
@click.option("--seed", type=int, help="With --sample: another number picks other segments.")
@keys_option()
@click.option("--requests-max", type=click.IntRange(1), metavar="N", help="Ask the store no more often; says what is left out.")
@output_option()
@reports_errors
def command(
    archive_url: str,
    topics: tuple[str, ...],
    deep: bool,
    sample: float | None,
    seed: int | None,
    keys_address: str | None,
    requests_max: int | None,
    output: str,
) -> Exit | None:
    """Check that every manifest, object and offset of an archive is there and sound. A line for each finding; nothing is changed.

    Without --deep it costs the listing and one request a manifest, and sees what is missing, of another size, out of the chain
    or nobody's. With --deep every segment is read. The exit code is 6 when there is an anomaly; gap, fresh_orphan and left_out
    are none. Without its --keys, of what is encrypted only the objects' own checksums are known, and the rest is left_out.
    """
    if sample is not None and not deep:
        raise click.UsageError("--sample picks the segments that --deep reads; give --deep, too")
    if seed is not None and sample is None:
        raise click.UsageError("--seed picks the segments of --sample; give --sample, too")
    decoded = open_reading(None, 0, None, keys_address).decoded
    backend = open_store(archive_url)
    archive.open_archive(backend)
    wanted = _wanted(backend, topics)
    store = Budget(backend, requests_max)
    settings = ScrubSettings(deep, 1.0 if sample is None else sample, seed or 0)
    anomalies = 0

    def rows() -> Iterator[Row]:
        nonlocal anomalies
        for finding in scrub(store, decoded, settings, SystemClock().now_ms(), wanted):
            anomalies += finding.is_anomaly
            yield _row(finding)

    emit(rows(), output)
    say(f"tiering: {anomalies} anomalies; {store.requests} requests")
    return Exit.corruption if anomalies else None


def _wanted(store: ObjectStore, topics: tuple[str, ...]) -> tuple[str, ...] | None:
    if not topics:
        return None
    known = archive.topics(store)
    wanted = tuple(name for name in known if any(fnmatchcase(name, glob) for glob in topics))
    if not wanted:
        raise NotFound(f"no topic {', '.join(topics)} there; there are: {listed(known)}")
    return wanted


def _row(finding: Finding) -> Row:
    return {
        "kind": str(finding.kind),
        "key": finding.key,
        "position": finding.position,
        "age_ms": finding.age_ms,
        "problem": finding.problem,
    }
