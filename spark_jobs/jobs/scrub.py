"""The deep scrub of `tiering scrub --deep`, its segments read by Spark's executors: the same lines, the same exit codes.

    python -m spark_jobs.jobs.scrub --archive s3://bucket/prefix --topic 'orders*'

The driver walks along the listing and the manifests once. Segments go to tasks in runs, so one large partition uses
every core; what comes of them stands where the command would have it.
"""

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Any, TextIO

import click

from remote import archive
from remote.clock import SystemClock, stopwatch
from remote.read.context import decoder_with
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Finding
from remote.scrub.scrub import findings_of, walk
from remote.scrub.segment_runs import ScrubbedRun, SegmentRun, requests_of, requests_per_run, segment_runs, stored_bytes
from remote.scrub.settings import ScrubSettings
from remote.scrub.steps import ScrubbedSegment, ScrubStep, SegmentToRead
from remote.signed_store import trusted
from remote.store.open import open_store
from spark_jobs.common.arguments import JobArguments, master_option, price_options
from spark_jobs.common.estimate import Work, cost
from spark_jobs.common.outcome import ending
from spark_jobs.common.prices import Prices
from spark_jobs.common.tasks import TaskLimits, run_tasks
from spark_jobs.scrub.task import Part, read_part
from tiering.command.exit_codes import Exit
from tiering.command.options import (
    archive_option,
    dry_run_option,
    keys_option,
    options_as,
    output_option,
    topic_ids_option,
    topics_option,
)
from tiering.command.quantities import size
from tiering.command.scrub_report import row_of, sampling_options, settings_of, show, verdict

SEGMENTS_MAX = 50_000
"""How many segments the driver holds at a time: the walk goes on when they are read."""

TASK_BYTES = 256 << 20
"""About what a task reads: mostly a segment or a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubArguments(JobArguments):
    """The options of this job."""

    topic_ids: dict[str, str]
    sample: float | None
    seed: int | None
    requests_max: int | None
    bytes_per_task: int
    report: TextIO | None
    output: str


@dataclass(slots=True)
class SparkScrub:
    """A scrub of the archive at `url`. After the last finding, `error` is the error that stopped tasks, and the sums are final.

    `budget` counts the driver's requests to the store; the tasks' requests are added to it.
    """

    url: str
    keys: str | None
    budget: RequestBudget
    requests_max: int | None = None
    task_bytes: int = TASK_BYTES
    master: str | None = None
    error: Exception | None = None
    segments: int = 0
    bytes: int = 0
    tasks: int = 0
    _found: "deque[ScrubbedSegment | None]" = field(default_factory=deque)

    def findings(self, steps: Iterable[ScrubStep]) -> Iterator[Finding]:
        """The findings of a walk, with those of its segments in their places. Raises Unavailable, and Spark's errors."""
        return findings_of(self._read_ahead(iter(steps)), lambda unread: self._found.popleft())

    def _read_ahead(self, steps: Iterator[ScrubStep]) -> Iterator[ScrubStep]:
        """The steps, once their segments are read: as many at a time as the driver may hold."""
        for held in _rounds(steps):
            parts = tuple(segment_runs((step for step in held if isinstance(step, SegmentToRead)), self.task_bytes))
            for scrubbed, run in zip(self._read(parts), parts, strict=True):
                self._found.extend((ScrubbedSegment(),) * len(run.entries) if scrubbed is None else scrubbed.found)
            yield from held

    def _read(self, runs: tuple[SegmentRun, ...]) -> list[ScrubbedRun | None]:
        left = None if self.requests_max is None else max(0, self.requests_max - self.budget.requests)
        shares = [None] * len(runs) if left is None else requests_per_run(runs, left)
        parts = [Part(number, *of) for number, of in enumerate(zip(runs, shares, strict=True))]
        task = partial(read_part, self.url, self.keys)
        done, error = run_tasks(
            "scrub", parts, task, lambda part: part.run.bytes, limits=TaskLimits(self.master, self.task_bytes)
        )
        self.error = self.error or error
        self.tasks += len(parts)
        self.segments += sum(len(s.entries) for s in runs)
        self.bytes += sum(s.bytes for s in runs)
        self.budget.requests += sum(one.requests for _, one in done)
        by_number = dict(done)
        return [by_number.get(part.number) for part in parts]


def _rounds(steps: Iterator[ScrubStep]) -> Iterator[list[ScrubStep]]:
    held: list[ScrubStep] = []
    segments = 0
    for step in steps:
        held.append(step)
        segments += isinstance(step, SegmentToRead)
        if segments == SEGMENTS_MAX:
            yield held
            held, segments = [], 0
    if held:
        yield held


