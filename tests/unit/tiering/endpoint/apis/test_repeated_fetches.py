from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from asked_endpoint import Endpoint, bytes_of, over_each_tier, response_of
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from logs_to_archive import copy_of, set_checkpoint
from tiered_worlds import World

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.kafka_apis import handle
from tiering.endpoint.apis.repeated_fetches import UNLIKE_MAX, RepeatedFetches
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, ResourceType
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.hosted_logs import HostedLogs
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.quotas.client_quotas import ClientQuotas

MIXED, BIG = "g-mixed", "g-big"


def frame_of(message: FetchRequest, version: int = 11, correlation_id: int = 99, client_id: str | None = "test") -> bytes:
    return write_request(RequestHeader(FETCH, version, correlation_id, client_id), message)[4:]


def asked(endpoint: Endpoint, topic: str, offset: int = 0, version: int = 11, **more: int) -> FetchRequest:
    one = endpoint.topic(topic, version, FetchPartition(0, fetch_offset=offset, **{"partition_max_bytes": 1, **more}))
    return FetchRequest(topics=(one,))


def at_once(endpoint: Endpoint) -> Context:
    return replace(endpoint.context, may_wait=False)


def the_long_way(endpoint: Endpoint, frame: bytes) -> bytes | None:
    found = handle(frame, endpoint.connection, endpoint.context)
    return b"".join(map(bytes_of, found)) if isinstance(found, list) else None


def the_short_way(fetches: RepeatedFetches, endpoint: Endpoint, frame: bytes) -> bytes | None:
    found = fetches.answer(frame, endpoint.connection, at_once(endpoint))
    if found is None:
        return None
    data = b"".join(map(bytes_of, found.parts))
    assert len(data) == found.size
    return data


def like(endpoint: Endpoint, frame: bytes) -> RepeatedFetches:
    """Of a connection over which such frames came."""
    found = RepeatedFetches({})
    for _ in range(2):
        assert the_long_way(endpoint, frame) is not None
        assert the_short_way(found, endpoint, frame) is None
        found.unlike(frame, 1 << 30)
    return found


@pytest.fixture(scope="module")
def endpoints(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Endpoint]:
    """Over the log directory, over it with an archive behind it, and over a folder of segments alone."""
    return over_each_tier(world, tmp_path_factory.mktemp("folder"))


requests = st.fixed_dictionaries(
    {
        "version": st.integers(5, 18),
        "topic": st.sampled_from([MIXED, BIG, "g-txn", "g-compacted", "g-epochs", "g-trimmed"]),
        "client_id": st.sampled_from([None, "", "a client", "ä" * 100]),
        "partition_max_bytes": st.sampled_from([0, 1, 700, 5_000, 1 << 20, (1 << 31) - 1]),
        "max_bytes": st.sampled_from([0, 1, 700, 1 << 20]),
        "min_bytes": st.sampled_from([0, 1, 600, 1 << 30]),
        "max_wait_ms": st.sampled_from([0, 500]),
        "epoch": st.sampled_from([-1, 0, 1, 7]),
        "rack_id": st.sampled_from(["", "a rack"]),
        "trailing": st.sampled_from([b"", b"librdkafka"]),
    }
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), requests, st.integers(0, 2))
def test_both_ways_give_the_same_bytes_and_count_the_same(
    endpoints: list[Endpoint], data: st.DataObject, asks: dict[str, Any], place: int
) -> None:
    endpoint, fetches = endpoints[place], RepeatedFetches({})
    version, hosted = asks["version"], endpoint.context.logs.topic(asks["topic"])
    end = hosted.partitions[0].end_offset() if hosted else 10
    epoch = asks["epoch"] if version >= 9 else -1
    partition = {"partition_max_bytes": asks["partition_max_bytes"], "current_leader_epoch": epoch}
    for number in range(8):
        offset = data.draw(st.integers(-1, end + 1)) if number else 0
        message = replace(
            asked(endpoint, asks["topic"], offset, version, **partition),
            max_bytes=asks["max_bytes"],
            min_bytes=asks["min_bytes"],
            max_wait_ms=asks["max_wait_ms"],
            rack_id=asks["rack_id"],
        )
        correlation_id = data.draw(st.integers(-(1 << 31), (1 << 31) - 1))
        frame = frame_of(message, version, correlation_id, asks["client_id"]) + asks["trailing"]
        before = endpoint.context.metrics.topics().get(asks["topic"])
        right = the_long_way(endpoint, frame)
        between = endpoint.context.metrics.topics().get(asks["topic"])
        found = the_short_way(fetches, endpoint, frame)
        after = endpoint.context.metrics.topics().get(asks["topic"])
        if found is None:
            assert between == after
            if right is not None:
                fetches.unlike(frame, 1 << 30)
        else:
            assert found == right
            assert before is None or counted(after, between) == counted(between, before)


