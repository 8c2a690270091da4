"""What `tiering scrub` and the Spark job `scrub` share: the options of a sample, a line for each finding, the exit code."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from tiering.command.exit_codes import Exit
from tiering.command.options import Number
from tiering.command.output import Row, counted, emit, say

if TYPE_CHECKING:
    from remote.scrub.finding import Finding, Kind
    from remote.scrub.settings import ScrubSettings

P = ParamSpec("P")


def sampling_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """The options that bound what a deep scrub reads, the same here and for Spark's."""
    sample = click.option("--sample", type=click.FloatRange(0, 1), metavar="F", help="Read only this fraction of the segments.")
    seed = click.option("--seed", type=int, metavar="N", help="With --sample: a different number selects different segments.")
    text = "Limit of store requests; findings say what was left out."
    return sample(seed(click.option("--requests-max", type=Number(1), metavar="N", help=text)(command)))


def settings_of(deep: bool, sample: float | None, seed: int | None) -> "ScrubSettings":
    """What the options ask for. Raises UsageError where they make no sense."""
    from remote.scrub.settings import ScrubSettings

    if sample is not None and not deep:
        raise click.UsageError("--sample picks the segments that --deep reads; give --deep, too")
    if seed is not None and sample is None:
        raise click.UsageError("--seed picks the segments of --sample; give --sample, too")
    return ScrubSettings(deep, 1.0 if sample is None else sample, seed or 0)


def show(findings: "Iterable[Finding]", output: str) -> "Mapping[Kind, int]":
    """Prints findings as they come, a line each; gives how many there are of each kind."""
    kinds: Counter[Kind] = Counter()

    def rows() -> Iterator[Row]:
        for finding in findings:
            kinds[finding.kind] += 1
            yield row_of(finding)

    emit(rows(), output)
    return kinds


def verdict(job: str, kinds: "Mapping[Kind, int]", requests: int) -> Exit | None:
    """Says how many findings there are, and gives the exit code that goes with them."""
    from remote.scrub.finding import NOTES, Kind

    anomalies, unreadable = sum(n for kind, n in kinds.items() if kind not in NOTES), kinds.get(Kind.unreadable, 0)
    not_read = f"{counted(unreadable, 'segment')} unreadable; " if unreadable else ""
    say(f"{job}: {counted(anomalies, 'anomaly', 'anomalies')}; {not_read}{counted(requests, 'request')}")
    if anomalies:
        return Exit.corruption
    return Exit.partly if unreadable else None


def row_of(finding: "Finding") -> Row:
    """A finding as it is printed."""
    return {
        "kind": str(finding.kind),
        "key": finding.key,
        "position": finding.position,
        "age_ms": finding.age_ms,
        "problem": finding.problem,
    }
