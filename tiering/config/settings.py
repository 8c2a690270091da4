"""Every setting of the service by its name, with bounds and default; Kafka's where Kafka has it (RemoteLogManagerConfig).

A field is named as its setting, with _ for each dot. Those of topics are in `topics`, because a topic may have its own.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from typing import Any, Final, TypeVar

from local_log.engine.manager.config import FIELDS, ManagerConfig, read_manager_config, read_setting
from local_log.engine.settings import flag, fraction, long_from, one_of, whole
from local_log.errors import Invalid
from local_log.formats.primitives import INT64_MAX
from remote.transforms.chunk_index import CHUNK_BYTES, CHUNK_BYTES_MAX
from tiering.config.assignment import Value, shown
from tiering.config.shared import AGENT_ADDRESS, AGENT_TASKS, CHUNK_BYTES_MIN, THREADS, THREADS_MAX
from tiering.delays import GRACE_MS
from tiering.endpoint.addresses import host_and_port
from tiering.endpoint.config_def import Setting
from tiering.endpoint.settings import SETTINGS

T = TypeVar("T")

_PATTERN = re.compile(r"[A-Za-z0-9._\-*?\[\]!]{1,249}")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9._-]{0,252}[a-z0-9_])?|[0-9a-f:]+:[0-9a-f:]*")
_DAY_MS: Final = 24 * 3_600_000
_OLD_TASKS: Final = {"retain": "expire"}
"""What tasks of the agent were called before, which files still say."""

Reader = Callable[[str, Value], Any]
"""What a value of a source means, by the setting's name and the value. Raises Invalid, which names both."""


def name_of(field: str) -> str:
    """The setting that a field holds."""
    return field.replace("_", ".")


def _field_of(name: str) -> str:
    return name.replace(".", "_")


def _scalar(read: Callable[[str, str], Any]) -> Reader:
    """One of the engine's readers, for a value out of any source."""

    def scalar(name: str, value: Value) -> Any:
        if not isinstance(value, str):
            raise Invalid(f"{name}: expected one value, not a list of {len(value)}")
        if not value.strip():
            raise Invalid(f"{name}: it is empty; say what, or leave it out")
        return read(name, value.strip())

    return scalar


def _list(read: Callable[[str, str], tuple[str, ...]]) -> Reader:
    """A list: of a file that has lists, or with commas."""

    def listed(name: str, value: Value) -> tuple[str, ...]:
        texts = (value,) if isinstance(value, str) else value
        items = tuple(item for text in texts for item in read(name, text))
        twice = sorted({item for item in items if items.count(item) > 1})
        if twice:
            raise Invalid(f"{name}: {shown(twice[0])} is given twice")
        return items

    return listed


def _setting(default: T, read: Reader, about: str) -> T:
    """A field of `Settings`: its default, how its value is read, and what it is for."""
    return field(default=default, metadata={"read": read, "about": about})


def _text(_name: str, text: str) -> str:
    return text


def _address(name: str, text: str) -> str:
    if text.lower().rpartition("::")[2].startswith("memory:"):
        raise Invalid(f"{name}={text}: gone when the process ends; give a folder, s3://bucket/prefix or any other URL")
    return text


def _tasks(name: str, text: str) -> tuple[str, ...]:
    read = one_of(*AGENT_TASKS)
    words = (word.strip() for word in text.split(",") if word.strip())
    return tuple(read(name, _OLD_TASKS.get(word, word)) for word in words)


