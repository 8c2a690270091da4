"""All topics at once: each file of the log directory is read once, a manifest once in minutes, and an answer written once."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from archive_fakes import Door, MemoryStore
from asked_endpoint import Endpoint, bytes_of
from golden_logs import partitions
from logs_to_archive import copy_of, local_logs, set_checkpoint
from tiered_worlds import World

from local_log.errors import LogError, Unavailable
from local_log.formats.filenames import DELETED, HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT, LOG, SWAP
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.brokers.live_brokers import Broker, LiveBrokers
from tiering.endpoint.hosted_logs import LATE_MS_MAX, LOCAL_MS_MAX, UNREAD_MS_MAX
from tiering.endpoint.protocol.api_keys import FETCH, METADATA
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tiering.wiring import Tiers

ALL = MetadataRequest(topics=None)
T = TypeVar("T")


class Postponed(Executor):
    """Runs what it is given when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.jobs.append(lambda: fn(*args, **kwargs))
        return Future()


def all_topics(endpoint: Endpoint) -> MetadataResponse:
    found: MetadataResponse = endpoint.ask(METADATA, 12, ALL)
    return found


def by_id(endpoint: Endpoint, topic_id: str) -> tuple[str | None, int]:
    """The name and the error code of a topic."""
    found = endpoint.ask(METADATA, 12, MetadataRequest(topics=(MetadataRequestTopic(topic_id, None),))).topics[0]
    return found.name, found.error_code


def test_all_topics_are_opened_once_and_loaded_again_in_the_background(world: World) -> None:
    door = Door(world.store)
    endpoint = Endpoint(None, door)
    background = Postponed()
    endpoint.context.logs.background = background
    first = all_topics(endpoint)
    assert len(first.topics) > 10
    door.calls.clear()
    endpoint.clock.sleep(endpoint.context.logs.archive_ms_max / 1000)
    assert all_topics(endpoint) == first
    empty = {"g-empty", "g-tiny"}  # they may have got partitions since
    assert {key.partition("/")[0] for verb, key in door.calls if verb != "list_folders"} <= empty
    door.calls.clear()
    assert all_topics(endpoint) == first
    assert door.calls == []
    endpoint.clock.sleep(UNREAD_MS_MAX / 1000)
    door.calls.clear()
    assert all_topics(endpoint) == all_topics(endpoint) == first
    assert len(background.jobs) == 1
    loads = len(door.calls)
    background.jobs.pop()()
    assert len(door.calls) > loads + len(first.topics)
    assert all_topics(endpoint) == first
    assert background.jobs == []


def test_without_a_background_old_topics_are_loaded_by_who_asks(world: World) -> None:
    endpoint = Endpoint(None, world.store)
    all_topics(endpoint)
    endpoint.clock.sleep(UNREAD_MS_MAX / 1000)
    all_topics(endpoint)
    everything = endpoint.context.logs.everything()
    assert {getattr(topic, "loaded_ms", None) for topic in everything.values()} == {endpoint.clock.now}


def test_an_endpoint_that_stops_opens_no_more_topics(world: World) -> None:
    endpoint = Endpoint(None, world.store)
    endpoint.context.logs.is_closed = True
    assert endpoint.context.logs.everything() == {}


def test_a_topic_that_cannot_be_opened_hides_no_other(world: World) -> None:
    class Broken(Tiers):
        def found(self, topic: str, *_: Any, **__: Any) -> Any:
            if topic == "g-txn":
                raise Unavailable("the store does not answer")
            return Tiers.found(self, topic)

    endpoint = Endpoint(world.folders["local alone"], None)
    endpoint.context.logs.tiers = Broken(endpoint.context.logs.tiers.log_dir, None)
    codes = {topic.name: topic.error_code for topic in all_topics(endpoint).topics}
    assert {name for name, code in codes.items() if code} == {"g-txn"}
    assert len(codes) == len(endpoint.context.logs.names())
    assert endpoint.said == ["the metadata of g-txn: the store does not answer"]