def plan(steps: Iterable[ScrubStep], budget: RequestBudget, task_bytes: int, prices: Prices) -> dict[str, Any]:
    """What `--dry-run` prints: the walk is made, no segment is read."""
    rows = []
    tasks = 0
    unread = (step for step in steps if isinstance(step, SegmentToRead))
    for path, group in groupby(unread, key=lambda one: one.manifest.path):
        row = {"topic": path.topic, "partition": path.partition, "segments": 0, "bytes": 0, "requests": 0}
        while some := tuple(islice(group, SEGMENTS_MAX)):
            tasks += sum(1 for _ in segment_runs(some, task_bytes))
            row["segments"] += len(some)
            row["bytes"] += sum(stored_bytes(one.entry) for one in some)
            row["requests"] += sum(requests_of(one.entry) for one in some)
        rows.append(row)
    reading = Work(sum(row["requests"] for row in rows), 0, sum(row["bytes"] for row in rows))
    return {
        "job": "scrub",
        "dry_run": True,
        "splits": tasks,
        "segments": sum(row["segments"] for row in rows),
        "bytes": reading.read_bytes,
        "requests": reading.reads,
        "requests_made": budget.requests,
        "cost": cost(reading, prices),
        "partitions": rows,
    }


@click.command("scrub")
@archive_option(required=True)
@keys_option()
@topics_option()
@topic_ids_option()
@sampling_options
@click.option(
    "--bytes-per-task",
    type=size(),
    default=TASK_BYTES,
    show_default=True,
    metavar="SIZE",
    help="How many bytes a task reads.",
)
@click.option(
    "--report", type=click.File("w", encoding="utf-8", lazy=True), metavar="FILE", help="Write a JSON report to this file."
)
@price_options
@dry_run_option
@master_option
@output_option()
@options_as(ScrubArguments)
def main(arguments: ScrubArguments) -> None:
    """Check that every manifest, object, batch and offset of an archive is there and sound. A line for each finding.

    What is found and the exit code are those of `tiering scrub --deep`. With --requests-max each task has its share, so a task
    that Spark runs once more asks once more.
    """
    settings = settings_of(True, arguments.sample, arguments.seed)
    ending("scrub", lambda: _scrub(arguments, settings))


def _scrub(arguments: ScrubArguments, settings: ScrubSettings) -> None:
    started = stopwatch()
    steps, budget = _walk(arguments, settings)
    if arguments.dry_run:
        click.echo(json.dumps(plan(steps, budget, arguments.bytes_per_task, arguments.archive_prices()), indent=1))
        return
    decoder_with(arguments.keys_address)  # keys that cannot be had are reported before anything is read
    scrub = SparkScrub(
        arguments.archive_url, arguments.keys_address, budget, arguments.requests_max, arguments.bytes_per_task, arguments.master
    )
    findings: list[Finding] = []
    found = _noted(scrub.findings(steps), findings if arguments.report is not None else None)
    kinds = show(found, arguments.output)
    code = verdict("scrub", kinds, budget.requests)
    if arguments.report is not None:
        summary = {
            "job": "scrub", "archive": arguments.archive_url, "findings": [row_of(f) for f in findings], "kinds": kinds,
            "segments": scrub.segments, "bytes": scrub.bytes, "requests": budget.requests, "tasks": scrub.tasks,
            "failed": None if scrub.error is None else str(scrub.error), "seconds": round(stopwatch() - started, 3),
        }  # fmt: skip
        arguments.report.write(json.dumps(summary, indent=1) + "\n")
    if scrub.error is not None and code is not Exit.corruption:
        raise scrub.error
    if code is not None:
        sys.exit(code)


def _walk(arguments: ScrubArguments, settings: ScrubSettings) -> tuple[Iterator[ScrubStep], RequestBudget]:
    store = trusted(open_store(arguments.archive_url), arguments.keys_address, unverified_allowed=True)
    archive.open_archive(store)
    folders = archive.select_folders(store, arguments.topics, arguments.topic_ids)
    budget = RequestBudget(store, arguments.requests_max)
    return walk(budget, settings, SystemClock().now_ms(), folders), budget


def _noted(findings: Iterable[Finding], into: list[Finding] | None) -> Iterator[Finding]:
    for finding in findings:
        if into is not None:
            into.append(finding)
        yield finding


if __name__ == "__main__":
    main()
