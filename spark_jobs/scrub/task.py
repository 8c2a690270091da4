"""A task of the job scrub. Loaded by executors."""

from dataclasses import dataclass

from remote.scrub.budget import RequestBudget
from remote.scrub.segment_runs import ScrubbedRun, SegmentRun, scrub_run
from remote.store.open import open_store
from spark_jobs.read_context import read_context


@dataclass(frozen=True, slots=True)
class Part:
    """A run of segments, its number, and the maximum of requests that its task may make (None: no limit)."""

    number: int
    run: SegmentRun
    requests_max: int | None


def read_part(url: str, keys: str | None, part: Part) -> tuple[int, ScrubbedRun]:
    """The number of the part, and the findings in its segments. Raises Unavailable; Invalid for keys that cannot be loaded."""
    return part.number, scrub_run(RequestBudget(open_store(url), part.requests_max), read_context(url, keys).decoded, part.run)
