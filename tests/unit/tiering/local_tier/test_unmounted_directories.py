"""A directory of ours that is empty since its disk is not mounted is offline, and nothing is written there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from local_tiers import ORDERS, Host, produce

from local_log.errors import Unreadable
from local_log.formats.filenames import TopicPartition
from local_log.os_disk import OsWritableDisk
from tiering.agent.configured import memory_file
from tiering.agent.wiring import build
from tiering.config.load import load_config
from tiering.lag.archived import NOTHING
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.local_tier.service import TierService
from tiering.local_tier.topics_file import read_topics

FILE = "/b/tiering-topics.json"


@pytest.fixture
def host() -> Host:
    """A topic with a log in /a and one in /b; the disk of /a is not mounted."""
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2)
    produce(tier, ORDERS, 20)
    tier.stop()
    unmount(host)
    return host


def unmount(host: Host) -> None:
    host.disk.rename("/a", "/unmounted")
    host.disk.make_folder("/a")


def mount(host: Host) -> None:
    host.disk.delete_folder("/a")
    host.disk.rename("/unmounted", "/a")


def offline(tier: LocalTier) -> list[str]:
    return [failure.directory for failure in tier.offline]


def test_it_is_offline_and_told_and_gets_no_file_but_the_lock(host: Host) -> None:
    said: list[str] = []
    tier = host.tier()
    TierService(tier, lambda: host.now, said.append).start()
    assert offline(tier) == ["/a"]
    assert any("/a: this log directory is offline" in m and "no log of orders-0; mount its disk" in m for m in said), said
    tier.create_topic("state")
    assert set(host.disk.names("/a")) <= {".lock"}
    with pytest.raises(Unreadable, match="mount its disk"):
        OwnLogDir(host.disk, "/a", tier).partitions()
    assert OwnLogDir(host.disk, "/b", tier).partitions() == (TopicPartition("orders", 1), TopicPartition("state", 0))
    assert tier.stop() == ()
    mount(host)
    tier = host.started()
    assert (offline(tier), tier.log(ORDERS).log_end_offset) == ([], 20)


def test_an_older_file_of_topics_does_not_say_which_directories_were_used_so_that_any_may_have_been(host: Host) -> None:
    content = json.loads(host.disk.read(FILE))
    del content["directories"]
    host.disk.truncate(FILE, 0)
    host.disk.write(FILE, 0, json.dumps(content).encode())
    assert offline(host.started()) == ["/a"]


def test_a_user_says_that_a_disk_is_new_by_an_empty_file(host: Host) -> None:
    host.disk.write("/a/meta.properties", 0, b"")
    tier = host.started()
    assert (offline(tier), tier.missing()) == ([], (ORDERS,))
    assert b"cluster.id=" in host.disk.read("/a/meta.properties")


def test_a_directory_that_had_no_logs_and_one_more_are_formatted(host: Host) -> None:
    mount(host)
    host.dirs = ("/a", "/b", "/c")
    tier = host.started()
    assert (offline(tier), read_topics(host.disk.read(FILE)).directories) == ([], ("/a", "/b", "/c"))
    tier.stop()
    host.disk.delete_folder("/c")
    host.disk.make_folder("/c")
    assert offline(host.started()) == []


def test_one_more_directory_is_formatted_while_another_is_not_mounted(host: Host) -> None:
    host.dirs = ("/b", "/c")
    tier = host.started()
    assert (offline(tier), tier.missing()) == ([], (ORDERS,))
    assert "meta.properties" in host.disk.names("/c")


def test_an_agent_that_has_archived_logs_of_its_only_directory_does_not_start_on_an_empty_one(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    given = {
        "log.dirs": str(logs), "own.log.dirs": "true", "archive.url": str(tmp_path / "archive"),
        "agent.state.dir": str(tmp_path / "state"),
    }  # fmt: skip
    config = load_config(None, {}, OsWritableDisk(), [f"{name}={text}" for name, text in given.items()])
    build(config, {}, print)
    memory = memory_file(config, {})
    archived = {"__consumer_offsets-0": NOTHING, "orders-0": replace(NOTHING, segments=1)}
    memory.save(type(memory.load())(archived=archived))
    with pytest.raises(Unreadable, match=r"logs: empty, although it had logs of orders-0, __consumer_offsets-0; mount the disk"):
        build(config, {}, print)
    (logs / "meta.properties").touch()
    build(config, {}, print)


def test_an_agent_remembers_directories_by_their_real_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        config = load_config(None, {}, OsWritableDisk(), ["log.dirs=data", "own.log.dirs=true", "archive.url=archive"])
        names.append(memory_file(config, {"HOME": "/home"}).name)
    assert len({*names}) == 2
