"""An agent that owns its log directory: it archives, drops what the archive has, and deletes nothing that only the disk has."""

from collections.abc import Callable
from copy import deepcopy
from threading import Thread
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from agents import LOGS, MINUTE_MS
from archive_fakes import Door
from local_tiers import ORDERS, produce
from own_worlds import OwnWorld

from local_log.errors import Unavailable
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, TopicPartition
from remote.keys import PartitionPath
from remote.manifest.store import load_newest
from tiering.agent.schedule import Job, Kind
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.expire import ExpireTask
from tiering.agent.watch import look
from tiering.local_tier.errors import InvalidTopicConfig
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.local_tier.own_topics import OwnTopics
from tiering.local_tier.reads import TierReads
from tiering.local_tier.service import StartStopped

T = TypeVar("T")


class Shut(Door):
    """A store that answers only while it is open."""

    is_open = True

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if not self.is_open:
            raise Unavailable(f"{verb} {key}: no answer")
        return call()


@pytest.fixture
def world() -> OwnWorld:
    world = OwnWorld()
    world.start().create_topic("orders")
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    return world


def logs_on_disk(world: OwnWorld) -> list[int]:
    return [int(name[:20]) for name in world.disk.names(f"{LOGS}/orders-0") if name.endswith(".log")]


def test_what_is_archived_leaves_the_disk_once_local_retention_says_so_and_the_rest_follows(world: OwnWorld) -> None:
    before = logs_on_disk(world)
    agent = world.run(12)
    assert world.manifest().end_offset == 100, "the idle active segment was rolled and archived, as Kafka does"
    assert len(before) > 5
    assert logs_on_disk(world) == [100]
    log = world.tier.log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 100, 100)
    view = agent.view()
    assert view.last_error is None
    assert view.local_tier is not None
    assert view.local_tier.row()["partitions"] == [
        {"topic": "orders", "partition": 0, "log_start_offset": 0, "local_log_start_offset": 100, "high_watermark": 100,
         "log_end_offset": 100},
    ]  # fmt: skip
    assert (view.local_tier.state, view.local_tier.problems, world.said) == ("running", (), [])


def test_a_record_is_archived_whatever_the_high_watermark_checkpoint_says(world: OwnWorld) -> None:
    """The offsets are those of the open log: its checkpoint file is not written yet."""
    world.settings["local.retention.ms"] = "-1"
    world.run(1)
    assert world.manifest().end_offset == logs_on_disk(world)[-1]


def test_what_is_deleted_with_its_topic_is_no_loss_and_what_is_removed_behind_our_back_is_one(world: OwnWorld) -> None:
    world.settings["local.retention.ms"] = "-1"
    world.tier.create_topic("clicks")
    clicks = TopicPartition("clicks", 0)
    produce(world.tier, clicks, 100, now_ms=world.clock.now)
    world.run(1)
    paths = [PartitionPath(p.topic, world.tier.topics()[p.topic].topic_id or "", 0) for p in (ORDERS, clicks)]
    world.tier.delete_topic("orders")
    world.disk.delete_folder(f"{LOGS}/clicks-0")
    world.run(3)
    lost = [loss for path in paths for loss in load_newest(world.archive, path).manifest.losses]  # type: ignore[union-attr]
    assert [loss.acknowledged_by for loss in lost] == ["the deletion of the topic", ""]
    assert [loss.end for loss in lost] == [100, 100]
    assert {said.split()[0].rstrip(":") for said in world.said} == {"clicks-0"}


def test_while_the_store_does_not_answer_nothing_is_deleted(world: OwnWorld) -> None:
    door = Shut(world.archive)
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2, door)
    before = logs_on_disk(world)
    world.tier.alter_configs("orders", {"local.retention.ms": "1"})
    door.is_open = False
    agent = world.run(30, door)
    assert logs_on_disk(world)[: len(before)] == before
    assert agent.view().last_error is not None
    door.is_open = True
    world.run(12, door)
    assert logs_on_disk(world) == [100]


def test_with_nothing_to_delete_the_store_is_asked_nothing(world: OwnWorld) -> None:
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2)
    world.run(2)
    world.archive.calls.clear()
    world.run(40)
    lists = [call for call in world.archive.calls if call[0] == "list"]
    assert len(lists) <= 3, "the look of a new agent, and retention's at its start"