def _words(_name: str, text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _host_and_port(name: str, text: str) -> str:
    try:
        host_and_port(text)
    except ValueError as e:
        raise Invalid(f"{name}={text}: expected HOST:PORT, such as {AGENT_ADDRESS}; port 0 takes one that is free") from e
    return text


def _names(name: str, text: str) -> tuple[str, ...]:
    names = tuple(word.strip().lower() for word in text.split(",") if word.strip())
    for one in names:
        if not _HOST.fullmatch(one):
            raise Invalid(f"{name}: {one!r} is no name of a host; expected one as in a URL, without a port")
    return names


def _folders(name: str, text: str) -> tuple[str, ...]:
    return read_manager_config({name: text}).log_dirs


def _patterns(name: str, text: str) -> tuple[str, ...]:
    patterns = tuple(word.strip() for word in text.split(",") if word.strip())
    for pattern in patterns:
        refuse_no_pattern(name, pattern)
    return patterns


def refuse_no_pattern(name: str, pattern: str) -> None:
    """Raises Invalid for a pattern that no topic's name could match."""
    if not _PATTERN.fullmatch(pattern):
        raise Invalid(
            f"{name}: {pattern!r} matches no topic; expected letters, digits, '.', '_', '-' and the signs *, ?, [ and ] "
            "of a shell's patterns, 249 at most"
        )


@dataclass(frozen=True)
class Settings:
    """The settings of the service; sizes in bytes, times in ms. `read_settings_of` makes one."""

    log_dirs: tuple[str, ...] = _setting((), _list(_folders), "The broker's log.dirs, which are only read, or our own.")
    own_log_dirs: bool = _setting(
        False, _scalar(flag), "Whether no broker uses log.dirs, so that the agent owns and changes them."
    )

    deletion_policies: tuple[str, ...] = _setting(
        ("size", "time"),
        _list(_words),
        "What old segments of our own log directories are deleted by: size, time, names of plug-ins.",
    )

    metadata_log_dir: str | None = _setting(
        None, _scalar(_text), "The broker's metadata.log.dir, if it is not one of log.dirs; it is only read."
    )

    archive_url: str | None = _setting(None, _scalar(_address), "The address of the archive: a folder, s3://, gs:// or abfs://.")
    archive_keys: str | None = _setting(
        None, _scalar(_text), "The address of the keys for encryption and signatures: a file, env://NAME, aws-kms://KEY."
    )
    archive_compression_type: str = _setting(
        "none", _scalar(one_of("none", "zstd")), "Compress segments whose batches are not compressed."
    )
    archive_encryption_enable: bool = _setting(
        False, _scalar(flag), "Encrypt each segment with its own data key, which the current key wraps."
    )
    archive_encryption_required: bool = _setting(
        True, _scalar(flag), "Whether data that is not encrypted and signed is rejected if there are keys."
    )
    archive_chunk_bytes: int = _setting(
        CHUNK_BYTES, _scalar(whole(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)), "Size of the chunks that are compressed or encrypted."
    )
    archive_must_exist: bool = _setting(False, _scalar(flag), "Fail if the archive does not exist; create no new one.")
    archive_replace_compacted: tuple[str, ...] = _setting(
        (), _list(_patterns), "Topics whose archived segments are replaced once the log cleaner has compacted them."
    )
    archive_cache_dir: str | None = _setting(
        None, _scalar(_text), "Folder that caches what is read from the archive, up to 5 GiB."
    )

    topics_include: tuple[str, ...] = _setting(("*",), _list(_patterns), "Only topics that match are archived and expire.")
    topics_exclude: tuple[str, ...] = _setting(
        (), _list(_patterns), "Topics that match are excluded, even if topics.include or --topic includes them."
    )

    remote_log_manager_task_interval_ms: int = _setting(
        30_000, _scalar(long_from(1)), "How often the agent looks for segments to copy."
    )
    remote_log_manager_task_retry_backoff_ms: int = _setting(
        500, _scalar(long_from(1)), "How long the agent waits after the first failure."
    )
    remote_log_manager_task_retry_backoff_max_ms: int = _setting(
        30_000, _scalar(long_from(1)), "The maximum time that the agent waits after a failure."
    )
    remote_log_manager_task_retry_jitter: float = _setting(
        0.2, _scalar(fraction(0, 0.5)), "The fraction by which a wait is randomly longer or shorter."
    )
    remote_log_manager_copier_thread_pool_size: int = _setting(
        THREADS, _scalar(whole(1, THREADS_MAX)), "How many partitions are copied at the same time."
    )
    remote_log_manager_copy_max_bytes_per_second: int = _setting(
        INT64_MAX, _scalar(long_from(1)), "Limit of the transfer rate of copies."
    )
    log_retention_check_interval_ms: int = _setting(300_000, _scalar(long_from(1)), "How often the agent expires segments.")
    sweep_interval_ms: int = _setting(
        _DAY_MS, _scalar(long_from(1)), "How often the agent sweeps: deletes objects that no manifest refers to."
    )
    sweep_grace_ms: int = _setting(
        GRACE_MS, _scalar(long_from(0)), "The age at which a sweep deletes an object that no manifest refers to."
    )
    scrub_interval_ms: int = _setting(
        7 * _DAY_MS, _scalar(long_from(1)), "How often the agent scrubs: checks the archive against its manifests."
    )
    scrub_sample_ratio: float = _setting(
        0.0, _scalar(fraction(0, 1)), "The fraction of the segments that a scrub of the agent also reads."
    )

    agent_tasks: tuple[str, ...] = _setting(AGENT_TASKS, _list(_tasks), f"What the agent does: {', '.join(AGENT_TASKS)}.")
    agent_http_address: str = _setting(
        AGENT_ADDRESS, _scalar(_host_and_port), "The HTTP address of the agent: a page for browsers, /status, /metrics."
    )
    agent_http_names: tuple[str, ...] = _setting((), _list(_names), "Additional host names that requests to the agent may use.")
    agent_http_token_file: str | None = _setting(
        None, _scalar(_text), "A file with the token that is required to pause and resume the agent."
    )
    agent_state_dir: str | None = _setting(None, _scalar(_text), "Folder in which the agent and offloads store what they saw.")
    agent_shutdown_timeout_ms: int = _setting(
        30_000, _scalar(long_from(0)), "How long the agent waits for running copies when it stops."
    )


def _of_endpoint(setting: Setting) -> Reader:
    def read(name: str, text: str) -> Any:
        try:
            return setting.read(text)
        except ValueError as e:
            raise Invalid(f"{name}={text}: expected {e}") from e

    return _scalar(read)


_OWN: Final = {name_of(one.name): one.metadata["read"] for one in fields(Settings)}

OF_MANAGER: Final[Mapping[str, Any]] = {
    name: getattr(ManagerConfig(), its_field) for name, its_field in FIELDS.items() if name != "log.dir" and name not in _OWN
}
"""The settings of the log manager, which has the log directories that we own, with their defaults: as the engine has them."""

_READERS: Final[Mapping[str, Reader]] = {
    **_OWN,
    **dict.fromkeys(OF_MANAGER, _scalar(read_setting)),
    **{name: _of_endpoint(setting) for name, setting in SETTINGS.items()},
}
NAMES: Final = tuple(_READERS)

_DEFAULTS: Final = {**OF_MANAGER, **{name: setting.default for name, setting in SETTINGS.items()}}
_AllSettings: Final = make_dataclass(
    "_AllSettings",
    [(_field_of(name), Any, field(default_factory=partial(_DEFAULTS.get, name))) for name in _DEFAULTS],
    bases=(Settings,),
    frozen=True,
)
"""With those of the log manager and of the endpoint, which are typed there. A default may be a mapping."""


def manager_config(settings: Settings) -> ManagerConfig:
    """The settings of the log manager of our own log directories. Raises Invalid for some that do not go together."""
    values = {name: getattr(settings, _field_of(name)) for name in FIELDS if name != "log.dir"}
    texts = {name: ",".join(value) if isinstance(value, tuple) else str(value) for name, value in values.items()}
    return read_manager_config({name: text for name, text in texts.items() if text})


def read_settings_of(values: Mapping[str, Value]) -> tuple[Settings, dict[str, str]]:
    """The settings by these values, and what is wrong with which of them; those are at their defaults then."""
    read: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, value in values.items():
        try:
            read[_field_of(name)] = _READERS[name](name, value)
        except Invalid as e:
            wrong[name] = shown(str(e))
    settings: Settings = _AllSettings(**read)
    return settings, wrong
