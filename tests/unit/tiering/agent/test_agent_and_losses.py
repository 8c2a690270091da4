"""What is lost before it was archived is told by the agent: in its status, by its metrics, and once aloud."""

from dataclasses import replace

from agents import BACKOFF, LOGS, MINUTE_MS, STATE, World
from archive_fakes import FailsBefore
from logs_to_archive import path_of
from one_offload import TXN

from local_log.errors import Unavailable
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT, TopicPartition
from local_log.formats.primitives import INT64_MAX
from remote.manifest.losses import acknowledged
from remote.manifest.store import ManifestWriter, load_newest
from tiering.agent.settings import Settings
from tiering.agent.view import AgentView, PartitionView
from tiering.lag.archived import NOTHING
from tiering.losses.gone_logs import gone_logs
from tiering.losses.seen_logs import SeenFile
from tiering.metrics.series import LOST
from tiering.metrics.values import values

ONE = "g-codec-lz4-0"


def lost_of(view: AgentView) -> dict[tuple[str, ...], float]:
    return {labels: n for labels, n in values(view, {})[LOST].items() if n}


def test_a_partition_that_goes_with_what_was_not_archived_is_told_as_lost() -> None:
    world = World().has(ONE, TXN)
    said: list[str] = []
    agent, controls = world.agent(tell=said.append)
    log = world.logs()[ONE]
    unarchived = log.log_end_offset - log.segments[-1].base_offset
    world.clock.when(world.clock.now + 2 * MINUTE_MS, lambda: world.disk.delete_folder(f"{LOGS}/{ONE}"))
    world.run(agent, controls, 4)
    view = agent.view()
    assert [str(p.partition) for p in view.partitions] == [TXN]
    assert lost_of(view) == {("g-codec-lz4", "0"): unarchived}
    (gone,) = view.row()["gone"]
    assert (gone["topic"], gone["partition"], gone["lost_offsets"]) == ("g-codec-lz4", 0, unarchived)
    assert view.row()["lost_offsets"] == unarchived
    assert view.row()["lost_since_ms"] is not None
    assert [f"{ONE} is gone from" in m or f"{ONE}: {unarchived} offsets are lost" in m for m in said].count(True) == 2


def test_a_partition_that_goes_while_the_store_is_dead_counts_as_lost_at_once() -> None:
    world = World().has(ONE)
    start_ms = world.clock.now
    dead = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now >= start_ms + MINUTE_MS)
    agent, controls = world.agent(dead)
    log = world.logs()[ONE]
    unarchived = log.log_end_offset - log.segments[-1].base_offset
    world.clock.when(start_ms + 2 * MINUTE_MS, lambda: world.disk.delete_folder(f"{LOGS}/{ONE}"))
    world.run(agent, controls, 4)
    assert lost_of(agent.view()) == {("g-codec-lz4", "0"): unarchived}


def test_a_partition_that_comes_back_is_not_lost() -> None:
    world = World().has(ONE)
    start_ms = world.clock.now
    dead = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now >= start_ms + MINUTE_MS)
    agent, controls = world.agent(dead)
    world.clock.when(start_ms + 2 * MINUTE_MS, lambda: world.disk.delete_folder(f"{LOGS}/{ONE}"))
    world.clock.when(start_ms + 4 * MINUTE_MS, lambda: world.has(ONE))
    world.run(agent, controls, 6)
    assert lost_of(agent.view()) == {}
    assert agent.view().row()["gone"] == []


def test_a_log_directory_whose_disk_is_not_mounted_has_lost_nothing() -> None:
    world = World().has(ONE, TXN)
    agent, controls = world.agent()
    start_ms = world.clock.now
    names = world.disk.names
    world.clock.when(start_ms + 2 * MINUTE_MS, lambda: setattr(world.disk, "names", lambda at: [] if at == LOGS else names(at)))
    world.run(agent, controls, 4)
    view = agent.view()
    assert [str(p.partition) for p in view.partitions] == [ONE, TXN]
    assert lost_of(view) == {}
    assert view.last_error is not None
    assert "check whether its disk is mounted" in view.last_error.message


def test_that_a_loss_was_acknowledged_is_known_within_minutes() -> None:
    world = World().has(ONE, TXN)
    agent, controls = world.agent()
    start_ms = world.clock.now
    gone = path_of(world.logs()[ONE])
    retained = path_of(world.logs()[TXN])
    start = world.logs()[TXN].log_end_offset - 1
    lines = f"0\n1\ng-txn 0 {start}\n"
    world.clock.when(start_ms + 2 * MINUTE_MS, lambda: world.disk.delete_folder(f"{LOGS}/{ONE}"))
    world.clock.when(start_ms + 2 * MINUTE_MS, lambda: world.rewrite(LOG_START_OFFSET_CHECKPOINT, lines))
    shown: list[set[tuple[str, ...]]] = []
    world.clock.when(start_ms + 5 * MINUTE_MS, lambda: shown.append(set(lost_of(agent.view()))))

    def acknowledge() -> None:
        for path in (gone, retained):
            stored = load_newest(world.archive, path)
            assert stored is not None
            writer = ManifestWriter(world.archive, path, world.clock, world.ids, "jo", stored.manifest.writer_epoch)
            writer.commit(stored.manifest, lambda m: acknowledged(m, [(0, INT64_MAX)], "jo", world.clock.now_ms()))

    world.clock.when(start_ms + 5 * MINUTE_MS, acknowledge)
    world.run(agent, controls, 8)
    assert shown == [{("g-codec-lz4", "0"), ("g-txn", "0")}]
    assert lost_of(agent.view()) == {}
    assert agent.view().gone == ()


