"""The offsets of a stream as its checkpoint has them, and how a limit is shared among partitions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote.keys import PartitionPath
from spark_jobs.errors import OptionError
from spark_jobs.source.stream.offsets import (
    decode,
    decode_histories,
    decode_start,
    encode,
    encode_end,
    encode_initial,
    rate_limited,
)

ID, OTHER_ID = "PnJ1xkWtQ5aqcyLsLZ9iLA", "AAAAAAAAAAAAAAAAAAAAAA"


def path(partition: int, topic: str = "orders", topic_id: str = ID) -> PartitionPath:
    return PartitionPath(topic, topic_id, partition)


def test_offsets_are_written_as_sparks_kafka_source_has_them_with_the_topics_ids_in_the_place_of_topics_without_partitions() -> (
    None
):
    offsets = {path(10): 5, path(0, "bills", OTHER_ID): 7, path(9): 2**60}
    text = json.dumps(encode(offsets))
    assert text == f'{{"bills": {{"0": 7}}, "orders": {{"9": {2**60}, "10": 5}}, "bills@{OTHER_ID}": {{}}, "orders@{ID}": {{}}}}'
    assert decode(json.loads(text)) == offsets


paths = st.builds(path, st.integers(0, 50), st.sampled_from(["orders", "bills.eu", "a-b_c"]))
some_offsets = st.dictionaries(paths, st.integers(0, 2**62), max_size=9)


@given(some_offsets, st.randoms())
def test_the_same_offsets_are_always_the_same_text(offsets: dict[PartitionPath, int], chance: "st.Random") -> None:  # type: ignore[name-defined]
    shuffled = list(offsets.items())
    chance.shuffle(shuffled)
    assert json.dumps(encode(dict(shuffled))) == json.dumps(encode(offsets))
    assert decode(encode(offsets)) == offsets


def test_the_end_of_the_first_micro_batch_has_its_start_and_later_ones_are_as_ever() -> None:
    begun, until = {path(0): 5, path(3, "a-b_c", OTHER_ID): 7}, {path(0): 9, path(3, "a-b_c", OTHER_ID): 7}
    first = json.loads(json.dumps(encode_end(encode_initial(begun, {}), until, {})))
    assert decode(first) == until
    assert decode_start(encode_initial({path(0): 8}, {}), first) == begun
    assert encode_end(first, until, {}) == first
    assert encode_end(first, until | {path(0): 10}, {}) == encode(until | {path(0): 10})
    assert decode_start(first, encode(until)) == until


def test_offsets_say_when_a_history_was_given_up_as_far_as_was_known_where_they_begin() -> None:
    begun, until = {path(0): 5, path(1): 5}, {path(0): 9, path(1): 9, path(2): 9}
    initial = encode_initial(begun, {path(0): 70})
    first = json.loads(json.dumps(encode_end(initial, until, dict.fromkeys(until, 80))))
    assert decode(first) == until
    assert decode_start(initial, first) == begun
    # A partition that was new is read from its first offset on, whatever happened before.
    assert decode_histories(encode_initial(begun, {path(0): 90}), first) == {path(0): 70, path(2): 80}
    assert encode_end(first, until, {path(0): 80}) == first
    second = encode_end(first, until | {path(0): 10}, {path(0): 80, path(1): 80})
    assert json.dumps(second) == (
        f'{{"orders": {{"0": 10, "1": 9, "2": 9}}, "orders@{ID}": {{}}, "@orders@{ID}-0~80": {{}}, "@orders@{ID}-1~80": {{}}, '
        f'"@orders@{ID}-2~80": {{}}}}'
    )
    assert decode_histories(second, {}) == dict.fromkeys([path(0), path(1), path(2)], 80)
    assert decode_start(second, second) == decode(second) == until | {path(0): 10}


def test_offsets_of_one_history_are_as_they_were_before_histories_were_noted() -> None:
    begun, until = {path(0): 5}, {path(0): 9}
    assert encode_end(encode(begun), until, {}) == encode(until)
    assert decode_histories(encode(begun), encode(until)) == {}


def test_a_checkpoint_of_sparks_kafka_source_is_refused_with_what_to_do() -> None:
    with pytest.raises(OptionError, match=r"no id of topic orders: another source .* as startingOffsets"):
        decode({"orders": {"0": 5}})


@pytest.mark.parametrize(
    ("limit", "sizes", "shares"),
    [
        (100, (300, 100), (75, 25)),
        (100, (100, 100, 100), (33, 33, 33)),  # rounded down, so that a batch may be a little smaller
        (10, (1, 999), (1, 9)),  # 0.01 counts as 1: nobody starves
        (2, (5, 5, 5, 5), (1, 1, 1, 1)),  # so a batch may be larger, too
        (100, (30, 20), (30, 20)),
        (100, (0, 50), (0, 50)),
        (1, (0, 0), (0, 0)),
        (2**62, (2**62, 2**62), (2**61, 2**61)),
    ],
)
def test_a_limit_is_shared_as_sparks_kafka_source_shares_it(limit: int, sizes: tuple[int, ...], shares: tuple[int, ...]) -> None:
    start = {path(n): 1000 for n in range(len(sizes))}
    until = {path(n): 1000 + size for n, size in enumerate(sizes)}
    assert rate_limited(limit, start, until) == {path(n): 1000 + share for n, share in enumerate(shares)}


@given(st.integers(1, 2**40), st.lists(st.integers(0, 2**40), min_size=1, max_size=9))
def test_every_partition_that_has_something_moves_and_none_moves_past_its_end(limit: int, sizes: list[int]) -> None:
    start = {path(n): 7 for n in range(len(sizes))}
    until = {path(n): 7 + size for n, size in enumerate(sizes)}
    limited = rate_limited(limit, start, until)
    assert limited.keys() == until.keys()
    assert all(7 < limited[p] <= end if end > 7 else limited[p] == 7 for p, end in until.items())
