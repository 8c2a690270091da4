"""A task of the job scrub: what executors load of it."""

from dataclasses import dataclass

from remote.read.context import decoded_with
from remote.scrub.budget import Budget
from remote.scrub.segment_runs import Stretch, StretchScrub, scrub_stretch
from remote.store.open import open_store


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch, its number, and how often its task may ask the store (None: as often as it takes)."""

    number: int
    stretch: Stretch
    requests_max: int | None


def read_part(url: str, keys: str | None, part: Part) -> tuple[int, StretchScrub]:
    """The number of the part, and what is wrong with its segments. Raises Unavailable; Invalid for keys that cannot be had."""
    return part.number, scrub_stretch(Budget(open_store(url), part.requests_max), decoded_with(keys), part.stretch)