def test_a_loss_that_comes_while_the_store_is_dead_is_reported_once() -> None:
    world = World().has(TXN)
    start_ms, start = world.clock.now, world.logs()[TXN].log_end_offset - 1
    said: list[str] = []
    dead = FailsBefore(world.archive, Unavailable("refused"), lambda *_: MINUTE_MS <= world.clock.now - start_ms < 9 * MINUTE_MS)
    agent, controls = world.agent(dead, tell=said.append)
    world.clock.when(start_ms + 2 * MINUTE_MS, lambda: world.rewrite(LOG_START_OFFSET_CHECKPOINT, "0\n1\ng-txn 0 1\n"))
    lines = f"0\n1\ng-txn 0 {start}\n"
    world.clock.when(start_ms + 4 * MINUTE_MS, lambda: world.rewrite(LOG_START_OFFSET_CHECKPOINT, lines))
    world.run(agent, controls, 20)
    lost = round(lost_of(agent.view())["g-txn", "0"])
    assert lost > 0
    assert [message for message in said if f"{TXN}: {lost} offsets are lost" in message] != []
    assert len([message for message in said if "offsets are lost" in message]) == 1


def test_losses_of_as_many_offsets_as_were_acknowledged_are_reported_again() -> None:
    world = World().has(TXN)
    agent, _ = world.agent()
    view = PartitionView(LOGS, TopicPartition("g-txn", 0))
    reported = [
        agent._state._is_new_loss(LOGS, replace(view, archived=replace(NOTHING, lost_offsets=lost, lost_since_ms=since)))
        for lost, since in ((0, None), (5, 100), (5, 100), (8, 100), (3, 200), (3, 300), (0, None), (2, 400))
    ]
    assert reported == [False, True, False, True, True, True, False, True]


def test_what_disappears_while_no_agent_runs_is_told_by_the_next_one() -> None:
    world = World().has(ONE, TXN)
    log = world.logs()[ONE]
    unarchived = log.log_end_offset - log.segments[-1].base_offset
    world.run(*world.agent(), 2)
    world.disk.delete_folder(f"{LOGS}/{ONE}")
    said: list[str] = []
    agent, controls = world.agent(tell=said.append)
    world.run(agent, controls, 2)
    assert lost_of(agent.view()) == {("g-codec-lz4", "0"): unarchived}
    assert [message for message in said if f"{ONE}: {unarchived} offsets are lost" in message] != []


def test_what_disappears_after_an_agent_is_stopped_that_looked_only_once_is_told_by_the_next_one() -> None:
    world = World().has(ONE, TXN)
    log = world.logs()[ONE]
    unarchived = log.log_end_offset - log.segments[-1].base_offset
    world.run(*world.agent(settings=Settings(3, BACKOFF, look_ms=10 * MINUTE_MS)), 2)
    world.disk.delete_folder(f"{LOGS}/{ONE}")
    agent, controls = world.agent()
    world.run(agent, controls, 2)
    assert lost_of(agent.view()) == {("g-codec-lz4", "0"): unarchived}


def test_a_stopped_agent_saves_what_others_have_archived_of_a_log_too() -> None:
    world = World().has(ONE)
    log = world.logs()[ONE]
    unarchived = log.log_end_offset - log.segments[-1].base_offset
    world.run(*world.agent(), 2)
    world.disk.delete_folder(STATE)
    world.rewrite("meta.properties", "version=1\nnode.id=2\n")  # another broker, with a replica
    read_only = FailsBefore(world.archive, Unavailable("refused"), lambda verb, key: verb in ("put_if_absent", "upload"))
    world.run(*world.agent(read_only, settings=Settings(1, BACKOFF, look_ms=10 * MINUTE_MS)), 2)
    world.disk.delete_folder(f"{LOGS}/{ONE}")
    agent, controls = world.agent(FailsBefore(world.archive, Unavailable("refused"), lambda verb, key: True))
    world.run(agent, controls, 2)
    assert lost_of(agent.view()) == {("g-codec-lz4", "0"): unarchived}


def test_a_log_directory_that_is_not_mounted_yet_when_an_agent_starts_has_lost_nothing() -> None:
    world = World().has(ONE, TXN)
    world.run(*world.agent(), 2)
    names = world.disk.names
    world.disk.names = lambda at: [] if at == LOGS else names(at)  # type: ignore[method-assign]
    agent, controls = world.agent()
    world.clock.when(world.clock.now + 2 * MINUTE_MS, lambda: setattr(world.disk, "names", names))
    world.run(agent, controls, 5)
    assert agent.view().gone == ()
    assert [str(p.partition) for p in agent.view().partitions] == [ONE, TXN]


def test_an_offload_and_an_agent_remember_the_same() -> None:
    world = World().has(ONE, TXN)
    world.run(*world.agent(), 2)
    known = SeenFile.of(world.disk, STATE, world.log_dir(), world.log_dir().id(), "memory://store").load()
    logs = world.logs()
    end = logs[ONE].log_end_offset
    assert {str(p): seen.topic_id for p, seen in known.items()} == {name: log.topic_id for name, log in logs.items()}
    world.disk.delete_folder(f"{LOGS}/{ONE}")
    (gone,) = gone_logs(known, world.log_dir(), (), lambda _: True, ())
    assert (str(gone.partition), gone.seen.end_offset) == (ONE, end)