def counted(after: Any, before: Any) -> tuple[int, int, int]:
    return tuple(getattr(after, n) - getattr(before, n) for n in ("bytes_out", "fetches", "failed_fetches"))  # type: ignore[return-value]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.integers(7, 18))
def test_a_session_goes_on_by_both_ways_alike(world: World, data: st.DataObject, version: int) -> None:
    folder = world.folders["local alone"]
    usual, checked, fetches = Endpoint(folder, None), Endpoint(folder, None), RepeatedFetches({})
    bytes_max = data.draw(st.sampled_from([1, 1000]))
    began = asked(usual, MIXED, 0, version, partition_max_bytes=bytes_max)
    if data.draw(st.booleans()):
        began = replace(began, topics=began.topics + asked(usual, BIG, 0, version).topics)
    sessions = [one.ask(FETCH, version, replace(began, session_epoch=0)).session_id for one in (usual, checked)]
    assert sessions[0] == sessions[1]
    short, epoch = 0, 1
    for _ in range(data.draw(st.integers(1, 12))):
        message = replace(
            asked(usual, data.draw(st.sampled_from([MIXED] * 9 + [BIG])), data.draw(st.integers(0, 9)), version),
            session_id=sessions[0] + data.draw(st.sampled_from([0] * 19 + [1])),
            session_epoch=epoch + data.draw(st.sampled_from([0] * 9 + [1])),
        )
        if data.draw(st.sampled_from([False] * 9 + [True])):
            message = replace(message, topics=())
        frame = frame_of(message, version)
        right = the_long_way(usual, frame)
        assert right is not None
        found = the_short_way(fetches, checked, frame)
        short += found is not None
        if found is None:
            found = the_long_way(checked, frame)
            fetches.unlike(frame, 1 << 30)
        assert found == right
        both = [one.sessions.get(sessions[0]) for one in (usual, checked)]
        assert [one and (one.epoch, one.last_used_ms, one.partitions) for one in both[:1]] == [
            one and (one.epoch, one.last_used_ms, one.partitions) for one in both[1:]
        ]
        epoch = both[0].epoch if both[0] else epoch
    event(f"{min(short, 3)} or more the short way")


@pytest.mark.parametrize("version", range(7, 19))
def test_fetches_of_a_session_take_the_short_way_from_the_third_on(endpoints: list[Endpoint], version: int) -> None:
    endpoint, fetches, kinds = endpoints[0], RepeatedFetches({}), []
    usual = asked(endpoint, BIG, 0, version)
    session = endpoint.ask(FETCH, version, replace(usual, session_epoch=0)).session_id
    for epoch in range(1, 6):
        frame = frame_of(replace(usual, session_id=session, session_epoch=epoch), version)
        found = the_short_way(fetches, endpoint, frame)
        kinds.append(found is not None)
        if found is None:
            found = the_long_way(endpoint, frame)
            fetches.unlike(frame, 1 << 30)
        assert found is not None
        answer = response_of(FETCH, version, found)
        assert (answer.error_code, answer.session_id, len(answer.responses)) == (0, session, 1)
    assert kinds == [False, False, True, True, True]
    assert the_short_way(fetches, endpoint, frame) is None, "the epoch is over"


@pytest.mark.parametrize("version", range(5, 19))
def test_fetches_that_are_like_the_two_before_take_the_short_way(endpoints: list[Endpoint], version: int) -> None:
    endpoint = endpoints[0]
    fetches = like(endpoint, frame_of(asked(endpoint, BIG, 0, version), version))
    for offset in (0, 1, 4):
        frame = frame_of(asked(endpoint, BIG, offset, version), version, correlation_id=99)
        right = the_long_way(endpoint, frame)  # which checks the batches first
        found = the_short_way(fetches, endpoint, frame)
        assert found is not None
        assert response_of(FETCH, version, found).responses[0].partitions[0].records
        assert found == right


