"""The settings of local retention in a log directory of ours that nobody has open."""

from collections.abc import Callable, Sequence

from local_log.cluster.image import CLEANUP_POLICY
from local_log.disk import Disk
from local_log.engine.config import LogConfig, read_config
from local_log.engine.manager.retention import DeletionPolicy
from tiering.local_tier.deletion_policies import KAFKAS
from tiering.local_tier.directory_files import topics_in
from tiering.local_tier.topics import TIERED
from tiering.local_tier.topics_file import Topics
from tiering.retention.policy import NAMES, Given, local_config_of

_UNLIMITED = read_config({TIERED: "true", "retention.ms": "-1", "retention.bytes": "-1"})


def local_settings(
    disk: Disk, path: str, given: Sequence[Given], policies: Sequence[DeletionPolicy]
) -> Callable[[str], LogConfig | None]:
    """A function that returns the settings of a topic's logs in the directory at `path`, None if all of its segments stay.

    A topic's own settings in the directory count before those of `given`. A plug-in among `policies` needs no limits. Raises
    Corrupt, Newer, Unreadable for a file of topics; the function raises Invalid for settings that a topic cannot have.
    """
    topics = next(iter(topics_in(disk, path).values()), Topics()).topics
    own = (Given(name, setting, text) for name, topic in topics.items() for setting, text in topic.config.items())
    known = (*given, *(one for one in own if one.name in NAMES))
    has_plug_ins = any(policy not in KAFKAS.values() for policy in policies)

    def settings_of(name: str) -> LogConfig | None:
        config = topics[name].config if name in topics else {}
        if config.get(TIERED) == "false" or "compact" in config.get(CLEANUP_POLICY, ""):
            return None  # a log without tiering starts at its first local segment
        return local_config_of(known, name) or (_UNLIMITED if has_plug_ins else None)

    return settings_of
