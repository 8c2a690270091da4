"""What goes wrong beside an agent, and what it does about it: never lose anything, never hammer, say what is the matter."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from itertools import product
from typing import TypeVar

import pytest
from agents import LOGS, MINUTE_MS, STATE, World
from archive_fakes import WRITES, CountingIds, Crash, CrashesAt, Door, FailsBefore
from logs_to_archive import path_of
from made_manifests import assert_sound_archive, assert_sound_chain
from one_offload import TXN, due_ranges, named

from local_log.errors import AlreadyExists, Invalid, NotFound, Unavailable, Unknown, Unreadable
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.agent.schedule import FAILED_MAX
from tiering.retention.delete_topic import delete_partition
from tiering.retention.policy import Given

T = TypeVar("T")
MANY = (TXN, "g-codec-lz4-0", "g-epochs-0", "g-codec-none-0", "g-codec-zstd-0", "g-mixed-0")
SMALL = "g-compacted-txn-0"


class Sometimes(Door):
    """Fails every so many-th call: before it is made, or after, when nobody knows that it was."""

    def __init__(self, inner: ObjectStore, every: int) -> None:
        super().__init__(inner)
        self.every = every
        self.failed = 0

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if len(self.calls) % self.every:
            return call()
        self.failed += 1
        if verb in WRITES - {"delete"} and self.failed % 2:
            with suppress(AlreadyExists, NotFound):
                call()
            raise Unknown(f"{self.url}: the answer to {verb} {key} was lost")
        raise Unavailable(f"{self.url}: no answer to {verb} {key}")


class Until(FailsBefore):
    """Fails until a time of its clock."""

    def __init__(self, world: World, error: Exception, until_ms: int) -> None:
        super().__init__(world.archive, error, lambda verb, key: world.clock.now < until_ms)


def assert_all_archived(world: World) -> None:
    for name, log in world.logs().items():
        assert named(assert_sound_archive(world.archive, path_of(log))) == due_ranges(log), name


def test_a_store_that_fails_one_call_in_twenty_costs_time_and_nothing_else() -> None:
    world = World().has(*MANY)
    store = Sometimes(world.archive, 20)
    agent, controls = world.agent(store)
    world.run(agent, controls, 10)
    assert store.failed > 10
    assert_all_archived(world)
    assert agent.view().last_error is None
    assert sum(c.copy_errors for c in agent.view().counts.values()) > 0


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("no answer; try again"),
        Invalid("ExpiredToken: the security token included in the request is expired; renew the credentials"),
    ],
    ids=["unavailable", "expired credentials"],
)
def test_a_store_that_fails_everybody_is_asked_by_one_now_and_then_and_all_goes_on_when_it_answers(error: Exception) -> None:
    world = World().has(*MANY)
    start_ms = world.clock.now
    store = Until(world, error, start_ms + 60 * MINUTE_MS)
    agent, controls = world.agent(store)
    states: list[tuple[str, int, str]] = []

    def look() -> None:
        told = agent.view().last_error
        states.append((agent.view().state, len(store.calls), told.message if told else ""))

    world.clock.when(start_ms + 10 * MINUTE_MS, look)
    world.clock.when(start_ms + 50 * MINUTE_MS, look)
    world.run(agent, controls, 70)
    (state, after_10, message), (_, after_50, _) = states
    assert (state, message) == ("failing", str(error))
    assert after_50 - after_10 <= 40 * 2 + 1, "once each half minute, by whomever"
    assert_all_archived(world)
    assert (agent.view().state, agent.view().last_error) == ("stopping", None)


def test_one_partition_that_fails_keeps_no_other_from_its_turn() -> None:
    world = World().has(*MANY)
    bad = path_of(world.logs()[TXN]).prefix
    store = FailsBefore(world.archive, Invalid("AccessDenied: this prefix is not yours"), lambda verb, key: key.startswith(bad))
    agent, controls = world.agent(store)
    world.run(agent, controls, 10)
    for name, log in world.logs().items():
        if name != TXN:
            assert named(assert_sound_archive(world.archive, path_of(log))) == due_ranges(log)
    assert agent.view().state == "stopping"
    failing = [p for p in agent.view().partitions if p.error]
    assert [str(p.partition) for p in failing] == [TXN]
    tries = len([call for call in store.calls if call[1].startswith(bad)])
    assert 10 <= tries <= 60, "with waits up to half a minute"


def kills() -> Iterator[tuple[int, bool]]:
    """Every call of a run, before it is made and after."""
    world, _ = small_world()
    door = Door(world.archive)
    agent, controls = world.agent(door, given=GIVEN, tasks=TASKS, round_ms=ROUND_MS)
    world.run(agent, controls, 12)
    return product(range(1, len(door.calls) + 1), (False, True))


GIVEN = (Given("g-compacted-txn", "retention.ms", "60000"), Given("*", "file.delete.delay.ms", "0"))
TASKS = ("copy", "expire", "sweep")
ROUND_MS = 10 * MINUTE_MS


def small_world() -> tuple[World, list[tuple[int, int]]]:
    world = World().has(SMALL, segments=6)
    world.clock.set(2_000_000_000_000)  # all of its records are old
    return world, due_ranges(world.logs()[SMALL])


def left_by(world: World) -> Hashable:
    """All that the next agent can know of the one before."""
    store = world.archive
    of_store = frozenset((key, body, store.modified.get(key)) for key, body in store.objects.items())
    return world.clock.now, of_store, frozenset(world.disk.contents("").items())


def test_an_agent_that_is_killed_at_any_call_is_gone_on_from_by_the_next_and_nothing_is_lost() -> None:
    killed = 0
    told = set[Hashable]()
    for number, after in kills():
        world, due = small_world()
        store = CrashesAt(world.archive, number, after=after)
        agent, _ = world.agent(store, given=(), tasks=("copy",))
        with suppress(Crash):
            for _ in range(200):
                agent.step()
                if world.clock.now > agent.view().started_ms + MINUTE_MS:
                    break
        killed += len(store.calls) == number
        if (left := left_by(world)) in told:
            continue
        told.add(left)
        path = path_of(world.logs()[SMALL])
        if load_newest(world.archive, path) is not None:
            assert_sound_chain(world.archive, path)
        world.ids = CountingIds(f"{number % 0xFFF + 1:x}")
        again, controls = world.agent(given=(), tasks=("copy",))
        world.run(again, controls, 2)
        assert named(assert_sound_archive(world.archive, path)) == due
    assert killed > 30
    assert len(told) > 10


def test_an_agent_that_is_killed_while_it_retains_and_sweeps_leaves_a_sound_chain_and_the_next_ends_the_work() -> None:
    told = set[Hashable]()
    for number, after in kills():
        world, _ = small_world()
        path = path_of(world.logs()[SMALL])
        store = CrashesAt(world.archive, number, after=after)
        agent, controls = world.agent(store, given=GIVEN, tasks=TASKS, round_ms=ROUND_MS)
        with suppress(Crash):
            world.run(agent, controls, 12)
        world.clock.at.clear()
        if (left := left_by(world)) in told:
            continue
        told.add(left)
        if load_newest(world.archive, path) is not None:
            assert_sound_chain(world.archive, path)
        world.ids = CountingIds(f"{number % 0xFFF + 1:x}")
        again, controls = world.agent(given=GIVEN, tasks=TASKS, round_ms=ROUND_MS)
        world.run(again, controls, 25)
        stored = load_newest(world.archive, path)
        assert stored is not None
        assert (stored.manifest.segment_count, stored.manifest.deleting) == (0, ())
        assert again.view().last_error is None
    assert len(told) > 20


def test_a_damaged_segment_is_named_the_others_go_on_and_it_is_not_read_again_and_again() -> None:
    world = World().has(TXN)
    log = world.logs()[TXN]
    second = log.segments[1]
    body = bytearray(world.disk.read(second.path(".log")))
    body[len(body) // 2] ^= 0xFF
    world.disk.write(second.path(".log"), 0, bytes(body))
    said: list[str] = []
    reads: list[str] = []
    was = world.disk.read

    def reading(file: str, start: int = 0, end: int | None = None) -> bytes:
        reads.append(file)
        return was(file, start, end)

    world.disk.read = reading  # type: ignore[method-assign]
    agent, controls = world.agent(tell=said.append)
    world.clock.when(world.clock.now + 2 * MINUTE_MS, reads.clear)
    world.run(agent, controls, 30)
    assert second.path(".log") not in reads
    view = agent.view().partitions[0]
    assert view.refused is not None
    assert second.path(".log") in view.refused.message
    assert view.refused.message in said
    assert len(said) == 1, "said once"
    assert view.lag.segments - view.lag.waiting == 1
    manifest = assert_sound_archive(world.archive, path_of(log))
    assert named(manifest) == [r for r in due_ranges(log) if r[0] != second.base_offset]
    assert len(manifest.gaps) == 1


def test_a_log_directory_that_is_away_for_a_while_is_told_and_taken_up_again() -> None:
    world = World().has(TXN)
    agent, controls = world.agent()
    names = world.disk.names

    def away(folder: str) -> list[str]:
        if folder == LOGS:
            raise Unreadable(f"{LOGS}: Input/output error; mend it, then try again")
        return names(folder)

    states: list[tuple[int, str]] = []

    def look() -> None:
        told = agent.view().last_error
        states.append((len(agent.view().partitions), told.message if told else ""))

    start_ms = world.clock.now
    world.clock.when(start_ms + 2 * MINUTE_MS, lambda: setattr(world.disk, "names", away))
    world.clock.when(start_ms + 4 * MINUTE_MS, look)
    world.clock.when(start_ms + 5 * MINUTE_MS, lambda: setattr(world.disk, "names", names))
    world.clock.when(start_ms + 6 * MINUTE_MS, look)
    world.run(agent, controls, 7)
    assert states == [(1, f"{LOGS}: Input/output error; mend it, then try again"), (1, "")]


def test_an_agent_that_cannot_keep_its_memory_goes_on_working_and_says_so() -> None:
    world = World().has(TXN)
    write = world.disk.write

    def full(file: str, start: int, data: bytes) -> None:
        if file.startswith(STATE):
            raise Unreadable(f"{file}: No space left on device; mend it, then try again")
        write(file, start, data)

    world.disk.write = full  # type: ignore[method-assign]
    said: list[str] = []
    agent, controls = world.agent(tasks=("copy", "sweep"), tell=said.append)
    world.run(agent, controls, 3)
    assert_all_archived(world)
    assert [message for message in said if "No space left" in message]


def test_an_archive_on_a_full_disk_is_waited_for() -> None:
    world = World().has(TXN, SMALL)
    error = Unavailable("file:///archive: No space left on device; free some space")
    full_until_ms = world.clock.now + 5 * MINUTE_MS
    store = FailsBefore(world.archive, error, lambda verb, key: verb == "upload" and world.clock.now < full_until_ms)
    agent, controls = world.agent(store)
    told: list[object] = []
    world.clock.when(full_until_ms - 1, lambda: told.extend(p.error.message for p in agent.view().partitions if p.error))
    world.clock.when(full_until_ms - 1, lambda: told.append(len([call for call in store.calls if call[0] == "upload"])))
    world.run(agent, controls, 10)
    assert_all_archived(world)
    assert told[:2] == [str(error)] * 2
    assert told[2] <= 2 * 18, "with waits up to half a minute"  # type: ignore[operator]


def test_topics_that_were_deleted_from_the_archive_are_told_once_and_shut_nobody_out() -> None:
    world = World().has(*MANY)
    agent, controls = world.agent()
    world.run(agent, controls, 1)
    for name in MANY[: FAILED_MAX + 1]:
        stored = load_newest(world.archive, path_of(world.logs()[name]))
        assert stored is not None
        assert delete_partition(stored.manifest, StoreRun(world.archive, world.clock, world.ids), "delete").error is None
    said: list[str] = []
    states: list[str] = []
    agent, controls = world.agent(tell=said.append)
    world.clock.when(world.clock.now + 10 * MINUTE_MS, lambda: states.append(agent.view().state))
    world.clock.when(world.clock.now + 2 * MINUTE_MS, world.archive.calls.clear)
    world.run(agent, controls, 20)
    assert len(said) == FAILED_MAX + 1
    assert states == ["running"]
    assert world.archive.calls == []
