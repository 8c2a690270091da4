"""A task of the job scrub: what executors load of it."""

from dataclasses import dataclass

from remote.scrub.budget import RequestBudget
from remote.scrub.segment_runs import ScrubbedRun, SegmentRun, scrub_run
from remote.store.open import open_store
from spark_jobs.read_context import read_context


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch, its number, and how often its task may ask the store (None: as often as it takes)."""

    number: int
    run: SegmentRun
    requests_max: int | None


def read_part(url: str, keys: str | None, part: Part) -> tuple[int, ScrubbedRun]:
    """The number of the part, and what is wrong with its segments. Raises Unavailable; Invalid for keys that cannot be had."""
    return part.number, scrub_run(RequestBudget(open_store(url), part.requests_max), read_context(url, keys).decoded, part.run)
