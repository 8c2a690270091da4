"""A broker's settings: names, defaults and bounds as Kafka has them."""

import pytest

from local_log.engine.manager.config import ManagerConfig, read_manager_config
from local_log.errors import Invalid


def test_the_defaults_are_kafka_s() -> None:
    assert read_manager_config({}) == ManagerConfig(
        log_dirs=(),
        num_recovery_threads_per_data_dir=2,
        flush_scheduler_interval_ms=2**63 - 1,
        flush_offset_checkpoint_interval_ms=60_000,
        flush_start_offset_checkpoint_interval_ms=60_000,
        high_watermark_checkpoint_interval_ms=5_000,
        retention_check_interval_ms=300_000,
        initial_task_delay_ms=30_000,
        producer_id_expiration_ms=86_400_000,
        producer_id_expiration_check_interval_ms=600_000,
        transaction_max_timeout_ms=900_000,
        cleaner_enable=True,
        cleaner_threads=1,
        cleaner_io_max_bytes_per_second=1.7976931348623157e308,
        cleaner_dedupe_buffer_size=134_217_728,
        cleaner_io_buffer_size=524_288,
        cleaner_io_buffer_load_factor=0.9,
        cleaner_backoff_ms=15_000,
    )


def test_settings_are_read_by_kafka_s_names() -> None:
    config = read_manager_config({"log.dirs": "/a, /b/", "log.dir": "/c", "log.retention.check.interval.ms": " 1 "})
    assert config.log_dirs == ("/a", "/b/")
    assert config.retention_check_interval_ms == 1
    assert read_manager_config({"log.dir": "/c"}).log_dirs == ("/c",)


def test_the_cleaner_s_backoff_may_be_as_long_as_kafka_s() -> None:
    assert read_manager_config({"log.cleaner.backoff.ms": "9223372036854775807"}).cleaner_backoff_ms == 2**63 - 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.recovery.threads.per.data.dir", "0"),
        ("log.flush.offset.checkpoint.interval.ms", "-1"),
        ("log.flush.start.offset.checkpoint.interval.ms", "2147483648"),
        ("log.flush.scheduler.interval.ms", "9223372036854775808"),
        ("log.retention.check.interval.ms", "0"),
        ("log.initial.task.delay.ms", "-1"),
        ("producer.id.expiration.ms", "0"),
        ("producer.id.expiration.check.interval.ms", "0"),
        ("transaction.max.timeout.ms", "0"),
        ("transaction.max.timeout.ms", "1.5"),
        ("replica.high.watermark.checkpoint.interval.ms", "soon"),
        ("log.dirs", " , "),
        ("log.cleaner.enable", "yes"),
        ("log.cleaner.threads", "-1"),
        ("log.cleaner.io.max.bytes.per.second", "0"),
        ("log.cleaner.dedupe.buffer.size", "1048576"),
        ("log.cleaner.io.buffer.size", "-1"),
        ("log.cleaner.io.buffer.load.factor", "1.1"),
        ("log.cleaner.backoff.ms", "-1"),
    ],
)
def test_what_is_out_of_range_is_refused_with_what_it_may_be(name: str, value: str) -> None:
    with pytest.raises(Invalid, match=rf"{name}={value.strip()}.*expected"):
        read_manager_config({name: value})


def test_an_unknown_setting_is_refused_with_the_nearest_that_is_known() -> None:
    with pytest.raises(Invalid, match=r"no such setting of a log manager; did you mean log\.retention\.check\.interval\.ms\?"):
        read_manager_config({"log.retention.check.interval": "1"})


def test_each_cleaner_thread_has_more_than_a_mebibyte_for_its_offset_map() -> None:
    settings = {"log.cleaner.threads": "4", "log.cleaner.dedupe.buffer.size": str(4 << 20)}
    with pytest.raises(Invalid, match=r"log\.cleaner\.dedupe\.buffer\.size=4194304.*log\.cleaner\.threads=4"):
        read_manager_config(settings)
    assert read_manager_config(settings | {"log.cleaner.threads": "3"}).cleaner_threads == 3