def test_what_is_out_of_the_ordinary_takes_the_way_of_all_requests(endpoints: list[Endpoint]) -> None:
    endpoint = endpoints[0]
    usual = asked(endpoint, BIG)
    session = endpoint.ask(FETCH, 11, replace(usual, session_epoch=0)).session_id
    two = replace(usual, topics=usual.topics + asked(endpoint, MIXED).topics)
    for message, version in (
        (usual, 4),
        (replace(usual, isolation_level=1), 11),
        (replace(usual, session_epoch=0), 11),
        (replace(usual, session_id=session), 11),
        (two, 11),
        (replace(usual, replica_id=1), 11),
        (asked(endpoint, BIG, last_fetched_epoch=0, version=12), 12),
        (asked(endpoint, "g-tiny", 1), 11),
        (asked(endpoint, BIG, 1 << 40), 11),
    ):
        frame = frame_of(message, version)
        assert the_short_way(like(endpoint, frame), endpoint, frame) is None, message
    frame = frame_of(usual)
    fetches = like(endpoint, frame)
    limited = Endpoint(None, None)
    limited.context = replace(endpoint.context, quotas=ClientQuotas({("*", None): 1 << 30}))
    assert the_short_way(fetches, limited, frame) is None
    assert the_short_way(fetches, endpoint, frame) is not None
    assert the_short_way(fetches, endpoint, frame[:-1]) is None
    assert the_short_way(fetches, endpoint, frame_of(replace(usual, max_wait_ms=1))) is None


def test_who_may_not_read_takes_the_way_of_all_requests(endpoints: list[Endpoint], tmp_path: Path) -> None:
    endpoint = Endpoint(None, None)
    path = tmp_path / "acls.json"
    path.write_bytes(write_acls([Acl(ResourceType.TOPIC, BIG, "User:ANONYMOUS", Operation.READ)]))
    acls = AclFile(OsDisk(), OsWritableDisk(), str(path), endpoint.clock, Authorizer(), endpoint.said.append)
    acls.load()
    endpoint.context = replace(endpoints[0].context, acls=acls)
    frame = frame_of(asked(endpoint, BIG))
    fetches = like(endpoint, frame)
    assert the_short_way(fetches, endpoint, frame) is not None
    acls.change(lambda _: [])
    assert the_short_way(fetches, endpoint, frame) is None
    assert endpoint.context.metrics.denied.all() == {}, "the long way tells it"


def test_what_goes_wrong_on_the_short_way_is_left_to_the_way_of_all_requests(endpoints: list[Endpoint]) -> None:
    endpoint = endpoints[0]
    frame = frame_of(asked(endpoint, MIXED))
    fetches, no_logs = like(endpoint, frame), cast("HostedLogs", None)
    assert fetches.answer(frame, endpoint.connection, replace(at_once(endpoint), logs=no_logs)) is None
    assert the_short_way(fetches, endpoint, frame) == the_long_way(endpoint, frame)


def test_a_log_that_is_to_be_looked_at_again_takes_the_way_of_all_requests_and_goes_on_with_what_is_new(
    world: World, tmp_path: Path
) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint = Endpoint(folder, None)
    end = world.log("local alone", "g-big-0").end_offset()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-big-0", end // 2)
    frame = frame_of(asked(endpoint, BIG))
    fetches = like(endpoint, frame)
    before = the_short_way(fetches, endpoint, frame)
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-big-0", end)
    endpoint.clock.sleep(1)
    assert the_short_way(fetches, endpoint, frame) is None
    right = the_long_way(endpoint, frame)
    assert the_short_way(fetches, endpoint, frame) == right != before


def test_the_more_often_the_next_fetch_is_another_the_more_seldom_it_is_looked_what_it_is_like(
    endpoints: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    monkeypatch.setattr("tiering.endpoint.apis.repeated_fetches.repeated", lambda frame, bytes_max: looked.append(frame))
    fetches = RepeatedFetches({})
    for number in range(4 * UNLIKE_MAX):
        fetches.unlike(frame_of(asked(endpoints[0], BIG), correlation_id=number), 1 << 30)
    assert 5 < len(looked) < 15


def test_connections_whose_fetches_are_alike_take_the_short_way_from_the_first_on(endpoints: list[Endpoint]) -> None:
    endpoint, known = endpoints[0], {}  # type: ignore[var-annotated]
    frame, other = frame_of(asked(endpoint, BIG)), frame_of(asked(endpoint, "g-txn"))
    assert len(frame) == len(other)
    the_long_way(endpoint, frame)  # which checks the batches first
    first, second = RepeatedFetches(known), RepeatedFetches(known)
    for one in (frame, frame):
        first.unlike(one, 1 << 30)
    assert the_short_way(second, endpoint, frame) == the_short_way(first, endpoint, frame) == the_long_way(endpoint, frame)
    assert the_short_way(second, endpoint, other) is None
    for _ in range(2):
        the_long_way(endpoint, other)
        second.unlike(other, 1 << 30)
    assert the_short_way(second, endpoint, other) == the_long_way(endpoint, other)
    assert the_short_way(second, endpoint, frame) is None
    first.unlike(other, 1 << 30)
    assert the_short_way(first, endpoint, other) == the_long_way(endpoint, other), "another connection knows it"
