"""The settings of log directories that we own: the engine's, by Kafka's names, and what a broker calls them."""

from pathlib import Path

import pytest
from config_files import loaded, problems, written

from local_log.engine.config import FIELDS as OF_LOG
from local_log.engine.config import read_config
from local_log.engine.manager.config import FIELDS as OF_MANAGER
from local_log.engine.manager.config import ManagerConfig
from tiering.config.names import KNOWN
from tiering.config.settings import manager_config
from tiering.config.topics import SYNONYMS


def test_every_setting_of_the_engine_and_the_log_manager_is_one_of_the_service() -> None:
    engine = {name for name in OF_LOG if not name.startswith("internal.")}
    assert (engine | OF_MANAGER.keys()) - KNOWN == set()
    assert manager_config(loaded(None, {"TIERING_LOG_DIRS": "/a"}).settings) == ManagerConfig(("/a",))


def test_the_log_manager_gets_what_the_configuration_says(tmp_path: Path) -> None:
    text = """log.dirs = ["/a", "/b"]
own.log.dirs = true
num.recovery.threads.per.data.dir = 8
log.retention.check.interval.ms = 9
producer.id.expiration.ms = 10
"""
    config = manager_config(loaded(written(tmp_path, text)).settings)
    assert config.log_dirs == ("/a", "/b")
    assert (config.num_recovery_threads_per_data_dir, config.retention_check_interval_ms) == (8, 9)
    assert config.producer_id_expiration_ms == 10


def test_a_topic_gets_its_own_settings_then_those_for_all_by_any_name(tmp_path: Path) -> None:
    text = """log.roll.hours = 2
log.segment.bytes = 1048577
log.flush.scheduler.interval.ms = 77
message.max.bytes = 5
[topic."a*"]
segment.ms = 9
max.message.bytes = 6
"""
    config = loaded(written(tmp_path, text))
    of_a, of_b = (read_config(config.log_settings(topic)) for topic in "ab")
    assert (of_a.segment_ms, of_a.max_message_bytes, of_a.segment_bytes, of_a.flush_ms) == (9, 6, 1_048_577, 77)
    assert (of_b.segment_ms, of_b.max_message_bytes) == (7_200_000, 5)
    assert (of_b.retention_ms, of_b.retention_bytes, of_b.remote_storage_enable) == (-1, -1, True)
    assert "retention.bytes" not in config.log_settings("b"), "Kafka's default is no setting of the broker, as clients are told"


def test_a_topic_that_is_not_archived_is_not_tiered(tmp_path: Path) -> None:
    config = loaded(written(tmp_path, 'topics.exclude = ["b"]\n[topic.c]\nremote.storage.enable = false'))
    assert [read_config(config.log_settings(topic)).remote_storage_enable for topic in "abc"] == [True, False, False]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("segment.bytes = 1048575", "segment.bytes=1048575: expected 1048576 to"),
        ("log.segment.bytes = 0", "segment.bytes=0: expected"),
        ("log.roll.hours = 'x'", "log.roll.hours=x: expected a whole number"),
        ("log.roll.hours = 0", "segment.ms=0: expected 1 to"),
        ("log.roll.jitter.hours = -1", "segment.jitter.ms=-3600000: expected 0 to"),
        ("message.timestamp.type = 'Later'", "expected one of CreateTime, LogAppendTime"),
        ("num.recovery.threads.per.data.dir = 0", "expected 1 to"),
        ("log.flush.offset.checkpoint.interval.ms = -1", "expected 0 to"),
        ("internal.segment.bytes = 1", "no such setting"),
        ("own.log.dirs = 'perhaps'", "expected true or false"),
        ("topic.x.'num.recovery.threads.per.data.dir' = 1", "it cannot be set for a topic"),
    ],
)
def test_what_is_out_of_range_is_refused_with_its_line(tmp_path: Path, setting: str, expected: str) -> None:
    [problem] = problems(written(tmp_path, f"\n{setting}"))
    assert problem.startswith("tiering.toml:2: ")
    assert expected in problem


def test_settings_that_go_together_only_with_another_are_judged_together(tmp_path: Path) -> None:
    threads, buffer = "log.cleaner.threads = 300", "log.cleaner.dedupe.buffer.size = 1073741824"
    [problem] = problems(written(tmp_path, f"own.log.dirs = true\n{threads}"))
    assert problem.startswith("tiering.toml:2: log.cleaner.dedupe.buffer.size=134217728: expected more than 1 MiB for each of")
    config = loaded(written(tmp_path, f'log.dirs = "/a"\n{threads}\n{buffer}'))
    assert manager_config(config.settings).cleaner_threads == 300


def test_zero_hours_of_jitter_are_none(tmp_path: Path) -> None:
    assert loaded(written(tmp_path, "log.roll.jitter.hours = 0")).of("x", "segment.jitter.ms") == 0


def test_beside_a_broker_what_would_do_nothing_is_named_with_its_line(tmp_path: Path) -> None:
    text = """log.dirs = "/a"
local.retention.ms = 5
log.local.retention.bytes = 6
producer.id.expiration.ms = 7
retention.ms = 8
[topic.x]
segment.ms = 9
"""
    file = written(tmp_path, text)
    said = [str(problem).partition(": ")[2] for problem in loaded(file).without_effect()]
    assert [text.partition(":")[0] for text in said] == ["producer.id.expiration.ms", "local.retention.ms", "segment.ms"]
    assert all("a broker's log directory is only read, and this would do nothing" in text for text in said)
    assert loaded(file, {"TIERING_OWN_LOG_DIRS": "true"}).without_effect() == ()


def test_every_synonym_leads_to_a_setting() -> None:
    assert {name for name, _ in SYNONYMS.values()} <= KNOWN
