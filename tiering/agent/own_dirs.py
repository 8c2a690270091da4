"""Log directories of our own while an endpoint serves them: recovered, ticked, archived if there is an archive, and closed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

from remote.clock import Clock, stopwatch
from tiering.agent.own_tier import own_tier
from tiering.config.config import Config
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.opening import make_folders
from tiering.local_tier.service import TierService
from tiering.local_tier.topics import TIERED
from tiering.machine import CLOCK

if TYPE_CHECKING:  # the agent is loaded only if there is an archive
    from tiering.agent.wiring import Built

PROGRESS_MS = 5_000
"""How often it is said how far a recovery is."""
LOOK_S = 0.25
"""How often it is looked at the end whether the store responds to those that still copy."""
PATIENCE_S = 3.0
"""The logs are served after so long, although the archive's store has not answered: its first answer may need a connection."""


@dataclass(slots=True)
class OwnDirs:
    """The service of the directories, which runs, and the agent that archives them, None without an archive."""

    service: TierService
    agent: "Built | None" = None
    failures: list[BaseException] = field(default_factory=list)
    """Why the agent ended by itself."""
    _threads: list[Thread] = field(default_factory=list)

    @property
    def tier(self) -> LocalTier:
        """The logs."""
        return self.service.tier

    @property
    def is_hung(self) -> bool:
        """After the end, whether a copy hears nothing: the process would wait for it."""
        return self.agent is not None and self.agent.agent.hung > 0

    @property
    def failure(self) -> BaseException | None:
        """Why the directories cannot be served any longer."""
        return self.service.failure or next(iter(self.failures), None)

    def run_in_background(self, on_failure: Callable[[], None]) -> None:
        """Runs what is due on the logs, and archives them, until the end. `on_failure` is called if that cannot go on."""
        self.service.run_in_background(on_failure)
        if self.agent is not None:
            thread = Thread(target=partial(self._archive, self.agent, on_failure), name="agent", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _archive(self, agent: "Built", on_failure: Callable[[], None]) -> None:
        try:
            agent.agent.run()
        except BaseException as e:  # else the thread would end, and nothing more would be archived
            self.failures.append(e)
            on_failure()

    def _stop(self) -> None:
        if self.agent is not None:
            self.agent.controls.stop()
        for thread in self._threads:
            while thread.is_alive():
                if self.agent is not None and self.agent.meter.trouble(stopwatch()) is not None:
                    self.agent.controls.abort()  # no copy would come to its end
                thread.join(LOOK_S)
        self.service.stop()


@contextmanager
def own_dirs(config: Config, environment: Mapping[str, str], say: Callable[[str], object]) -> Iterator[OwnDirs]:
    """Opens the directories of a configuration with own.log.dirs, and closes them after the block, however that ends.

    `say` takes messages for whoever runs it. Raises Invalid if a broker or another process has a directory, LogError.
    """

    def report(message: str) -> None:
        say(message)

    if config.settings.archive_url is None:
        make_folders(config.settings.log_dirs)
        service = own_tier(config, report, partial(_without_archive, config))
        assert service is not None
        with _running(OwnDirs(service), say) as dirs:
            yield dirs
        return
    from tiering.agent.wiring import alone, build

    with alone(config):
        built = build(config, environment, report)
        assert built.tier is not None
        with _running(OwnDirs(built.tier, built), say) as dirs:
            if built.open(PATIENCE_S):
                say(f"created a new archive, {config.settings.archive_url}")
            yield dirs


def _without_archive(config: Config, topic: str) -> Mapping[str, str]:
    """The settings of a topic's logs that nobody archives."""
    return {name: text for name, text in config.log_settings(topic).items() if name != TIERED}


@contextmanager
def _running(dirs: OwnDirs, say: Callable[[str], object]) -> Iterator[OwnDirs]:
    dirs.service.start(Progress(dirs.service, say, CLOCK))
    try:
        yield dirs
    finally:
        dirs._stop()


@dataclass(slots=True)
class Progress:
    """Is asked by a start whenever a segment is recovered whether to stop, and says how far it is."""

    service: TierService
    say: Callable[[str], object]
    clock: Clock
    _said_ms: int = 0

    def __post_init__(self) -> None:
        self._said_ms = self.clock.now_ms()

    def __call__(self) -> bool:
        """Never: a signal ends the process, and nothing was written for the start."""
        now_ms = self.clock.now_ms()
        if now_ms - self._said_ms >= PROGRESS_MS:
            self._said_ms, status = now_ms, self.service.status()
            self.say(f"{status.logs - status.logs_left} of {status.logs} logs are open; the others are being recovered")
        return False
