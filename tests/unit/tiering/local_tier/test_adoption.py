"""Which topics and logs a start finds: after disks were absent, directories were used apart, or a broker had them."""

import pytest
from local_tiers import ORDERS, Host, produce
from simulated_disk import Crashed

from local_log.formats.filenames import TopicPartition
from tiering.local_tier.adoption import Folder, adopted, merged, renamings
from tiering.local_tier.errors import TopicExists
from tiering.local_tier.service import TierService
from tiering.local_tier.topics_file import DELETED_MAX, Topic, Topics, write_topics

OLD, NEW, OTHER = "A" * 22, "B" * 22, "C" * 22
STATE = TopicPartition("state", 0)


def host_without_a() -> tuple[Host, str | None]:
    """A host whose topic `orders` has a log in /a and one in /b, and whose directory /a is not mounted; with the topic's id."""
    host = Host()
    tier = host.started()
    topic = tier.create_topic("orders", 2, {"segment.ms": "9"})
    produce(tier, ORDERS, 20)
    tier.stop()
    host.dirs = ("/b",)
    return host, topic.topic_id


def folder(number: int, topic_id: str | None, topic: str = "orders") -> Folder:
    return Folder(f"/a/{topic}-{number}", TopicPartition(topic, number), topic_id)


def test_a_topic_deleted_while_a_disk_was_away_stays_deleted_and_the_new_one_of_its_name_keeps_its_logs() -> None:
    host, old = host_without_a()
    tier = host.started()
    tier.delete_topic("orders")
    assert tier._known.deleted == {old: "orders"}
    topic = tier.create_topic("orders", 1, {"cleanup.policy": "compact"})
    produce(tier, ORDERS, 3)
    tier.stop()
    host.dirs = ("/b", "/a")
    for _ in range(2):
        tier = host.started()
        assert tier.topics() == {"orders": topic}
        assert (tier.log(ORDERS).folder.path, tier.log(ORDERS).log_end_offset) == ("/b/orders-0", 3)
        assert tier.log(ORDERS).folder.config.compact
        tier.stop()
    host.later(host.started(), 60_000)
    assert not [name for name in host.disk.names("/a") if name.startswith("orders")]


def test_a_topic_created_anew_where_a_start_found_the_deleted_one_keeps_its_records_in_a_crash() -> None:
    """The log start offset and the recovery point of the earlier log, which the checkpoints had, are not the new one's."""
    host = Host(dirs=("/a",))
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 40)
    tier.log(ORDERS).maybe_increment_log_start_offset(33)
    tier.stop()
    host.dirs = ("/b", "/a")
    tier = host.started()
    for topic in ("state", "views"):
        tier.create_topic(topic)  # in /b, so that /a has the fewest logs
    tier.stop()
    host.dirs = ("/b",)
    tier = host.started()
    tier.delete_topic("orders")
    tier.stop()
    host.dirs = ("/b", "/a")
    tier = host.started()
    tier.create_topic("orders")
    assert tier.log(ORDERS).folder.path == "/a/orders-0"
    produce(tier, ORDERS, 5)
    tier.log(ORDERS).flush(also_active=True)
    host.loses_power(0.0)
    tier = host.started()
    assert (tier.log(ORDERS).offsets.log_start, tier.log(ORDERS).log_end_offset) == (0, 5)


def test_a_topic_whose_logs_were_all_deleted_is_forgotten() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2)
    tier.delete_topic("orders")
    assert tier._known.deleted == {}


def test_the_deletion_of_a_topic_goes_on_where_one_of_its_logs_may_be_in_an_offline_directory() -> None:
    host, old = host_without_a()
    host.dirs = ("/a", "/b")
    tier = host.tier()
    tier._manager.directories[0].disk.fail("Input/output error")
    tier.start()
    tier.delete_topic("orders")
    assert (tier.partitions(), tier._known.deleted) == ((), {old: "orders"})