def test_the_log_start_follows_the_archive_and_the_archive_the_log_start(world: OwnWorld) -> None:
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2)
    bases = logs_on_disk(world)
    world.tier.log(ORDERS).maybe_increment_log_start_offset(bases[3])
    world.run(7)
    assert world.manifest().log_start_offset == bases[3]
    world.tier.alter_configs("orders", {"retention.ms": str(20 * MINUTE_MS), "local.retention.ms": "-2"})
    world.run(90)
    assert world.manifest().log_start_offset == 100
    assert world.tier.log(ORDERS).log_start_offset == 100
    assert logs_on_disk(world) == [100]


def test_a_restart_after_a_power_failure_reads_on_where_the_archive_and_the_disk_meet(world: OwnWorld) -> None:
    world.run(12)
    produce(world.tier, ORDERS, 7, now_ms=world.clock.now)
    world.tier.log(ORDERS).flush()
    world.disk = world.disk.after_power_failure()
    log = world.start().log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 100, 107)
    world.run(12)
    assert world.manifest().end_offset == 107


def test_a_directory_restored_from_an_older_copy_is_not_archived_over_what_is_and_that_is_told_once(world: OwnWorld) -> None:
    """Its leader epoch is the same, and its records have the offsets of other ones."""
    world.settings["local.retention.ms"] = str(20 * MINUTE_MS)
    world.service.stop()
    older = world.disk.contents(LOGS)
    produce(world.start(), ORDERS, 30, now_ms=world.clock.now)
    world.run(8)
    before = world.manifest()
    assert before.end_offset > 110
    world.service.stop()
    world.disk.delete_folder(LOGS)
    for path, body in older.items():
        folder = path.rpartition("/")[0]
        if not world.disk.exists(folder):
            world.disk.make_folder(folder)
        world.disk.write(path, 0, body)
    world.start()
    produce(world.tier, ORDERS, 60, now_ms=world.clock.now)
    world.run(60)
    after = world.manifest()
    assert [e for e in after.entries if e not in before.entries] == []
    assert logs_on_disk(world)[0] < before.end_offset
    (copy,) = [said for said in world.said if "has other records than the archive" in said]
    assert "read them from the log, create the topic anew and append them there" in copy
    assert len(world.said) == 2, "local retention says that it deletes nothing"


@pytest.mark.parametrize("appended", [30, 90, 160])
def test_records_appended_to_an_older_copy_stay_where_the_archive_has_expired_the_ones_of_their_offsets(appended: int) -> None:
    """What the archive no longer has cannot be compared, but what follows it can: the log has parted from the archive before."""
    world = OwnWorld()
    world.start().create_topic("orders", config={"retention.ms": str(50 * MINUTE_MS)})
    produce(world.tier, ORDERS, 20, now_ms=world.clock.now)
    world.service.stop()
    older = deepcopy(world.disk)
    world.start()
    for _ in range(6):
        produce(world.tier, ORDERS, 30, now_ms=world.clock.now)
        world.run(15)
    assert (world.manifest().log_start_offset, world.manifest().end_offset) == (110, 200)
    world.service.stop()
    world.disk, older.now_ms = older, world.clock.now
    log = world.start().log(ORDERS)
    produce(world.tier, ORDERS, appended, now_ms=world.clock.now)
    agent = world.run(30)
    assert (log.log_start_offset, logs_on_disk(world)[0], log.log_end_offset) == (0, 0, 20 + appended)
    assert "create the topic anew and append them there" in str(agent.view().last_error)


def test_a_log_whose_folder_lacks_the_id_of_its_topic_gets_it_and_is_read_on_from_the_archive() -> None:
    """A crash kept the broker from writing it, before we took the directory over. Archives are found by the id in the folder."""
    world, second = OwnWorld(), TopicPartition("orders", 1)
    topic = world.start().create_topic("orders", 2)
    world.service.stop()
    world.disk.delete(f"{LOGS}/{second}/partition.metadata")
    world.disk.delete(f"{LOGS}/tiering-topics.json")
    tier = world.start()
    assert (tier.topics()["orders"].topic_id, tier.partitions()) == (topic.topic_id, (ORDERS, second))
    produce(tier, second, 60, now_ms=world.clock.now)
    world.run(30)
    assert tier.log(second).local_log_start_offset == 60
    assert world.manifest(second).end_offset == 60
    assert sum(batch.num_rows for batch in TierReads(tier, world.archive).log(second).read(0)) == 60


