"""How long brokers keep a topic: by their own metadata first, by the configuration where that says nothing."""

from pathlib import Path

import pytest
from archive_fakes import FixedClock
from golden_logs import metadata_log

from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk
from tiering.agent.topic_retention import known_retention
from tiering.cluster import Cluster
from tiering.config.load import load_config
from tiering.lag.unprotected import TopicRetention

DAY_MS = 86_400_000


def known(folder: Path, topic: str, **settings: str) -> TopicRetention | None:
    overrides = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    cluster = Cluster((LogDir(OsDisk(), str(folder)),), FixedClock())
    return known_retention(load_config(None, {}, OsDisk(), overrides), cluster)(topic)


@pytest.mark.parametrize(
    ("topic", "kept"),
    [
        ("plain", TopicRetention(DAY_MS, None)),
        ("orders", TopicRetention(None, 1 << 30)),
        ("state", TopicRetention(None, None)),
        ("both", TopicRetention(3_600_000, None)),
    ],
)
def test_the_brokers_metadata_says_it(tmp_path: Path, topic: str, kept: TopicRetention) -> None:
    assert known(metadata_log(tmp_path), topic) == kept


def test_the_configuration_says_what_the_metadata_does_not(tmp_path: Path) -> None:
    folder = metadata_log(tmp_path / "logs")
    assert known(folder, "plain", retention_ms="5", retention_bytes="7") == TopicRetention(DAY_MS, 7)
    assert known(folder, "nobody-s", retention_ms="5") == TopicRetention(5, None)
    assert known(tmp_path, "plain", retention_ms="5") == TopicRetention(5, None)
    assert known(tmp_path, "plain") is None


def test_so_it_does_where_the_metadata_is_damaged(tmp_path: Path) -> None:
    folder = metadata_log(tmp_path)
    for file in (folder / "__cluster_metadata-0").glob("*.checkpoint"):
        file.chmod(0o600)
        file.write_bytes(b"")
    assert known(folder, "plain", retention_ms="5") == TopicRetention(5, None)
