"""What a backfill plans and commits after the versions of its target that are there. No task is run: nothing is to be written."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock
from made_manifests import entry, manifest

from remote.manifest.gaps import Divergence
from remote.read.plan import MissingRange
from spark_jobs.backfill import run as backfill_run
from spark_jobs.backfill.plan import part_of
from spark_jobs.backfill.task import BackfillSpec
from spark_jobs.common import commit_log
from spark_jobs.common.commit_log import Bounds, Commit, Part
from spark_jobs.common.layout import By
from spark_jobs.common.target import Target
from spark_jobs.errors import OptionError
from spark_jobs.source.options import parse
from spark_jobs.source.ranges import Range

LOG = manifest(entry(0, 100), entry(100, 200), entry(200, 300))
PART, OTHER = part_of(LOG), replace(part_of(LOG), topic="other")
RESOLVED_MS = 50


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(str(tmp_path / "out"))


def spec(target: Target, tmp_path: Path, *, is_lenient: bool = False) -> BackfillSpec:
    given = {"archive": str(tmp_path / "archive"), "subscribe": "topic", "failOnDataLoss": str(not is_lenient).lower()}
    return backfill_run.spec_of(parse(given), target, By.date, "snappy")


def run(made: BackfillSpec, *ranges: Range) -> dict[str, Any]:
    return backfill_run.run(made, ranges, FixedClock(), CountingIds("r"))


def committed(made: BackfillSpec, *times: tuple[int, Part, Bounds]) -> None:
    """A version for each time at which a run has covered some of a partition."""
    head = commit_log.newest(made.target.store) or commit_log.nothing(backfill_run._settings(made))
    for time_ms, part, bounds in times:
        head = commit_log.following(head, f"at {time_ms}", time_ms, [(part, bounds)], ())
        commit_log.put(made.target.store, head)


def newest(made: BackfillSpec) -> Commit:
    head = commit_log.newest(made.target.store)
    assert head is not None
    return head


def left(made: BackfillSpec, *ranges: Range) -> list[Bounds]:
    return [(r.start, r.end) for r in backfill_run.plan(made, ranges).ranges]


def test_a_loss_is_told_until_a_run_has_been_allowed_to_pass_over_it(target: Target, tmp_path: Path) -> None:
    strict, lenient = spec(target, tmp_path), spec(target, tmp_path, is_lenient=True)
    committed(strict, (1, PART, (0, 100)), (2, PART, (200, 300)))
    asked = Range(replace(LOG, log_start_offset=250), 250, 300)
    for _ in range(2):
        with pytest.raises(MissingRange, match=r"lacks offsets \[100, 200\)"):
            run(strict, asked)
    report = run(lenient, asked)
    assert (report["version"], report["file_count"], newest(lenient).covered) == (3, 0, {PART: ((0, 300),)})
    assert run(strict, asked)["version"] == run(lenient, asked)["version"] == 3


DIVERGED = replace(LOG, diverged=(Divergence(150, 100, 220, "K" * 22, RESOLVED_MS),))
"""The archive had another history of [150, 220)."""


def refused(made: BackfillSpec, ranges: Iterable[Range]) -> str:
    with pytest.raises(OptionError) as told:
        backfill_run.plan(made, ranges)
    return str(told.value)


@pytest.mark.parametrize("end", [200, 220, 250])
def test_records_of_a_history_that_was_given_up_after_they_were_written_are_told(
    target: Target, tmp_path: Path, end: int
) -> None:
    made, asked = spec(target, tmp_path), Range(DIVERGED, 0, 300)
    committed(made, (RESOLVED_MS - 1, PART, (0, end)))
    assert f"topic-0: the target has records of [150, {min(end, 220)}) from a history" in refused(made, [asked])
    committed(made, (RESOLVED_MS + 1, OTHER, (0, 9)), (RESOLVED_MS + 2, OTHER, (9, 18)))
    assert "choose an empty folder, or set failOnDataLoss=false" in refused(made, [asked])


def test_who_was_allowed_to_continue_over_another_history_is_not_told_again(target: Target, tmp_path: Path) -> None:
    made, asked = spec(target, tmp_path), Range(DIVERGED, 0, 300)
    committed(made, (1, PART, (0, 200)))
    assert left(spec(target, tmp_path, is_lenient=True), asked) == [(200, 300)]
    committed(made, (RESOLVED_MS + 1, PART, (200, 260)), (RESOLVED_MS + 2, OTHER, (0, 9)))
    assert left(made, asked) == [(260, 300)]


@pytest.mark.parametrize(
    ("time_ms", "bounds"),
    [
        (RESOLVED_MS - 1, (0, 150)),  # below the fork both histories are the same
        (RESOLVED_MS - 1, (220, 240)),
        (RESOLVED_MS + 1, (0, 200)),
    ],
)
def test_records_of_the_history_that_the_archive_has_are_no_others(
    target: Target, tmp_path: Path, time_ms: int, bounds: Bounds
) -> None:
    made = spec(target, tmp_path)
    committed(made, (time_ms, PART, bounds))
    assert left(made, Range(DIVERGED, 0, 300)) == [b for b in [(0, bounds[0]), (bounds[1], 300)] if b[0] < b[1]]


def test_each_history_that_was_given_up_is_told(target: Target, tmp_path: Path) -> None:
    made = spec(target, tmp_path)
    committed(made, (1, PART, (0, 200)), (RESOLVED_MS + 1, PART, (200, 260)))
    twice = replace(DIVERGED, diverged=(*DIVERGED.diverged, Divergence(240, 200, 280, "M" * 22, RESOLVED_MS + 10)))
    assert "has records of [240, 260) from a history" in refused(made, [Range(twice, 0, 300)])
