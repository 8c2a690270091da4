"""Every setting of the service by its name, with bounds and default; Kafka's where Kafka has it (RemoteLogManagerConfig).

A field is named as its setting, with _ for each dot. Those of topics are in `topics`, because a topic may have its own.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, create_model

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

_PATTERN = re.compile(r"[A-Za-z0-9._\-*?\[\]!]{1,249}")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9._-]{0,252}[a-z0-9_])?|[0-9a-f:]+:[0-9a-f:]*")
_DAY_MS: Final = 24 * 3_600_000
_OLD_TASKS: Final = {"retain": "expire"}
"""What tasks of the agent were called before, which files still say."""


def name_of(field: str) -> str:
    """The setting that a field holds."""
    return field.replace("_", ".")


def _scalar(read: Callable[[str, str], Any]) -> BeforeValidator:
    """One of the engine's readers, for a value out of any source."""

    def validated(value: Value, info: ValidationInfo) -> Any:
        name = name_of(info.field_name or "")
        if not isinstance(value, str):
            raise ValueError(f"{name}: expected one value, not a list of {len(value)}")  # noqa: TRY004  # what pydantic knows
        if not value.strip():
            raise ValueError(f"{name}: it is empty; say what, or leave it out")
        return _read(read, name, value.strip())

    return BeforeValidator(validated)


def _list(read: Callable[[str, str], tuple[str, ...]]) -> BeforeValidator:
    """A list: of a file that has lists, or with commas."""

    def validated(value: Value, info: ValidationInfo) -> tuple[str, ...]:
        name = name_of(info.field_name or "")
        texts = (value,) if isinstance(value, str) else value
        items = tuple(item for text in texts for item in _read(read, name, text))
        twice = sorted({item for item in items if items.count(item) > 1})
        if twice:
            raise ValueError(f"{name}: {shown(twice[0])} is given twice")
        return items

    return BeforeValidator(validated)


def _read(read: Callable[[str, str], Any], name: str, text: str) -> Any:
    try:
        return read(name, text)
    except Invalid as e:
        raise ValueError(shown(str(e))) from e  # pydantic's own code stumbles over half a character


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


