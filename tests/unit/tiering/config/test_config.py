"""What the sources come to: which of them counts, what is refused and how, and what holds for a topic."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from config_files import loaded, problems, written

from tiering.retention.policy import local_config_of, policy_of

MINIMAL = """\
log.dirs = ["/data/a", "/data/b"]
archive.url = "s3://bucket/kafka"
"""


def test_the_environment_comes_before_the_file_and_the_file_before_the_default(tmp_path: Path) -> None:
    name, variable = "remote.log.manager.task.interval.ms", "TIERING_REMOTE_LOG_MANAGER_TASK_INTERVAL_MS"
    file = written(tmp_path, f"{name} = 5")
    assert loaded(None).settings.remote_log_manager_task_interval_ms == 30_000
    assert loaded(file).settings.remote_log_manager_task_interval_ms == 5
    both = loaded(file, {variable: "7"})
    assert both.settings.remote_log_manager_task_interval_ms == 7
    assert str(both.places[name]) == variable
    assert str(loaded(file).places[name]) == f"{file}:1"
    assert name not in loaded(None).places


def test_a_topic_s_own_setting_comes_before_one_for_all_whoever_says_it(tmp_path: Path) -> None:
    file = written(tmp_path, 'retention.ms = 1\n[topic."a*"]\nretention.ms = 2\n[topic."ab*"]\nretention.ms = 3')
    config = loaded(file, {"TIERING_RETENTION_MS": "9"})
    assert [config.of(topic, "retention.ms") for topic in ("x", "a", "abc")] == [9, 2, 3]
    assert [policy_of(config.retention, topic).retention_ms for topic in ("x", "a", "abc")] == [9, 2, 3]


def test_the_same_settings_in_toml_properties_and_the_environment_are_the_same_configuration(tmp_path: Path) -> None:
    toml = loaded(written(tmp_path, MINIMAL + "topics.exclude = ['__*']\narchive.must.exist = true"))
    text = "log.dirs=/data/a,/data/b\narchive.url=s3://bucket/kafka\ntopics.exclude=__*\narchive.must.exist=TRUE"
    properties = loaded(written(tmp_path, text, "t.properties"))
    variables = {
        "TIERING_LOG_DIRS": "/data/a,/data/b", "TIERING_ARCHIVE_URL": "s3://bucket/kafka", "TIERING_TOPICS_EXCLUDE": "__*",
        "TIERING_ARCHIVE_MUST_EXIST": "true",
    }  # fmt: skip
    environment = loaded(None, variables)
    assert toml.settings == properties.settings == environment.settings
    assert toml.settings.log_dirs == ("/data/a", "/data/b")
    assert toml.settings.archive_must_exist is True


def test_the_former_name_of_a_task_of_the_agent_is_still_read(tmp_path: Path) -> None:
    assert loaded(written(tmp_path, 'agent.tasks = ["copy", "retain"]')).settings.agent_tasks == ("copy", "expire")
    assert "given twice" in problems(written(tmp_path, 'agent.tasks = ["retain", "expire"]'))[0]


def test_the_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config = loaded(written(tmp_path, MINIMAL))
    with pytest.raises(FrozenInstanceError):
        config.settings.archive_url = "elsewhere"  # type: ignore[misc]
    with pytest.raises(TypeError):
        config.places["x"] = config.places["log.dirs"]  # type: ignore[index]


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """\
log.dirs = ["/a", "/a"]
retention.m = 5
remote.log.manager.task.interval.ms = 0
archive.encryption.enable = true
topics.include = ["no/topic"]

