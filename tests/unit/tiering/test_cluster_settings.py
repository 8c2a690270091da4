"""What brokers keep of topics, by their own metadata: asked of log directories, and remembered for a while."""

from pathlib import Path

import pytest
from archive_fakes import FixedClock
from golden_logs import metadata_log

from local_log.cluster.image import ClusterTopic
from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk
from tiering.cluster import BrokerRetention, Cluster, kept_of

IDS = {"state": "VynhzvMTTY-9vvHg1k-Qhg", "orders": "EMeNEVgnQ2-9nf7l6Rr3rw", "plain": "VVka0l47TeCfwRQMpgPXiQ"}
DAY_MS = 86_400_000
NEWEST = "__cluster_metadata-0/00000000000000000083-0000000002.checkpoint"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return metadata_log(tmp_path / "logs")


def of(*paths: Path, clock: FixedClock | None = None) -> Cluster:
    return Cluster(tuple(LogDir(OsDisk(), str(path)) for path in paths), clock or FixedClock())


def test_a_topic_s_own_settings_come_before_its_brokers(logs: Path) -> None:
    (logs / "meta.properties").write_text("version=1\nnode.id=1\n")
    cluster = of(logs)
    assert cluster.retention("state", IDS["state"]) == BrokerRetention(("compact",), DAY_MS, 900_000, {0: 1})
    assert cluster.retention("orders", IDS["orders"]) == BrokerRetention(None, -1, 1 << 30, {0: 1, 1: 1, 2: 1})
    assert cluster.retention("plain", IDS["plain"]) == BrokerRetention(None, DAY_MS, 900_000, {0: 1, 1: 1})


def test_what_another_broker_is_told_does_not_count(logs: Path) -> None:
    (logs / "meta.properties").write_text("version=1\nnode.id=2\n")
    assert of(logs).retention("plain", IDS["plain"]) == BrokerRetention(None, DAY_MS, None, {0: 1, 1: 1})


@pytest.mark.parametrize("policy", [None, ("delete",), ("compact", "delete")])
def test_brokers_delete_from_every_topic_that_they_do_not_only_compact(policy: tuple[str, ...] | None) -> None:
    assert BrokerRetention(policy, 1, 1).deletes
    assert not BrokerRetention(("compact",), 1, 1).deletes


@pytest.mark.parametrize(
    ("settings", "ms", "size"),
    [
        ({"local.retention.ms": "5", "local.retention.bytes": "6"}, 7, 8),
        ({"local.retention.ms": "5", "local.retention.bytes": "6", "remote.storage.enable": "true"}, 5, 6),
        ({"local.retention.ms": "-2", "local.retention.bytes": "-1", "remote.storage.enable": "true"}, 7, -1),
        ({"remote.storage.enable": "true"}, 7, 8),
    ],
)
def test_local_limits_count_for_topics_with_kafka_s_own_tiered_storage(settings: dict[str, str], ms: int, size: int) -> None:
    topic = ClusterTopic("t", "A" * 22, {}, {})
    kept = kept_of(topic, {"retention.ms": "7", "retention.bytes": "8", **settings})
    assert (kept.retention_ms, kept.retention_bytes) == (ms, size)


def test_nobody_knows_a_topic_of_another_id_or_without_metadata(logs: Path, tmp_path: Path) -> None:
    assert of(logs).retention("plain", "A" * 22) is None
    (tmp_path / "empty").mkdir()
    assert of(tmp_path / "empty").retention("plain", IDS["plain"]) is None
    assert of().retention("plain", IDS["plain"]) is None


def test_any_of_the_log_directories_may_have_the_metadata(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert of(tmp_path / "empty", logs).retention("state", IDS["state"]) is not None


def test_of_several_the_one_counts_that_reaches_farthest(logs: Path, tmp_path: Path) -> None:
    older = metadata_log(tmp_path / "older")
    for name in (NEWEST, "__cluster_metadata-0/00000000000000000041-0000000001.checkpoint"):
        (older / name).unlink()
    log = older / "__cluster_metadata-0/00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:5_000])
    alone = of(older).retention("orders", IDS["orders"])
    assert alone is not None
    assert alone.retention_ms == 7 * DAY_MS
    for paths in ((older, logs), (logs, older)):
        both = of(*paths).retention("orders", IDS["orders"])
        assert both is not None
        assert both.retention_ms == -1


def test_what_was_read_is_read_again_after_a_minute(logs: Path) -> None:
    clock = FixedClock()
    cluster = of(logs, clock=clock)
    known = cluster.retention("state", IDS["state"])
    (logs / "__cluster_metadata-0").rename(logs / "gone")
    clock.now += 59_999
    assert cluster.retention("state", IDS["state"]) == known
    clock.now += 1
    assert cluster.retention("state", IDS["state"]) is None
