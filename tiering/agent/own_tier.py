"""The log directories of a configuration that are our own, apart from the agent, which takes its time to load."""

from collections.abc import Callable, Mapping

from tiering.config.config import Config
from tiering.config.settings import manager_config
from tiering.local_tier.opening import local_tier
from tiering.local_tier.service import TierService
from tiering.machine import CLOCK


def own_tier(
    config: Config, report: Callable[[str], None], log_settings: Callable[[str], Mapping[str, str]] | None = None
) -> TierService | None:
    """The local tier of a configuration, not started yet; None if its log directories are a broker's. Raises Invalid.

    `log_settings` are those of a topic's logs, by default those of the configuration.
    """
    if not config.settings.own_log_dirs:
        return None
    tier = local_tier(manager_config(config.settings), log_settings or config.log_settings, config.settings.deletion_policies)
    return TierService(tier, CLOCK.now_ms, report)
