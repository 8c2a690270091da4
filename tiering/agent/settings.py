"""What an agent does, and how often: values, and the rooms of its jobs."""

from dataclasses import dataclass

from tiering.agent.schedule import Backoff
from tiering.agent.tasks.copy import Copies
from tiering.agent.tasks.expire import Retaining
from tiering.agent.tasks.upkeep import Scrubbing, Sweeping


@dataclass(frozen=True, slots=True)
class Settings:
    """The loop's own settings; each in ms but `threads`. `shutdown_ms` is how long a stop waits for what is under way."""

    threads: int
    backoff: Backoff
    look_ms: int = 30_000
    sweep_ms: int = 86_400_000
    scrub_ms: int = 7 * 86_400_000
    shutdown_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Does:
    """What the agent does, each as the rooms of its kind have it; None for what it does not."""

    copies: Copies | None = None
    retaining: Retaining | None = None
    sweeping: Sweeping | None = None
    scrubbing: Scrubbing | None = None