def test_a_topic_deleted_while_the_disk_of_its_log_failed_can_be_created_again_at_once() -> None:
    host = Host(dirs=("/a",))
    tier = host.started()
    tier.create_topic("orders")
    tier.stop()
    host.dirs = ("/a", "/b")
    tier = host.started()
    tier._manager.directories[0].disk.fail("Input/output error")
    with pytest.raises(TopicExists):
        tier.create_topic("orders")
    tier.delete_topic("orders")
    topic = tier.create_topic("orders")
    produce(tier, ORDERS, 3)
    assert tier.log(ORDERS).folder.path == "/b/orders-0"
    tier.stop()
    host.loses_power()
    tier = host.started()
    assert tier.topics() == {"orders": topic}
    assert (tier.log(ORDERS).folder.path, tier.log(ORDERS).log_end_offset) == ("/b/orders-0", 3)
    assert any(name.endswith("-delete") for name in host.disk.names("/a"))


def test_a_topic_without_an_id_does_not_come_back_with_other_settings_when_its_deletion_is_interrupted() -> None:
    for calls in range(1, 100):
        host = Host(dirs=("/a",))
        tier = host.started()
        tier.create_topic("state", 2, {"cleanup.policy": "compact"})
        tier.stop()
        for number in (0, 1):
            host.disk.delete(f"/a/state-{number}/partition.metadata")
        file = "/a/tiering-topics.json"
        state = Topics({"state": Topic(None, (0, 1), {"cleanup.policy": "compact"})}, version=9, directories=("/a",))
        host.disk.truncate(file, 0)
        host.disk.write(file, 0, write_topics(state))
        tier = host.started()
        host.disk.crash_after = len(host.disk.calls) + calls
        try:
            tier.delete_topic("state")
        except Crashed:
            host.loses_power(0.0)
        else:
            break
        tier = host.started()
        assert [topic.config for topic in tier.topics().values()] in ([], [{"cleanup.policy": "compact"}])
        if tier.topics():
            tier.delete_topic("state")
        assert (tier.partitions(), dict(tier.topics())) == ((), {})
    else:
        pytest.fail("it was interrupted each time")


def test_a_topic_that_a_broker_has_given_an_id_keeps_its_settings_unless_the_broker_has_some() -> None:
    """It is from before topic ids, and the broker had the directory meanwhile."""
    known = Topics({"state": Topic(None, (0, 1), {"cleanup.policy": "compact"})}, version=1)
    there = [folder(0, NEW, "state"), folder(1, NEW, "state")]
    assert adopted(known, there, {}).topics == {"state": Topic(NEW, (0, 1), {"cleanup.policy": "compact"})}
    changed = {"cleanup.policy": "delete"}
    assert adopted(known, there, {NEW: changed}).topics == {"state": Topic(NEW, (0, 1), changed)}


def test_a_log_of_another_topic_of_the_same_name_is_set_aside_as_a_stray_and_told() -> None:
    """As Kafka's LogManager does before it looks for two folders of one partition."""
    host = Host(dirs=("/a",))
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 5)
    tier.stop()
    host.dirs = ("/b",)
    tier = host.started()
    topic = tier.create_topic("orders", 1, {"segment.ms": "9"})
    tier.alter_configs("orders", {})
    tier.stop()
    host.dirs = ("/a", "/b")
    said: list[str] = []
    tier = host.tier()
    started = TierService(tier, lambda: host.now, said.append).start()
    assert tier.topics() == {"orders": topic}
    assert tier.log(ORDERS).log_end_offset == 0
    (stray,) = started.strays
    assert stray.startswith("/a/orders-0.")
    assert stray.endswith("-stray")
    assert f"{stray}/00000000000000000000.log" in {f"{stray}/{name}" for name in host.disk.names(stray)}
    assert any(f"/a/orders-0: its topic id is {OLD[:20]}" in m and f"set aside as {stray}" in m for m in said), said
    tier.stop()
    host.disk.rename(stray, "/a/kept-0")
    assert host.started().log(TopicPartition("kept", 0)).log_end_offset == 5


