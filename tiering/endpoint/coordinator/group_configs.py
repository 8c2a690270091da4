"""The settings that single groups have of their own (Kafka's GroupConfig and GroupConfigManager).

    {"format": 1, "version": 7, "groups": {"readers": {"consumer.session.timeout.ms": "50000"}}}

`tiering-group-configs.json` in every log directory has them; a broker has them in its log of metadata. Of several the one with
the greatest version counts: a crash may come between two writes, and a directory may have been offline.
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from local_log.errors import Corrupt, Newer, placed
from local_log.formats.filenames import GROUP_CONFIGS
from tiering.endpoint.config_def import Setting
from tiering.endpoint.consumer_group_settings import (
    CONSUMER_GROUP_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MAX_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_MAX_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MAX_SESSION_TIMEOUT,
    CONSUMER_GROUP_MIN_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_MIN_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MIN_SESSION_TIMEOUT,
    CONSUMER_GROUP_SESSION_TIMEOUT,
)
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.settings import DEFAULTS, Settings

GROUPS_MAX: Final = 10_000
"""So many groups may have settings of their own."""
NAME_MAX: Final = 1_000
"""Characters of the name of such a group."""
_FORMAT: Final = 1

_Own = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GroupSetting:
    """A setting of a group; `of_broker` is what counts for groups without it, `least` and `most` are its bounds."""

    name: str
    of_broker: Setting
    least: Setting
    most: Setting


SESSION_TIMEOUT: Final = GroupSetting(
    "consumer.session.timeout.ms",
    CONSUMER_GROUP_SESSION_TIMEOUT,
    CONSUMER_GROUP_MIN_SESSION_TIMEOUT,
    CONSUMER_GROUP_MAX_SESSION_TIMEOUT,
)
HEARTBEAT_INTERVAL: Final = GroupSetting(
    "consumer.heartbeat.interval.ms",
    CONSUMER_GROUP_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MIN_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MAX_HEARTBEAT_INTERVAL,
)
ASSIGNMENT_INTERVAL: Final = GroupSetting(
    "consumer.assignment.interval.ms",
    CONSUMER_GROUP_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_MIN_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_MAX_ASSIGNMENT_INTERVAL,
)
GROUP_SETTINGS: Final = {one.name: one for one in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)}


class GroupConfigFiles(Protocol):
    """Where the files are: a local tier."""

    def read_files(self, name: str) -> dict[str, bytes]:
        """A file's content by its path, in the directories that are online and have it."""

    def write_files(self, name: str, data: bytes) -> None:
        """Replaces a file in every directory that is online, durably. Raises LogError."""


@dataclass(slots=True)
class GroupConfigs:
    """Of all groups. Without `files` no group has any of its own. Many threads may call it."""

    settings: Settings = DEFAULTS
    files: GroupConfigFiles | None = None
    _own: Mapping[str, _Own] = field(default_factory=dict)
    _version: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, settings: Settings, files: GroupConfigFiles) -> "GroupConfigs":
        """What the files have. Raises Corrupt, Newer."""
        saved = [_read(path, data) for path, data in files.read_files(GROUP_CONFIGS).items()]
        version, own = max(saved, key=lambda one: one[0], default=(0, {}))
        return cls(settings, files, own, version)

    def groups(self) -> tuple[str, ...]:
        """The names of those that have some."""
        return tuple(sorted(self._own))

    def own(self, group_id: str) -> _Own:
        """What a group has of its own."""
        return self._own.get(group_id, {})

    def get(self, group_id: str, setting: GroupSetting, default: int) -> int:
        """The value that counts for a group; `default` is that of the coordinator."""
        own = self._own.get(group_id)
        return default if own is None or setting.name not in own else int(own[setting.name])

    def check(self, group_id: str, own: _Own) -> None:
        """Raises GroupError if a group cannot have these."""
        if not group_id:
            raise GroupError(ErrorCode.INVALID_REQUEST, "settings of all groups are those of the broker: name a group")
        if len(group_id) > NAME_MAX:
            raise GroupError(ErrorCode.POLICY_VIOLATION, f"groups whose names are longer than {NAME_MAX} have no settings")
        for name, text in own.items():
            self._check(name, text)
        values = {
            one.name: int(own[one.name]) if one.name in own else self.settings[one.of_broker] for one in GROUP_SETTINGS.values()
        }
        if own and values[SESSION_TIMEOUT.name] <= values[HEARTBEAT_INTERVAL.name]:
            raise _invalid(f"{SESSION_TIMEOUT.name} must be greater than {HEARTBEAT_INTERVAL.name}")

    def _check(self, name: str, text: str) -> None:
        setting = GROUP_SETTINGS.get(name)
        if setting is None:
            raise _invalid(f"Unknown group config name: {name}")
        try:
            value = setting.of_broker.read(text)
        except ValueError as e:
            raise _invalid(f"{name}: expected {e}") from e
        for bound, is_outside in ((setting.least, int.__lt__), (setting.most, int.__gt__)):
            if is_outside(value, self.settings[bound]):
                raise _invalid(f"{name}={value} is outside of {bound.name}={self.settings[bound]}")

    def change(self, group_id: str, own: _Own) -> None:
        """These are all that a group has of its own from now on. Raises GroupError, LogError."""
        self.check(group_id, own)
        with self._lock:
            after = {name: of for name, of in self._own.items() if name != group_id} | ({group_id: dict(own)} if own else {})
            if len(after) > GROUPS_MAX:
                raise GroupError(ErrorCode.POLICY_VIOLATION, f"{GROUPS_MAX} groups have settings of their own: delete some")
            if self.files is not None:
                saved = {"format": _FORMAT, "version": self._version + 1, "groups": after}
                self.files.write_files(GROUP_CONFIGS, json.dumps(saved).encode() + b"\n")
            self._own, self._version = after, self._version + 1


def _invalid(told: str) -> GroupError:
    return GroupError(ErrorCode.INVALID_CONFIG, told)


def _read(path: str, data: bytes) -> tuple[int, Mapping[str, _Own]]:
    with placed(path):
        try:
            content: Any = json.loads(data)
            if content["format"] > _FORMAT:
                raise Newer(
                    f"{path} has format {content['format']}, and this version reads {_FORMAT} at most; use the one that wrote it"
                )
            groups = content["groups"]
            own = {str(name): {str(key): str(text) for key, text in of.items()} for name, of in groups.items()}
            for of in own.values():
                for name, text in of.items():
                    GROUP_SETTINGS[name].of_broker.read(text)
            return int(content["version"]), own
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            raise Corrupt(
                f"no settings of groups ({type(e).__name__}); copy the file from another log directory or a backup, or delete "
                "it: groups then have those of the broker"
            ) from e