[topic."orders*"]
retention.bytes = "many"
log.dirs = "/b"
segment.byte = 1
"""
    assert problems(written(tmp_path, text), {"TIERING_ARCHIVE_UR": "x"}) == [
        "tiering.toml:1: log.dirs: /a is given twice",
        "tiering.toml:2: retention.m: no such setting; did you mean retention.ms?",
        "tiering.toml:3: remote.log.manager.task.interval.ms=0: expected 1 to 9223372036854775807",
        "tiering.toml:4: archive.encryption.enable=true: it needs keys; set archive.keys to their address",
        "tiering.toml:5: topics.include: 'no/topic' matches no topic; expected letters, digits, '.', '_', '-' and the signs "
        "*, ?, [ and ] of a shell's patterns, 249 at most",
        "tiering.toml:8: retention.bytes=many: expected a whole number",
        "tiering.toml:9: log.dirs: it cannot be set for a topic; set it for the whole service",
        "tiering.toml:10: segment.byte: no such setting of a topic; did you mean segment.bytes?",
        "TIERING_ARCHIVE_UR: no such setting; did you mean TIERING_ARCHIVE_URL?",
    ]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("archive.chunk.bytes = 1", "expected 65536 to 67108864"),
        ("archive.chunk.bytes = 1e5", "expected a whole number"),
        ("archive.chunk.bytes = '1_000_000'", "expected a whole number"),
        ("archive.chunk.bytes = [1]", "expected one value, not a list of 1"),
        ("archive.compression.type = 'gzip'", "expected one of none, zstd"),
        ("archive.must.exist = 1", "expected true or false"),
        ("archive.url = ''", "it is empty"),
        ("archive.url = 'memory://x'", "gone when the process ends"),
        ("log.dirs = ' , '", "expected one folder or more"),
        ("remote.log.manager.task.retry.jitter = 0.6", "expected 0 to 0.5"),
        ("remote.log.manager.task.retry.jitter = nan", "expected 0 to 0.5"),
        ("remote.log.manager.task.retry.jitter = 'x'", "expected a number"),
        ("remote.log.manager.copy.max.bytes.per.second = 9223372036854775808", "expected 1 to 9223372036854775807"),
        ("retention.ms = -2", "expected -1 to 9223372036854775807"),
        ("local.retention.ms = -3", "expected -2 to"),
        ("cleanup.policy = 'shred'", "expected delete, compact"),
        ("remote.storage.enable = 'yes'", "expected true or false"),
        ("log.retention.hours = 0", "expected 1 or more, or -1"),
        ("log.retention.hours = 'x'", "expected a whole number"),
        ("log.retention.hours = 9223372036854775807", "expected -1 to"),
        ("remote.log.reader.max.pending.tasks = 1", "Kafka has it, and it changes nothing here"),
        ("topics.x.retention.ms = 1", '[topic."PATTERN"]'),
        ("topic.'a/b'.retention.ms = 1", "matches no topic"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_may_be(tmp_path: Path, setting: str, expected: str) -> None:
    file = written(tmp_path, f"\n{setting}")
    [problem] = problems(file)
    assert problem.startswith("tiering.toml:2: ")
    assert expected in problem


def test_a_setting_that_is_given_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    file = written(tmp_path, "log.dirs = '/a'\n\"log.dirs\" = '/b'")
    assert problems(file) == [f"tiering.toml:2: log.dirs: {file}:1 sets it as well; keep one of the two"]
    twice = written(tmp_path, "retention.ms=1\nretention.ms=2", "t.properties")
    assert "t.properties:2: retention.ms:" in problems(twice)[0]


def test_a_broker_s_names_stand_behind_the_topic_s_as_in_kafka(tmp_path: Path) -> None:
    def retention_ms(text: str, **variables: str) -> object:
        return loaded(written(tmp_path, text), variables).of("t", "retention.ms")

    assert retention_ms("log.retention.hours = 2") == 7_200_000
    assert retention_ms("log.retention.hours = 2\nlog.retention.minutes = 3") == 180_000
    assert retention_ms("log.retention.hours = 2\nlog.retention.minutes = 3\nlog.retention.ms = 4") == 4
    assert retention_ms("log.retention.ms = 4\nretention.ms = 5") == 5
    assert retention_ms("log.retention.hours = -5") == -1
    assert retention_ms("retention.ms = 5", TIERING_LOG_RETENTION_HOURS="2") == 7_200_000
    assert loaded(written(tmp_path, "log.dir = '/a'")).settings.log_dirs == ("/a",)
    assert loaded(written(tmp_path, "log.dir = '/a'\nlog.dirs = '/b'")).settings.log_dirs == ("/b",)


def test_topics_are_archived_that_are_included_not_excluded_and_let_be_copied(tmp_path: Path) -> None:
    text = """\
topics.include = ["orders*", "pay?"]
topics.exclude = ["*.tmp"]
[topic."orders.b"]
remote.storage.enable = false
[topic."orders.c"]
remote.log.copy.disable = true
"""
    config = loaded(written(tmp_path, text))
    names = ("orders", "orders.a", "orders.b", "orders.c", "orders.tmp", "pay1", "pay", "other", "Orders")
    assert [name for name in names if config.archives(name)] == ["orders", "orders.a", "pay1"]
    assert [name for name in names if config.selects(name)] == ["orders", "orders.a", "orders.b", "orders.c", "pay1"]
    assert loaded(None).archives("anything")


def test_retention_that_is_not_given_deletes_nothing_though_kafka_s_default_is_a_week() -> None:
    config = loaded(None)
    assert config.of("t", "retention.ms") == 604_800_000
    assert config.retention == ()


def test_local_retention_above_the_whole_is_refused_for_the_pattern_that_leads_to_it(tmp_path: Path) -> None:
    text = "retention.ms = 10\n[topic.'a*']\nlocal.retention.ms = 11\n[topic.b]\nlocal.retention.ms = 9"
    [problem] = problems(written(tmp_path, text))
    assert problem.startswith("tiering.toml:3: topics a*: local.retention.ms=11: expected 0 to 10")


def test_what_retention_is_told_is_what_the_configuration_says_of_each_topic(tmp_path: Path) -> None:
    text = """\
retention.ms = 100
[topic."a*"]
local.retention.ms = 7
file.delete.delay.ms = 3
[topic.c]
cleanup.policy = "compact"
"""
    config = loaded(written(tmp_path, text))
    local = local_config_of(config.retention, "a1")
    assert local is not None
    assert (local.local_retention_ms, local_config_of(config.retention, "b")) == (7, None)
    assert (policy_of(config.retention, "a1").delete_delay_ms, policy_of(config.retention, "b").delete_delay_ms) == (
        3,
        86_400_000,
    )
    assert policy_of(config.retention, "c").retention_ms is None