class Settings(BaseModel):
    """The settings of the service; sizes in bytes, times in ms. `read_settings_of` makes one."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=name_of)

    log_dirs: Annotated[
        tuple[str, ...], _list(_folders), Field(description="The broker's log.dirs, which are only read, or our own.")
    ] = ()
    own_log_dirs: Annotated[
        bool, _scalar(flag), Field(description="Whether no broker uses log.dirs, so that the agent owns and changes them.")
    ] = False

    deletion_policies: Annotated[
        tuple[str, ...],
        _list(_words),
        Field(description="What old segments of our own log directories are deleted by: size, time, names of plug-ins."),
    ] = ("size", "time")

    metadata_log_dir: Annotated[
        str | None,
        _scalar(_text),
        Field(description="The broker's metadata.log.dir, if it is not one of log.dirs; it is only read."),
    ] = None

    archive_url: Annotated[
        str | None, _scalar(_address), Field(description="The address of the archive: a folder, s3://, gs:// or abfs://.")
    ] = None
    archive_keys: Annotated[
        str | None,
        _scalar(_text),
        Field(description="The address of the keys for encryption and signatures: a file, env://NAME, aws-kms://KEY."),
    ] = None
    archive_compression_type: Annotated[
        str, _scalar(one_of("none", "zstd")), Field(description="Compress segments whose batches are not compressed.")
    ] = "none"
    archive_encryption_enable: Annotated[
        bool, _scalar(flag), Field(description="Encrypt each segment with its own data key, which the current key wraps.")
    ] = False
    archive_encryption_required: Annotated[
        bool,
        _scalar(flag),
        Field(description="Whether data that is not encrypted and signed is rejected if there are keys."),
    ] = True
    archive_chunk_bytes: Annotated[
        int,
        _scalar(whole(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)),
        Field(description="Size of the chunks that are compressed or encrypted."),
    ] = CHUNK_BYTES
    archive_must_exist: Annotated[
        bool, _scalar(flag), Field(description="Fail if the archive does not exist; create no new one.")
    ] = False
    archive_replace_compacted: Annotated[
        tuple[str, ...],
        _list(_patterns),
        Field(description="Topics whose archived segments are replaced once the log cleaner has compacted them."),
    ] = ()
    archive_cache_dir: Annotated[
        str | None, _scalar(_text), Field(description="Folder that caches what is read from the archive, up to 5 GiB.")
    ] = None

    topics_include: Annotated[
        tuple[str, ...], _list(_patterns), Field(description="Only topics that match are archived and expire.")
    ] = ("*",)
    topics_exclude: Annotated[
        tuple[str, ...],
        _list(_patterns),
        Field(description="Topics that match are excluded, even if topics.include or --topic includes them."),
    ] = ()

    remote_log_manager_task_interval_ms: Annotated[
        int, _scalar(long_from(1)), Field(description="How often the agent looks for segments to copy.")
    ] = 30_000
    remote_log_manager_task_retry_backoff_ms: Annotated[
        int, _scalar(long_from(1)), Field(description="How long the agent waits after the first failure.")
    ] = 500
    remote_log_manager_task_retry_backoff_max_ms: Annotated[
        int, _scalar(long_from(1)), Field(description="The maximum time that the agent waits after a failure.")
    ] = 30_000
    remote_log_manager_task_retry_jitter: Annotated[
        float, _scalar(fraction(0, 0.5)), Field(description="The fraction by which a wait is randomly longer or shorter.")
    ] = 0.2
    remote_log_manager_copier_thread_pool_size: Annotated[
        int, _scalar(whole(1, THREADS_MAX)), Field(description="How many partitions are copied at the same time.")
    ] = THREADS
    remote_log_manager_copy_max_bytes_per_second: Annotated[
        int, _scalar(long_from(1)), Field(description="Limit of the transfer rate of copies.")
    ] = INT64_MAX
    log_retention_check_interval_ms: Annotated[
        int, _scalar(long_from(1)), Field(description="How often the agent expires segments.")
    ] = 300_000
    sweep_interval_ms: Annotated[
        int, _scalar(long_from(1)), Field(description="How often the agent sweeps: deletes objects that no manifest refers to.")
    ] = _DAY_MS
    sweep_grace_ms: Annotated[
        int, _scalar(long_from(0)), Field(description="The age at which a sweep deletes an object that no manifest refers to.")
    ] = GRACE_MS
    scrub_interval_ms: Annotated[
        int, _scalar(long_from(1)), Field(description="How often the agent scrubs: checks the archive against its manifests.")
    ] = 7 * _DAY_MS
    scrub_sample_ratio: Annotated[
        float, _scalar(fraction(0, 1)), Field(description="The fraction of the segments that a scrub of the agent also reads.")
    ] = 0.0

    agent_tasks: Annotated[
        tuple[str, ...], _list(_tasks), Field(description=f"What the agent does: {', '.join(AGENT_TASKS)}.")
    ] = AGENT_TASKS
    agent_http_address: Annotated[
        str, _scalar(_host_and_port), Field(description="The HTTP address of the agent: a page for browsers, /status, /metrics.")
    ] = AGENT_ADDRESS
    agent_http_names: Annotated[
        tuple[str, ...], _list(_names), Field(description="Additional host names that requests to the agent may use.")
    ] = ()
    agent_http_token_file: Annotated[
        str | None, _scalar(_text), Field(description="A file with the token that is required to pause and resume the agent.")
    ] = None
    agent_state_dir: Annotated[
        str | None, _scalar(_text), Field(description="Folder in which the agent and offloads store what they saw.")
    ] = None
    agent_shutdown_timeout_ms: Annotated[
        int, _scalar(long_from(0)), Field(description="How long the agent waits for running copies when it stops.")
    ] = 30_000


_MANAGER: Final = {
    name.replace(".", "_"): (Annotated[Any, _scalar(read_setting)], getattr(ManagerConfig(), field))
    for name, field in FIELDS.items()
    if name != "log.dir" and name.replace(".", "_") not in Settings.model_fields
}
"""The log manager's settings by our fields, as the engine has them."""


def _of_endpoint(setting: Setting) -> BeforeValidator:
    def read(name: str, text: str) -> Any:
        try:
            return setting.read(text)
        except ValueError as e:
            raise Invalid(f"{name}={text}: expected {e}") from e

    return _scalar(read)


_ENDPOINT: Final = {
    name.replace(".", "_"): (Annotated[Any, _of_endpoint(setting)], setting.default) for name, setting in SETTINGS.items()
}
"""The endpoint's settings by our fields."""
_AllSettings = create_model("_AllSettings", __base__=Settings, **_MANAGER, **_ENDPOINT)  # type: ignore[call-overload]  # typed by the engine

OF_MANAGER: Final = {name_of(field): default for field, (_, default) in _MANAGER.items()}
"""The settings of the log manager, which has the log directories that we own, with their defaults."""
NAMES: Final = (*map(name_of, Settings.model_fields), *OF_MANAGER, *SETTINGS)


def manager_config(settings: Settings) -> ManagerConfig:
    """The settings of the log manager of our own log directories. Raises Invalid for some that do not go together."""
    values = {name: getattr(settings, name.replace(".", "_")) for name in FIELDS if name != "log.dir"}
    texts = {name: ",".join(value) if isinstance(value, tuple) else str(value) for name, value in values.items()}
    return read_manager_config({name: text for name, text in texts.items() if text})


def read_settings_of(values: Mapping[str, Value]) -> tuple[Settings, dict[str, str]]:
    """The settings by these values, and what is wrong with which of them; those are at their defaults then."""
    try:
        return _AllSettings.model_validate(values), {}
    except ValidationError as e:
        wrong = {str(error["loc"][0]): _reason(error) for error in e.errors(include_url=False, include_input=False)}
    settings, _ = read_settings_of({name: value for name, value in values.items() if name not in wrong})
    return settings, wrong


def _reason(error: Mapping[str, Any]) -> str:
    cause = error.get("ctx", {}).get("error")
    return str(cause) if cause is not None else str(error["msg"])
