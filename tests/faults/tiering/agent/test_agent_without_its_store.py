"""While the store does not respond, the agent says so within half a minute, and how far the archive lags grows."""

from agents import BACKOFF, LOGS, MINUTE_MS, World, roll_again
from archive_fakes import FailsBefore

from local_log.errors import Unavailable
from remote.store.api import ObjectStore
from remote.store.instrumented import SILENT_S_MAX, Instrumented, Meter
from tiering.agent.agent import Settings
from tiering.agent.view import AgentView
from tiering.lag.unprotected import TopicRetention

ONE = "g-codec-lz4-0"
HOUR_MS = 60 * MINUTE_MS


class Metered:
    """A world whose agent goes by its store's meter; the store fails from a time on, and until another."""

    def __init__(self, *partitions: str, from_ms: int = 0, until_ms: int = 1 << 60) -> None:
        self.world = World().has(*partitions)
        start_ms = self.world.clock.now
        self.meter = Meter()
        self.views: list[AgentView] = []
        self.said: list[str] = []
        failing = FailsBefore(
            self.world.archive,
            Unavailable("connection refused"),
            lambda *_: start_ms + from_ms <= self.world.clock.now < start_ms + until_ms,
        )
        self.store: ObjectStore = Instrumented(failing, self.meter, self.now_s)
        self.start_ms = start_ms

    def now_s(self) -> float:
        return self.world.clock.now / 1000

    def run(self, minutes: float, *looks_ms: int) -> None:
        agent, controls = self.world.agent(
            self.store, tell=self.said.append, trouble=lambda: self.meter.trouble(self.now_s()),
            retention=lambda topic: TopicRetention(HOUR_MS, None), settings=Settings(1, BACKOFF),
        )  # fmt: skip
        for at_ms in looks_ms:
            self.world.clock.when(self.start_ms + at_ms, lambda: self.views.append(agent.view()))
        self.world.run(agent, controls, minutes)


def test_a_store_that_fails_one_busy_partition_is_failing_within_half_a_minute_and_the_lag_is_known() -> None:
    one = Metered(ONE)
    one.run(2, 1, 30_000, 60_000)
    (first, soon, later) = one.views
    assert first.partitions[0].lag.segments == soon.partitions[0].lag.segments > 5, "by the disk alone"
    assert soon.state == "failing"
    assert soon.store is not None
    assert soon.store.at_ms == one.start_ms
    assert soon.row()["store_failing_since_ms"] == later.row()["store_failing_since_ms"] == one.start_ms
    assert later.row()["lag_ms"] - soon.row()["lag_ms"] == 30_000
    assert [message for message in one.said if "does not respond" in message] == [
        "the store does not respond, and nothing is archived: connection refused"
    ]


def test_lag_grows_by_what_is_rolled_while_the_store_is_dead_and_goes_by_the_last_known_manifest() -> None:
    one = Metered(ONE, from_ms=2 * MINUTE_MS)
    one.world.clock.when(one.start_ms + 3 * MINUTE_MS, lambda: roll_again(one.world, ONE))
    one.run(5, 2 * MINUTE_MS, 4 * MINUTE_MS)
    before, after = one.views
    assert (before.partitions[0].lag.segments, before.state) == (0, "running")
    assert (after.partitions[0].lag.segments, after.state) == (1, "failing")
    assert after.partitions[0].lag.bytes == one.world.logs()[ONE].segments[-2].size()


def test_what_was_known_to_be_archived_is_known_to_the_next_agent_before_the_store_answers() -> None:
    one = Metered(ONE, from_ms=2 * MINUTE_MS)
    one.run(2)
    one.views.clear()
    one.start_ms = one.world.clock.now
    one.run(1, 30_000)
    view = one.views[0]
    assert view.state == "failing"
    assert view.partitions[0].archived is not None
    assert view.partitions[0].lag.segments == 0


def test_that_the_store_answers_again_is_said() -> None:
    one = Metered(ONE, until_ms=2 * MINUTE_MS)
    one.run(5, 4 * MINUTE_MS)
    assert (one.views[0].state, one.views[0].store, one.views[0].partitions[0].lag.segments) == ("running", None, 0)
    assert [message.partition(",")[0] for message in one.said if message.startswith("the store")] == [
        "the store does not respond",
        "the store responds again",
    ]


def test_a_store_that_hangs_is_failing_within_half_a_minute_though_no_job_has_ended() -> None:
    one = Metered(ONE)
    one.meter.begin("list", one.now_s())
    assert one.meter.trouble(one.now_s() + SILENT_S_MAX) is None
    agent, _ = one.world.agent(one.world.archive, trouble=lambda: one.meter.trouble(one.now_s()))
    one.world.clock.set(one.world.clock.now + 30_000)
    view = agent.view()
    assert view.row()["store_failing_since_ms"] == one.start_ms
    assert view.store is not None
    assert "does not respond to list" in view.store.message


def test_what_is_unprotected_counts_the_active_segment_and_when_its_broker_deletes_it() -> None:
    one = Metered(ONE)
    one.run(1, 30_000)
    log = one.world.logs()[ONE]
    row = one.views[0].partitions[0].row(one.views[0].now_ms)
    assert row["unprotected_records"] == log.log_end_offset
    assert row["unprotected_bytes"] == sum(segment.size() for segment in log.segments)
    first = next(iter(log.segments[0].chunks())).batches.header
    assert row["unprotected_ms"] == one.views[0].now_ms - int(first["base_timestamp"][0])
    times = [int(t) for chunk in log.segments[0].chunks() for t in chunk.batches.header["max_timestamp"]]
    assert row["unprotected_deleted_ms"] == max(times) + HOUR_MS


def test_when_all_inactive_segments_are_archived_the_active_one_is_what_is_unprotected() -> None:
    one = Metered(ONE)
    one.store = one.world.archive
    one.run(2, 90_000)
    log = one.world.logs()[ONE]
    active = log.segments[-1]
    row = one.views[0].partitions[0].row(one.views[0].now_ms)
    assert row["lag_segments"] == 0
    assert row["unprotected_records"] == log.log_end_offset - active.base_offset
    assert row["unprotected_bytes"] == active.size()


def test_appends_to_the_active_segment_are_seen_at_the_next_look_without_a_change_of_the_folder() -> None:
    one = Metered(ONE)
    one.store = one.world.archive
    file = f"{LOGS}/{ONE}/{one.world.logs()[ONE].segments[-1].base_offset:020d}.log"

    def append() -> None:
        one.world.disk.write(file, one.world.disk.size(file), bytes(100))

    one.world.clock.when(one.start_ms + 2 * MINUTE_MS, append)
    one.run(4, 119_000, 3 * MINUTE_MS)
    before, after = (view.partitions[0].unprotected(view.now_ms).bytes for view in one.views)
    assert after == before + 100