def test_topics_created_while_directories_were_used_apart_keep_their_settings_and_it_is_told() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders")
    tier.stop()
    host.dirs = ("/b",)
    tier = host.started()
    state = tier.create_topic("state", 1, {"cleanup.policy": "compact"})
    tier.stop()
    host.dirs = ("/a",)
    tier = host.started()
    for ms in range(5_000, 5_003):
        tier.alter_configs("orders", {"segment.ms": str(ms)})
    tier.stop()
    host.dirs = ("/a", "/b")
    tier = host.started()
    assert tier.topics()["state"] == state
    assert tier.topics()["orders"].config == {"segment.ms": "5002"}
    assert tier.log(STATE).folder.config.compact
    assert any("/b/tiering-topics.json: topic state is taken from here" in note for note in tier.notes), tier.notes
    tier.stop()
    tier = host.started()
    assert (tier.topics()["state"], tier.notes) == (state, ())


def test_files_of_one_version_that_differ_are_told_and_written_anew() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders")
    tier.stop()
    for path, ms in (("/a", "5000"), ("/b", "6000")):
        host.dirs = (path,)
        tier = host.started()
        tier.alter_configs("orders", {"segment.ms": ms})
        tier.stop()
    host.dirs = ("/a", "/b")
    tier = host.started()
    assert tier.topics()["orders"].config == {"segment.ms": "5000"}
    assert any("differ and have the same version" in note and "/a/tiering-topics.json count" in note for note in tier.notes)
    assert host.disk.read("/a/tiering-topics.json") == host.disk.read("/b/tiering-topics.json")


TWO = {"/a/f": Topics({"orders": Topic(NEW, (0,))}, {}, 9)}


@pytest.mark.parametrize(
    ("older", "there", "topics", "deleted"),
    [
        (Topics({"state": Topic(OLD, (0,))}), (), {"orders": NEW}, {}),  # deleted since
        (Topics({"state": Topic(OLD, (0,))}), (folder(0, OLD, "state"),), {"orders": NEW, "state": OLD}, {}),
        (Topics({"orders": Topic(OLD, (0,))}), (folder(0, OLD),), {"orders": NEW}, {}),  # the newer file's topic of the name
        (Topics({}, {OLD: "state", NEW: "orders"}), (), {"orders": NEW}, {OLD: "state"}),
    ],
)
def test_the_newest_file_that_mentions_a_topic_counts(
    older: Topics, there: tuple[Folder, ...], topics: dict[str, str], deleted: dict[str, str]
) -> None:
    known, _ = merged({"/b/f": older, **TWO}, there)
    assert ({name: topic.topic_id for name, topic in known.topics.items()}, known.deleted) == (topics, deleted)


def test_a_folder_without_an_id_is_the_known_topic_s_and_never_deleted_by_its_name() -> None:
    known = Topics({"orders": Topic(NEW, (0,))}, {OLD: "orders", OTHER: "state"})
    folders = [folder(0, NEW), folder(1, None), folder(2, OLD), folder(0, None, "state"), folder(0, None, "events")]
    after = adopted(known, folders, {})
    assert after.topics == {"orders": Topic(NEW, (0, 1)), "events": Topic(None, (0,))}
    assert [(one.folder.path, one.mark) for one in renamings(after, folders)] == [
        ("/a/orders-2", "-delete"), ("/a/state-0", "-stray"),
    ]  # fmt: skip


def test_of_two_unknown_topics_of_one_name_the_one_that_the_broker_s_metadata_has_is_adopted() -> None:
    folders = [folder(0, OLD), folder(1, NEW)]
    assert adopted(Topics(), folders, {}).topics == {"orders": Topic(OLD, (0,))}
    after = adopted(Topics(), folders, {NEW: {"segment.ms": "9"}})
    assert after.topics == {"orders": Topic(NEW, (1,), {"segment.ms": "9"})}
    assert [one.folder.path for one in renamings(after, folders)] == ["/a/orders-0"]


def test_so_many_deleted_topics_are_remembered_the_last_ones() -> None:
    known = Topics()
    for number in range(DELETED_MAX + 1):
        known = known.with_topic("orders", Topic(f"{number:022d}", (0,))).without("orders")
    assert len(known.deleted) == DELETED_MAX
    assert next(iter(known.deleted)) == f"{1:022d}"
