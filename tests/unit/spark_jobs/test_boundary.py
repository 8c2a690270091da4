"""Where the archive ends and the broker takes over: without a hole, and kept for as long as a query lives."""

from pathlib import Path

import pytest
from made_manifests import TOPIC_ID, entry, manifest

from local_log.errors import Conflict, Corrupt, NotFound, OffsetOutOfRange
from remote.read.plan import MissingRange
from remote.store.open import open_store
from spark_jobs.broker import BrokerTopic
from spark_jobs.live_tail import BOUNDARY_KEY, Boundary, keep, kept, take_over, taken_over

ARCHIVED = manifest(entry(0, 60), entry(60, 100))


def topic(*offsets: tuple[int, int], topic_id: str = TOPIC_ID) -> BrokerTopic:
    return BrokerTopic("topic", topic_id, dict(enumerate(offsets)))


@pytest.mark.parametrize("offsets", [(0, 150), (80, 150), (100, 150), (100, 100)])
def test_the_broker_takes_over_where_the_archive_ends_as_long_as_it_has_that_offset(offsets: tuple[int, int]) -> None:
    assert take_over(topic(offsets), [ARCHIVED], lenient=False) == {0: 100}


def test_a_partition_that_was_never_archived_is_the_brokers_from_its_first_offset() -> None:
    boundary = Boundary({"topic": take_over(topic((0, 150), (7, 9)), [ARCHIVED], lenient=False)})
    assert boundary.starting_offsets() == '{"topic": {"0": 100, "1": -2}}'
    assert boundary.archived() == {"topic": {0: 100}}
    assert Boundary({"topic": {0: -2}}).archived() == {}


def test_offsets_that_the_broker_deleted_before_they_were_archived_are_a_hole() -> None:
    with pytest.raises(MissingRange) as caught:
        take_over(topic((130, 150)), [ARCHIVED], lenient=False)
    assert (caught.value.partition, caught.value.start, caught.value.end) == ("topic-0", 100, 130)
    assert take_over(topic((130, 150)), [ARCHIVED], lenient=True) == {0: 130}


def test_a_broker_that_ends_before_the_archive_is_refused() -> None:
    with pytest.raises(OffsetOutOfRange, match=r"topic-0: offset 100 is outside \[0, 99\)"):
        take_over(topic((0, 99)), [ARCHIVED], lenient=True)


def test_a_topic_under_another_id_is_another_log() -> None:
    with pytest.raises(NotFound, match="deleted and created again, or this is another cluster"):
        take_over(topic((0, 150), topic_id="B" * 22), [ARCHIVED], lenient=True)


def test_a_partition_that_only_the_archive_has_is_refused() -> None:
    with pytest.raises(NotFound, match="does not have the partition topic-0"):
        take_over(topic(), [ARCHIVED], lenient=False)


def test_of_two_first_starts_that_differ_the_second_is_told_to_start_again(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    first = Boundary({"topic": {0: 100, 1: -2}})
    assert keep(store, first) == keep(store, first) == first
    with pytest.raises(Conflict, match="start again"):
        keep(store, Boundary({"topic": {0: 120, 1: -2}}))


def test_a_later_start_takes_the_boundary_that_the_first_one_has_kept(tmp_path: Path) -> None:
    store, ends = open_store(str(tmp_path)), [100, 120]

    def resolve() -> Boundary:
        topic = BrokerTopic("topic", TOPIC_ID, {0: (0, 500)})
        return taken_over([topic], lambda name: [manifest(entry(0, ends.pop(0)))], lenient=False)

    assert [kept(store, ["topic"], resolve).offsets for _ in range(2)] == [{"topic": {0: 100}}] * 2
    assert ends == [120]


def test_a_boundary_that_cannot_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / BOUNDARY_KEY).write_text("[]")
    with pytest.raises(Corrupt, match=r"boundary\.json .*delete it together with the query's checkpoint"):
        keep(open_store(str(tmp_path)), Boundary({"topic": {0: 100}}))
