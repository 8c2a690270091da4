"""What an agent goes by: how often and how much, what it looks at, and what it is given of the world. Values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from local_log.log_dir import LogDir
from remote.clock import Clock, Jitter
from remote.store.instrumented import Trouble
from tiering.agent.controls import Controls
from tiering.agent.schedule import Backoff
from tiering.agent.workers import Workers
from tiering.lag.unprotected import TopicRetention
from tiering.local_tier.service import TierStatus


@dataclass(frozen=True, slots=True)
class Settings:
    """The loop's own settings; each in ms but `threads`. `shutdown_ms` is how long a stop waits for what is under way."""

    threads: int
    backoff: Backoff
    look_ms: int = 30_000
    shutdown_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class Source:
    """What an agent looks at: log directories, and the archive that they are copied to.

    `wanted` says of a topic whether the agent has to do with it, `copied` whether it is archived; None where nothing is copied.
    `retention` is how long its brokers keep it.
    """

    log_dirs: tuple[LogDir, ...]
    archive_url: str
    wanted: Callable[[str], bool]
    copied: Callable[[str], bool] | None
    retention: Callable[[str], TopicRetention | None] = lambda topic: None

    def archives(self, topic: str) -> bool:
        """Whether a topic is archived by this agent."""
        return self.copied is not None and self.copied(topic)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The agent's dependencies on its environment, which a simulation replaces.

    `report` is called with messages for users about problems. `trouble` gives the problem if the store does not respond. `ready`
    is called before each turn; while it raises LogError nothing is done. `tier` is the status of log directories that we own.
    """

    workers: Workers
    controls: Controls
    clock: Clock
    chance: Jitter
    report: Callable[[str], None] = lambda message: None
    trouble: Callable[[], Trouble | None] = lambda: None
    ready: Callable[[], object] = lambda: None
    tier: Callable[[], TierStatus | None] = lambda: None
    tell: Callable[[str, Mapping[str, str | int]], None] = lambda message, fields: None
    """Is called with what went well, and its fields: a round that copied, a recovery after a failure."""
