"""A broker's settings for all of its logs, by Kafka's names and with its defaults and bounds (ServerLogConfigs)."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from local_log.engine.settings import Setting, flag, fraction, int_from, long_from, read_settings, whole
from local_log.errors import Invalid
from local_log.formats.primitives import INT64_MAX


@dataclass(frozen=True, slots=True)
class ManagerConfig:
    """The log manager's settings; times in ms. `read_manager_config` creates it and rejects values out of range."""

    log_dirs: tuple[str, ...] = ()
    num_recovery_threads_per_data_dir: int = 2
    flush_scheduler_interval_ms: int = INT64_MAX
    flush_offset_checkpoint_interval_ms: int = 60_000
    flush_start_offset_checkpoint_interval_ms: int = 60_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    retention_check_interval_ms: int = 300_000
    initial_task_delay_ms: int = 30_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    transaction_max_timeout_ms: int = 900_000
    cleaner_enable: bool = True
    cleaner_threads: int = 1
    cleaner_io_max_bytes_per_second: float = sys.float_info.max
    cleaner_dedupe_buffer_size: int = 128 << 20
    cleaner_io_buffer_size: int = 512 << 10
    cleaner_io_buffer_load_factor: float = 0.9
    cleaner_backoff_ms: int = 15_000


def read_manager_config(settings: Mapping[str, str]) -> ManagerConfig:
    """The settings by Kafka's names, the rest with defaults. Raises Invalid with the setting's name and its valid values."""
    if "log.dirs" in settings:  # Kafka reads log.dir only if log.dirs is not set
        settings = {name: text for name, text in settings.items() if name != "log.dir"}
    config = ManagerConfig(**read_settings(settings, _SETTINGS, "a log manager"))  # type: ignore[arg-type]  # see _SETTINGS
    of_thread = config.cleaner_dedupe_buffer_size // max(1, config.cleaner_threads)
    if of_thread <= _DEDUPE_BYTES_MIN:
        raise Invalid(
            f"log.cleaner.dedupe.buffer.size={config.cleaner_dedupe_buffer_size}: expected more than 1 MiB for each of "
            f"log.cleaner.threads={config.cleaner_threads}"
        )
    return config


def read_setting(name: str, text: str) -> object:
    """The value of one setting by Kafka's name. Raises Invalid with its valid values."""
    return read_settings({name: text}, _SETTINGS, "a log manager")[_SETTINGS[name][0]]


def _paths(name: str, text: str) -> tuple[str, ...]:
    paths = tuple(path.strip() for path in text.split(",") if path.strip())
    if not paths:
        raise Invalid(f"{name}={text}: expected one folder or more, with commas between them")
    return paths


_DEDUPE_BYTES_MIN = 1 << 20

_ANY_LONG = whole(-INT64_MAX - 1, INT64_MAX)

_SETTINGS: dict[str, Setting] = {
    "log.dirs": ("log_dirs", _paths),
    "log.dir": ("log_dirs", _paths),
    "num.recovery.threads.per.data.dir": ("num_recovery_threads_per_data_dir", int_from(1)),
    "log.flush.scheduler.interval.ms": ("flush_scheduler_interval_ms", _ANY_LONG),
    "log.flush.offset.checkpoint.interval.ms": ("flush_offset_checkpoint_interval_ms", int_from(0)),
    "log.flush.start.offset.checkpoint.interval.ms": ("flush_start_offset_checkpoint_interval_ms", int_from(0)),
    "replica.high.watermark.checkpoint.interval.ms": ("high_watermark_checkpoint_interval_ms", _ANY_LONG),
    "log.retention.check.interval.ms": ("retention_check_interval_ms", long_from(1)),
    "log.initial.task.delay.ms": ("initial_task_delay_ms", long_from(0)),
    "producer.id.expiration.ms": ("producer_id_expiration_ms", int_from(1)),
    "producer.id.expiration.check.interval.ms": ("producer_id_expiration_check_interval_ms", int_from(1)),
    "transaction.max.timeout.ms": ("transaction_max_timeout_ms", int_from(1)),
    "log.cleaner.enable": ("cleaner_enable", flag),
    "log.cleaner.threads": ("cleaner_threads", int_from(0)),
    "log.cleaner.io.max.bytes.per.second": ("cleaner_io_max_bytes_per_second", fraction(1, sys.float_info.max)),
    "log.cleaner.dedupe.buffer.size": ("cleaner_dedupe_buffer_size", long_from(0)),
    "log.cleaner.io.buffer.size": ("cleaner_io_buffer_size", int_from(0)),
    "log.cleaner.io.buffer.load.factor": ("cleaner_io_buffer_load_factor", fraction(0.01, 1)),
    "log.cleaner.backoff.ms": ("cleaner_backoff_ms", long_from(0)),
}

FIELDS: Final[Mapping[str, str]] = {name: field for name, (field, _) in _SETTINGS.items()}
"""The field that holds each setting, by Kafka's name of the setting."""