def test_a_failing_disk_is_told_and_ends_the_service(world: OwnWorld) -> None:
    failure = world.tier._manager.directories[0].disk.fail("Input/output error")
    assert not world.service.tick()
    assert world.service.failure is not None
    assert str(failure.cause) in str(world.service.failure)
    assert world.service.status().state == "failed"
    assert (world.said, world.service.status().problems) == ([], (str(world.service.failure),)), "whoever runs it prints it"


def test_an_unexpected_exception_of_a_background_task_is_told_and_ends_the_service(
    world: OwnWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(now_ms: int) -> None:
        raise MemoryError("offset map")

    monkeypatch.setattr(world.tier._manager, "tick", fails)
    assert not world.service.tick()
    assert isinstance(world.service.failure, MemoryError)
    assert world.service.status().state == "failed"
    assert world.said == ["the background tasks of the logs ended: MemoryError('offset map')"]


def test_a_problem_that_cannot_be_reported_is_in_the_status_and_the_background_tasks_go_on(
    world: OwnWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(message: str) -> None:
        raise BrokenPipeError("standard error is closed")

    monkeypatch.setattr(world.service, "_report", fails)
    monkeypatch.setattr(world.tier._manager, "tick", lambda now_ms: (Unavailable("a task fails"),))
    assert world.service.tick()
    status = world.service.status()
    assert (status.state, world.service.failure) == ("running", None)
    assert status.problems[0] == "a task fails"
    assert "could not be reported: BrokenPipeError" in status.problems[1]


def test_a_disk_that_fails_while_the_logs_are_listed_leaves_the_status_of_the_others(
    world: OwnWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    was = world.tier._manager.partitions

    def listed() -> tuple[TopicPartition, ...]:
        found = was()
        world.tier._manager.directories[0].disk.fail("Input/output error")
        return found

    monkeypatch.setattr(world.tier._manager, "partitions", listed)
    assert OwnLogDir(world.disk, LOGS, world.tier).checkpoint(HIGH_WATERMARK_CHECKPOINT) == {}
    status = world.service.status()
    assert (status.logs, len(status.offline)) == (0, 1)


def test_a_topic_that_is_deleted_meanwhile_does_not_fail_the_status_nor_a_look(world: OwnWorld) -> None:
    """The deletion waits until the offsets of all logs that were listed are there."""
    was, deletion = world.tier._manager.partitions, Thread(target=lambda: world.tier.delete_topic("orders"))

    def listed() -> tuple[TopicPartition, ...]:
        found = was()
        if deletion.ident is None:
            deletion.start()
        deletion.join(0.05)
        return found

    world.tier._manager.partitions = listed  # type: ignore[method-assign]
    assert [row.partition for row in world.service.status().offsets] == [ORDERS]
    deletion.join()
    assert world.service.status().offsets == ()


def test_a_stop_while_logs_are_recovered_does_not_wait_for_the_others_and_the_next_start_recovers_them(world: OwnWorld) -> None:
    world.tier.create_topic("state", 3)
    world.tier.log(ORDERS).flush(also_active=True)
    world.disk = world.disk.after_power_failure()
    with pytest.raises(StartStopped):
        world.start(lambda: world.service.status().logs_left <= 2)
    assert world.service.status().logs_left == 2
    assert world.service.stop() == ()
    assert ".kafka_cleanshutdown" not in world.disk.names(LOGS)
    log = world.start().log(ORDERS)
    assert (world.tier.was_clean, log.log_end_offset, len(world.tier.partitions())) == (False, 100, 4)


UNTIERED = {"remote.storage.enable": "false"}


@pytest.mark.parametrize("changes", [UNTIERED, {"cleanup.policy": "compact"}])
def test_the_tiering_of_a_topic_does_not_end_while_only_the_archive_has_its_first_records(
    world: OwnWorld, changes: dict[str, str]
) -> None:
    world.run(12)
    with pytest.raises(InvalidTopicConfig, match=r"only the archive has the offsets from 0 to 99 of .*/orders-0"):
        world.tier.alter_configs("orders", changes)
    assert world.tier.topic("orders").config == {}
    world.tier.alter_configs("orders", {"remote.log.copy.disable": "true", "local.retention.ms": "-2"})


def test_the_archive_of_a_log_without_tiering_keeps_what_the_log_drops(world: OwnWorld) -> None:
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2)
    world.tier.alter_configs("orders", UNTIERED)
    world.tier.log(ORDERS).maybe_increment_log_start_offset(50)
    agent = world.run(20)
    assert agent.view().last_error is None
    assert world.manifest().log_start_offset == 0
    assert not world.manifest().deleting


@pytest.mark.parametrize(("setting", "off"), [("remote.storage.enable", "false"), ("remote.log.copy.disable", "true")])
def test_a_topic_s_own_settings_end_its_copies_and_resume_them(world: OwnWorld, setting: str, off: str) -> None:
    world.settings["local.retention.ms"] = "-1"
    world.tier.alter_configs("orders", {})
    world.run(2)
    before = world.manifest().end_offset
    world.tier.alter_configs("orders", {setting: off})
    produce(world.tier, ORDERS, 50, now_ms=world.clock.now)
    world.run(12)
    assert world.manifest().end_offset == before
    world.tier.alter_configs("orders", {setting: None})
    produce(world.tier, ORDERS, 50, now_ms=world.clock.now)
    world.run(12)
    assert world.manifest().end_offset == logs_on_disk(world)[-1] > before


def test_a_topic_that_is_created_anew_does_not_get_the_offsets_of_the_former_one(world: OwnWorld) -> None:
    """The agent has looked at the folder before, and works on it after."""
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2)
    world.tier.log(ORDERS).maybe_increment_log_start_offset(90)
    (mark,) = look(OwnLogDir(world.disk, LOGS, world.tier), lambda topic: True, world.clock.now)
    world.tier.delete_topic("orders")
    world.tier.create_topic("orders")
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    own = OwnTopics((), world.clock, tier=world.tier)
    copy = CopyTask(world.archive, world.clock, world.ids)
    expire = ExpireTask(world.archive, world.clock, world.ids, (), 5 * MINUTE_MS, own, own)
    seen: Any = SimpleNamespace(marks={mark.folder: mark})
    found = [task.turn(Job(task.kind, mark.folder), seen)() for task in (copy, expire)]
    assert [(of.has_more, of.error, of.archived) for of in found] == [(False, None, None)] * 2
    world.run(12)
    assert (world.manifest().log_start_offset, world.manifest().end_offset) == (0, 100)


def test_the_archive_of_a_deleted_topic_gets_no_records_of_the_one_that_was_created_in_its_place(world: OwnWorld) -> None:
    """The agent has planned copies for the first one and copied one segment; the files of the other one have the same names."""
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    (mark,) = look(OwnLogDir(world.disk, LOGS, world.tier), lambda topic: True, world.clock.now)
    copy, job = CopyTask(world.archive, world.clock, world.ids), Job(Kind.copy, mark.folder)
    begun = [copy._look(job, mark), copy._step(job, mark)]
    assert [of.has_more for of in begun] == [True, True]
    former = PartitionPath("orders", world.tier.topic("orders").topic_id or "", 0)
    world.tier.delete_topic("orders")
    world.tier.create_topic("orders")
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    rest = copy._step(job, mark)
    assert (rest.copied, rest.error, rest.has_more) == (None, None, False)
    stored = load_newest(world.archive, former)
    assert stored is not None
    assert begun[1].copied is not None
    assert stored.manifest.end_offset == begun[1].copied.end_offset
    world.run(12)
    assert (world.manifest().log_start_offset, world.manifest().end_offset) == (0, 100)


def test_records_at_offsets_that_the_archive_has_of_others_stay_on_the_disk(world: OwnWorld) -> None:
    """A directory that was truncated, or restored from an older copy, and was appended to: its leader epoch is the same."""
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2)
    world.tier._manager.truncate({ORDERS: 40})
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now + 1)
    world.tier.alter_configs("orders", {"local.retention.ms": "1"})
    agent = world.run(12)
    assert logs_on_disk(world)[0] == 40
    assert "with other records" in str(agent.view().last_error)
