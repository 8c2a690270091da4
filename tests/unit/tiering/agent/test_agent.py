"""The agent's life beside a broker: what it copies, when it asks, and what it leaves alone."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import pytest
from agents import LOGS, MINUTE_MS, STATE, World, roll_again
from archive_fakes import Door, FixedClock, verbs
from logs_to_archive import path_of
from made_manifests import assert_sound_archive
from one_offload import TXN, due_ranges, named

from local_log.errors import Unavailable
from local_log.formats.filenames import TopicPartition
from remote.manifest.store import load_newest
from tiering.agent.memory import MemoryFile
from tiering.agent.tasks.copy import RECHECK_MS
from tiering.cluster import BrokerRetention, Cluster
from tiering.retention.policy import Given

OTHERS = ("g-codec-lz4-0", "g-epochs-0", "g-codec-none-0")
HOUR = 60
T = TypeVar("T")


def test_everything_that_is_due_is_archived_and_nothing_else() -> None:
    world = World().has(TXN, *OTHERS)
    agent, controls = world.agent()
    assert world.run(agent, controls, 1) == 0
    for name, log in world.logs().items():
        assert named(assert_sound_archive(world.archive, path_of(log))) == due_ranges(log), name
    view = agent.view()
    assert [(p.lag.segments - p.lag.waiting, p.error, p.refused) for p in view.partitions] == [(0, None, None)] * 4
    assert all(p.archived and p.archived.segments == len(due_ranges(world.logs()[str(p.partition)])) for p in view.partitions)


def test_an_idle_agent_asks_the_store_nothing_and_reads_no_log() -> None:
    world = World().has(TXN, *OTHERS)
    agent, controls = world.agent()
    read: list[str] = []
    was = world.disk.read

    def reading(file: str, start: int = 0, end: int | None = None) -> bytes:
        read.append(file)
        return was(file, start, end)

    world.clock.when(world.clock.now + 2 * MINUTE_MS, world.archive.calls.clear)
    world.clock.when(world.clock.now + 2 * MINUTE_MS, lambda: setattr(world.disk, "read", reading))
    world.run(agent, controls, 50)
    assert world.archive.calls == []
    of_directory = {"replication-offset-checkpoint", "log-start-offset-checkpoint", "meta.properties"}
    assert {file.rpartition("/")[2] for file in read} == of_directory


def test_after_an_hour_an_idle_partition_is_planned_for_again() -> None:
    world = World().has(TXN)
    agent, controls = world.agent()
    world.clock.when(world.clock.now + 2 * MINUTE_MS, world.archive.calls.clear)
    world.run(agent, controls, RECHECK_MS / MINUTE_MS + 10)
    assert verbs(world.archive.calls) == ["list", "get"]


def test_partitions_take_turns_segment_by_segment() -> None:
    world = World().has(TXN, *OTHERS)
    door = Door(world.archive)
    agent, controls = world.agent(door)
    world.run(agent, controls, 1)
    commits = [call[1].split("/")[0] for call in door.calls if call[0] == "put_if_absent"]
    rounds = [commits[at : at + 4] for at in range(0, 4 * 8, 4)]
    assert all(len(set(one)) == 4 for one in rounds), "none twice before each had its turn"


def test_a_segment_that_is_rolled_is_copied_at_the_next_look() -> None:
    world = World().has("g-codec-lz4-0")
    agent, controls = world.agent()
    rolled_ms = world.clock.now + 10 * MINUTE_MS + 1
    world.clock.when(rolled_ms, lambda: roll_again(world, "g-codec-lz4-0"))
    world.run(agent, controls, 10.6)
    manifest = assert_sound_archive(world.archive, path_of(world.logs()["g-codec-lz4-0"]))
    assert manifest.end_offset == world.logs()["g-codec-lz4-0"].log_end_offset
    assert 0 <= manifest.entries[-1].copied_at_ms - rolled_ms <= 31_000


def test_what_changed_within_the_last_two_seconds_is_looked_at_twice() -> None:
    world = World().has("g-codec-lz4-0")
    agent, controls = world.agent()
    world.clock.when(world.clock.now + 89_000, lambda: roll_again(world, "g-codec-lz4-0"))
    world.clock.when(world.clock.now + 91_000, world.archive.calls.clear)
    world.run(agent, controls, 5)
    assert verbs(world.archive.calls) == ["list", "get"], "once more, and then no more"


def test_a_segment_above_the_high_watermark_is_copied_when_the_watermark_passes_it() -> None:
    partition = "g-codec-lz4-0"
    world = World().has(partition)
    sure = world.disk.read(f"{LOGS}/replication-offset-checkpoint").decode()
    lines = [f"g-codec-lz4 0 {0}" if line.startswith("g-codec-lz4 ") else line for line in sure.splitlines()]
    world.rewrite("replication-offset-checkpoint", "\n".join([*lines, ""]))
    agent, controls = world.agent()
    passes_ms = world.clock.now + 20 * MINUTE_MS
    world.clock.when(passes_ms - 1, lambda: seen.append(agent.view().partitions[0]))
    world.clock.when(passes_ms, lambda: world.rewrite("replication-offset-checkpoint", sure))
    seen: list = []  # type: ignore[type-arg]
    world.run(agent, controls, 21)
    assert seen[0].lag.segments == seen[0].lag.waiting > 5
    assert "reaches past the last stable offset" in seen[0].lag.reason
    assert seen[0].error is None
    assert named(assert_sound_archive(world.archive, path_of(world.logs()[partition]))) == due_ranges(world.logs()[partition])


def test_a_partition_that_is_deleted_is_forgotten_and_one_that_comes_is_taken() -> None:
    world = World().has(TXN)
    agent, controls = world.agent()
    world.clock.when(world.clock.now + 2 * MINUTE_MS, lambda: world.disk.delete_folder(f"{LOGS}/{TXN}"))
    world.clock.when(world.clock.now + 2 * MINUTE_MS, lambda: world.has("g-epochs-0"))
    world.run(agent, controls, 4)
    assert [p.partition for p in agent.view().partitions] == [TopicPartition("g-epochs", 0)]
    assert agent.view().last_error is None
    assert_sound_archive(world.archive, path_of(world.logs()["g-epochs-0"]))


def test_topics_that_nobody_wants_are_left_alone() -> None:
    world = World().has(TXN, *OTHERS)
    agent, controls = world.agent(wanted=lambda topic: topic.startswith("g-codec"))
    world.run(agent, controls, 1)
    assert {key.split("/")[0] for key in world.archive.objects} == {"archive.json", "g-codec-lz4", "g-codec-none"}


def test_a_paused_agent_ends_the_segment_and_begins_no_other_until_it_goes_on() -> None:
    world = World().has(TXN, *OTHERS)
    agent, controls = world.agent()
    controls.pause()
    world.clock.when(world.clock.now + 5 * MINUTE_MS, lambda: asked.append(len(world.archive.calls)))
    world.clock.when(world.clock.now + 5 * MINUTE_MS, lambda: asked.append(agent.view().state))
    world.clock.when(world.clock.now + 5 * MINUTE_MS + 1, controls.resume)
    asked: list[object] = []
    world.run(agent, controls, 10)
    assert asked == [0, "paused"]
    assert all(p.lag.segments == p.lag.waiting for p in agent.view().partitions)


def test_a_clock_that_is_set_back_by_a_day_stops_nothing() -> None:
    world = World().has("g-codec-lz4-0")
    agent, controls = world.agent()

    def set_back() -> None:
        now_ms = world.clock.now - 24 * HOUR * MINUTE_MS
        world.clock.set(now_ms)
        world.clock.when(now_ms + 2 * MINUTE_MS, lambda: roll_again(world, "g-codec-lz4-0"))
        world.clock.when(now_ms + 3 * MINUTE_MS, controls.stop)

    world.clock.when(world.clock.now + 10 * MINUTE_MS, set_back)
    agent.run()
    log = world.logs()["g-codec-lz4-0"]
    assert assert_sound_archive(world.archive, path_of(log)).end_offset == log.log_end_offset


def test_retention_goes_by_the_configuration_and_asks_nothing_before_something_can_be_due() -> None:
    world = World().has("g-codec-lz4-0", "g-epochs-0")
    newest_ms = max(e.written_ms for e in archived(world, "g-codec-lz4-0"))
    world.clock.set(newest_ms + 1_000)
    age_ms = 10 * HOUR * MINUTE_MS
    given = (
        Given("g-codec-lz4", "retention.ms", str(age_ms)),
        Given("g-codec-lz4", "file.delete.delay.ms", str(HOUR * MINUTE_MS)),
    )
    agent, controls = world.agent(given=given)
    start_ms = world.clock.now
    world.clock.when(start_ms + 2 * HOUR * MINUTE_MS, world.archive.calls.clear)
    world.clock.when(start_ms + 9 * HOUR * MINUTE_MS, lambda: quiet.extend(world.archive.calls))
    world.clock.when(start_ms + 11 * HOUR * MINUTE_MS, lambda: kept.append(agent.view().partitions[0].archived))
    quiet: list[object] = []
    kept: list[object] = []
    world.run(agent, controls, 13 * HOUR)
    gone = load_newest(world.archive, path_of(world.logs()["g-codec-lz4-0"]))
    assert gone is not None
    assert (gone.manifest.segment_count, gone.manifest.deleting) == (0, ())
    assert not [key for key in world.archive.objects if key.startswith("g-codec-lz4/") and "/segments/" in key]
    assert_sound_archive(world.archive, path_of(world.logs()["g-epochs-0"]))  # nobody said how long it is kept
    assert len(quiet) <= 2 * 3 * 7, "an hourly look at each of both, and retention's own"
    assert [a.deleting_segments > 0 for a in kept if a is not None] == [True]  # type: ignore[attr-defined]


def brokers_with(policy: tuple[str, ...] | None) -> Cluster:
    """Brokers that have one cleanup policy for all topics."""

    class Brokers(Cluster):
        def retention(self, topic: str, topic_id: str) -> BrokerRetention:
            return BrokerRetention(policy, None, None)

    return Brokers((), FixedClock())


@pytest.mark.parametrize(("policy", "is_kept"), [(("compact",), True), (("compact", "delete"), False), (None, True)])
def test_nothing_of_a_compacted_topic_goes_by_a_setting_for_all(policy: tuple[str, ...] | None, is_kept: bool) -> None:
    world, told = World().has("g-compacted-0"), list[str]()
    world.clock.set(max(e.written_ms for e in archived(world, "g-compacted-0")) + HOUR * MINUTE_MS)
    given = (Given("*", "retention.ms", "1"),)
    agent, controls = world.agent(given=given, cluster=brokers_with(policy), tell=told.append)
    world.run(agent, controls, 30)
    left = load_newest(world.archive, path_of(world.logs()["g-compacted-0"]))
    assert left is not None
    assert (left.manifest.log_start_offset == 0) is is_kept
    assert any("-c g-compacted:retention.ms" in message for message in told) is (policy is None)


def archived(world: World, partition: str) -> list:  # type: ignore[type-arg]
    agent, controls = world.agent(tasks=("copy",))
    world.run(agent, controls, 1)
    manifest = assert_sound_archive(world.archive, path_of(world.logs()[partition]))
    return list(manifest.entries)


def test_sweeps_and_scrubs_come_in_their_time_and_a_restart_makes_them_no_sooner() -> None:
    world = World().has(TXN, "g-epochs-0")
    round_ms = 6 * HOUR * MINUTE_MS
    tasks = ("copy", "sweep", "scrub")
    stray = f"{path_of(world.logs()[TXN]).segments}{0:020d}-0-{'f' * 32}.log"
    world.archive.objects[stray] = b"nobody names me"
    world.archive.modified[stray] = world.clock.now - 48 * HOUR * MINUTE_MS
    agent, controls = world.agent(tasks=tasks, round_ms=round_ms)
    world.run(agent, controls, 5)
    assert stray not in world.archive.objects
    first = agent.view()
    assert first.swept_ms > 0
    assert first.scrub is not None
    assert (first.scrub.topics, first.scrub.findings, first.scrub.failed) == (2, (), 0)

    again, controls = world.agent(tasks=tasks, round_ms=round_ms)
    world.run(again, controls, 5)
    assert (again.view().swept_ms, again.view().scrub) == (first.swept_ms, first.scrub)
    again, controls = world.agent(tasks=tasks, round_ms=round_ms)
    world.run(again, controls, 6 * HOUR)
    assert again.view().swept_ms > first.swept_ms


def test_a_scrub_tells_what_it_finds_and_it_is_told_after_a_restart_too() -> None:
    world = World().has(TXN)
    archived(world, TXN)
    lost = next(key for key in world.archive.objects if key.endswith(".log"))
    del world.archive.objects[lost]
    agent, controls = world.agent(tasks=("scrub",))
    world.run(agent, controls, 1)
    scrub = world.agent()[0].view().scrub
    assert scrub is not None
    assert [finding for finding in scrub.findings if lost in finding and finding.startswith("missing_object")]


def test_an_agent_s_memory_that_is_no_memory_counts_as_none() -> None:
    world = World()
    file = MemoryFile(world.disk, STATE, "agent.json")
    world.disk.make_folder(STATE)
    for body in (b"", b"{", b"[]", b"3", b'{"format": 2}', b'{"format": 1, "swept_ms": "x"}', b"\xff"):
        world.disk.write(f"{STATE}/agent.json", 0, body)
        world.disk.truncate(f"{STATE}/agent.json", len(body))
        assert file.load().swept_ms == 0
    memory = replace(file.load(), swept_ms=5, address="127.0.0.1:1")
    file.save(memory)
    assert file.load() == memory


@pytest.mark.slow
def test_a_thousand_idle_partitions_are_asked_for_once_and_then_no_more() -> None:
    world = World().has("g-tiny-0")
    for number in range(1, 1_000):
        world.copy("g-tiny-0", f"tiny-{number}")
    agent, controls = world.agent()
    world.clock.when(world.clock.now + 2 * MINUTE_MS, lambda: first.append(len(world.archive.calls)))
    first: list[int] = []
    world.run(agent, controls, 8)
    assert len(agent.view().partitions) == 1_000
    assert agent.view().last_error is None
    assert len(world.archive.calls) == first[0]


class FailsOnce(Door):
    """The first copy of a log object fails."""

    has_failed = False

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if verb == "upload" and key.endswith(".log") and not self.has_failed:
            self.has_failed = True
            raise Unavailable(f"{key}: no answer")
        return call()


def test_a_round_that_copied_and_a_recovery_are_told_with_their_fields() -> None:
    world = World().has(TXN, *OTHERS)
    events: list[tuple[str, Mapping[str, str | int]]] = []
    store = FailsOnce(world.archive)
    agent, controls = world.agent(store, events=lambda message, fields: events.append((message, fields)))
    world.run(agent, controls, 5)
    manifests = [assert_sound_archive(world.archive, path_of(log)) for log in world.logs().values()]
    assert store.has_failed
    copied = [fields for message, fields in events if message == "copied all that was due"]
    assert sum(int(fields["segments"]) for fields in copied) == sum(m.segment_count for m in manifests)
    assert sum(int(fields["bytes"]) for fields in copied) == sum(m.log_bytes for m in manifests)
    (recovered,) = (fields for message, fields in events if message == "works again after a failure")
    assert recovered["partition"] in world.logs()
    assert recovered["task"] == "copy"
