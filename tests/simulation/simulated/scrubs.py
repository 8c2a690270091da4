"""What a deep scrub finds at the end of a schedule."""

from remote.keys import partition_of
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Finding, Kind
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from simulated.judge import Judge
from simulated.readers import decoded


def anomalies(judge: Judge) -> list[Finding]:
    """All but what was lost: `Judge.check_gaps` says whether that was deleted before it was archived.

    And but objects of a partition that was given up before its first manifest: a sweep takes them after a month.
    """
    budget = RequestBudget(judge.unwatched, None)
    findings = scrub(budget, decoded, ScrubSettings(deep=True), judge.schedule.now)
    return [f for f in findings if f.is_anomaly and f.kind is not Kind.lost and not _is_of_none(judge, f)]


def _is_of_none(judge: Judge, finding: Finding) -> bool:
    path = partition_of(finding.key)
    return finding.kind is Kind.orphan and path is not None and judge.newest(path) is None