def test_a_description_is_written_anew_when_the_topic_or_the_brokers_change(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint = Endpoint(folder, None)

    def written() -> object:
        endpoint.ask(METADATA, 12, MetadataRequest(topics=(MetadataRequestTopic(name="g-epochs"),)))
        topic = endpoint.context.logs.topic("g-epochs")
        assert topic is not None
        [found] = [one for (version, _), (_, one) in topic.described.items() if version == 12]
        return found

    def told() -> tuple[int, int]:
        topics = {topic.name: topic for topic in all_topics(endpoint).topics}
        one = topics["g-epochs"].partitions[0]
        return one.leader_id, one.leader_epoch

    epoch = told()[1]
    assert written() is written()
    (folder / "g-epochs-0" / LEADER_EPOCH_CHECKPOINT).write_text(f"0\n2\n0 0\n{epoch + 1} 5\n")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-epochs-0", 500)
    endpoint.clock.sleep(1)
    endpoint.context.logs.topic("g-epochs")
    assert told() == (1, epoch + 1)
    endpoint.context.cluster.live = LiveBrokers(7, (Broker(7, "other.test", 1),))
    assert told() == (7, epoch + 1)


@pytest.mark.parametrize("shape", ["local alone", "archive alone"])
def test_topics_are_known_by_id_to_who_never_asked_for_them_by_name(world: World, shape: str) -> None:
    folder = world.folders["local alone"]
    ids = {name: log.topic_id for name, log in local_logs(folder).items()}
    for name in ("g-txn-0", "g-trimmed-0"):
        endpoint = Endpoint(folder, None) if shape == "local alone" else Endpoint(None, world.store)
        assert by_id(endpoint, ids[name]) == (name[:-2], 0)
        other = Endpoint(folder, None) if shape == "local alone" else Endpoint(None, world.store)
        asked = FetchTopic(topic_id=ids[name], partitions=(FetchPartition(0, fetch_offset=1234, partition_max_bytes=1),))
        answer = other.ask(FETCH, 18, FetchRequest(topics=(asked,))).responses[0].partitions[0]
        assert (answer.error_code, any(answer.records)) == (0, True)
    assert len(ids) == len(partitions())


def test_the_id_of_a_topic_that_was_deleted_is_unknown(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint = Endpoint(folder, None)
    topic_id = local_logs(folder)["g-txn-0"].topic_id
    assert by_id(endpoint, topic_id) == ("g-txn", 0)
    shutil.rmtree(folder / "g-txn-0")
    endpoint.clock.sleep(endpoint.context.logs.archive_ms_max / 1000)
    assert "g-txn" not in {topic.name for topic in all_topics(endpoint).topics}
    asked = FetchTopic(topic_id=topic_id, partitions=(FetchPartition(0),))
    answer = endpoint.ask(FETCH, 18, FetchRequest(topics=(asked,))).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert by_id(endpoint, topic_id) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_nothing_of_a_topic_that_was_created_anew_is_told_of_the_deleted_one(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint = Endpoint(folder, None)
    deleted, created = (local_logs(folder)[name].topic_id for name in ("g-big-0", "g-epochs-0"))

    def fetched(topic_id: str) -> tuple[int, bool]:
        asked = FetchTopic(topic_id=topic_id, partitions=(FetchPartition(0, partition_max_bytes=1),))
        answer = endpoint.ask(FETCH, 13, FetchRequest(topics=(asked,))).responses[0].partitions[0]
        return answer.error_code, any(answer.records or ())

    assert fetched(deleted) == (0, True)
    (folder / "g-big-0").rename(folder / f"g-big-0.{'0' * 32}-delete")
    (folder / "g-epochs-0").rename(folder / "g-big-0")
    assert fetched(deleted) == (ErrorCode.KAFKA_STORAGE_ERROR, False)
    endpoint.clock.sleep(endpoint.context.logs.archive_ms_max / 1000)
    assert fetched(deleted) in ((ErrorCode.INCONSISTENT_TOPIC_ID, False), (ErrorCode.UNKNOWN_TOPIC_ID, False))
    assert fetched(created) == (0, True)


def test_an_id_that_nobody_has_costs_one_look_at_each_topic(world: World) -> None:
    door = Door(world.store)
    endpoint = Endpoint(None, door)
    unknown = ("B" * 21 + "A", "C" * 21 + "A", ZERO_TOPIC_ID)
    assert by_id(endpoint, unknown[0]) == (None, ErrorCode.UNKNOWN_TOPIC_ID)
    door.calls.clear()
    assert [by_id(endpoint, topic_id)[1] for topic_id in unknown] == [ErrorCode.UNKNOWN_TOPIC_ID] * 3
    assert door.calls == []
    endpoint.clock.sleep(endpoint.context.logs.archive_ms_max / 1000)
    assert by_id(endpoint, unknown[0])[1] == ErrorCode.UNKNOWN_TOPIC_ID
    assert {verb for verb, _ in door.calls} == {"list_folders"}


def test_ids_are_known_although_a_topic_cannot_be_listed(world: World) -> None:
    class Broken(Tiers):
        def topic_ids(self, topic: str) -> tuple[str, ...]:
            if topic < "g-t":
                raise Unavailable("the store does not answer")
            return Tiers.topic_ids(self, topic)

    endpoint = Endpoint(None, world.store)
    endpoint.context.logs.tiers = replace(Broken(None, world.store))
    assert by_id(endpoint, local_logs(world.folders["local alone"])["g-txn-0"].topic_id) == ("g-txn", 0)


class Hung(Door):
    """Does not answer while it is told not to, until it is let go."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.is_hung, self.is_asked, self.may_go = False, threading.Event(), threading.Event()

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if self.is_hung:
            self.is_asked.set()
            assert self.may_go.wait(60)
        return call()


def test_ids_that_are_known_are_told_while_the_store_is_asked_for_others(world: World) -> None:
    store = Hung(world.store)
    endpoint = Endpoint(None, store)
    logs, known = endpoint.context.logs, local_logs(world.folders["local alone"])["g-txn-0"].topic_id
    assert by_id(endpoint, known) == ("g-txn", 0)
    endpoint.clock.sleep(logs.archive_ms_max / 1000)
    logs.names()
    ask = lambda: logs._ids.name_of(known, logs.tiers, ("g-txn",), logs._listed_ms)  # noqa: E731
    with ThreadPoolExecutor(1) as pool:
        store.is_hung = True
        first = pool.submit(ask)
        assert store.is_asked.wait(60)
        assert ask() == "g-txn"
        assert not first.done()
        store.may_go.set()
        assert first.result() == "g-txn"


def test_who_needs_a_topic_that_another_thread_loads_does_not_wait_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiering.endpoint.hosted_logs.LOADING_S_MAX", 0.05)
    store = Hung(world.store)
    logs = Endpoint(None, store).context.logs
    logs.names()
    with ThreadPoolExecutor(1) as pool:
        store.is_hung = True
        first = pool.submit(logs.topic, "g-txn")
        assert store.is_asked.wait(60)
        for ask in (lambda: logs.topic("g-txn"), lambda: logs.reloaded("g-txn", 0)):
            with pytest.raises(Unavailable, match="topic g-txn is not loaded within"):
                ask()
        store.may_go.set()
        assert first.result() is logs.reloaded("g-txn", 0)


def test_a_topic_is_recent_for_a_moment_longer_while_it_is_looked_at_in_the_background_once(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint, background = Endpoint(folder, None), Postponed()
    logs = endpoint.context.logs
    assert logs.recent("g-big") is None, "it was never opened"
    first = logs.topic("g-big")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-big-0", 3)
    endpoint.clock.sleep(LOCAL_MS_MAX / 1000)
    assert logs.recent("g-big") is None, "nothing is looked at in the background"
    logs.background = background
    assert logs.at_hand("g-big") is None
    assert logs.recent("g-big") is logs.recent("g-big") is first
    (look,) = background.jobs
    look()
    second = logs.recent("g-big")
    assert second is not None
    assert second is not first
    assert [log.end_offset() for log in second.partitions.values() if not isinstance(log, LogError)] == [3]
    endpoint.clock.sleep((LOCAL_MS_MAX + LATE_MS_MAX) / 1000)
    assert logs.recent("g-big") is None, "it is too late"
    assert len(background.jobs) == 1


def test_no_record_is_skipped_while_a_cleaner_has_a_segment_neither_old_nor_new_in_its_place(
    world: World, tmp_path: Path
) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    log = local_logs(folder)["g-big-0"]
    middle = log.segments[1].base_offset
    endpoint, late = Endpoint(folder, None), Endpoint(folder, None)
    before = b"".join(map(bytes_of, endpoint.fetch("g-big", middle).records))
    segment = Path(log.segments[1].path(LOG))
    deleted, swap = (segment.with_name(segment.name + suffix) for suffix in (DELETED, SWAP))
    shutil.copy(segment, swap)
    segment.rename(deleted)
    endpoint.clock.sleep(LOCAL_MS_MAX / 1000)
    late.context.logs.names()
    for asked in (endpoint, late):
        found = asked.fetch("g-big", middle)
        assert (found.error_code, found.records) == (ErrorCode.KAFKA_STORAGE_ERROR, ())
    swap.rename(segment)
    for asked in (endpoint, late):
        asked.clock.sleep(LOCAL_MS_MAX / 1000)
        assert b"".join(map(bytes_of, asked.fetch("g-big", middle).records)) == before
