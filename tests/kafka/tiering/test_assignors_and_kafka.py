"""The assignors of consumer groups and Kafka's own: the same groups, the same assignments, from one generation to the next."""

import base64
import json
from collections.abc import Iterator
from random import Random  # noqa: TID251  # seeded

import pytest
from kafka_judge import Judge, judge_of_assignors, oracle

from tiering.endpoint.coordinator.modern.assignors.assignors import ASSIGNORS
from tiering.endpoint.coordinator.modern.assignors.group_spec import GroupSpec, MemberSpec, Partitions

_LIVES, _GENERATIONS = 60, 8


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with judge_of_assignors() as asked:
        yield asked


def kafka_s(judge: Judge, name: str, group: GroupSpec) -> dict[str, Partitions]:
    """What Kafka's assignor of this name gives."""
    members = [
        {
            "id": one,
            "instance": member.instance_id,
            "topics": sorted(member.topics),
            "assigned": {topic: sorted(numbers) for topic, numbers in member.assigned.items()},
        }
        for one, member in group.members.items()
    ]
    asked = {"assignor": name, "homogeneous": group.is_homogeneous, "partitions": group.partitions, "members": members}
    state, *found = judge.ask(json.dumps(asked).encode())
    assert state == "ok", found
    assigned = json.loads(base64.b64decode(found[0]))
    return {one: {topic: frozenset(numbers) for topic, numbers in of.items() if numbers} for one, of in assigned.items()}


def any_topics(random: Random) -> dict[str, int]:
    """Topic ids with their numbers of partitions; ids have both signs."""
    ids = (base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=") for _ in range(random.choice((1, 2, 5, 13, 30))))
    return {one: random.choice((1, 2, 3, 8, 40)) for one in ids}


def any_member(number: int, topics: dict[str, int], random: Random, *, is_homogeneous: bool) -> tuple[str, MemberSpec]:
    chosen = frozenset(topics if is_homogeneous else random.sample(sorted(topics), random.randint(0, len(topics))))
    name = random.choice(("m", "", "größe ✓", "𝄞", "\uffee")) + str(number)
    return name, MemberSpec(random.choice((None, None, f"i{name}")), chosen, {})


def lives(random: Random, name: str, *, is_homogeneous: bool) -> Iterator[GroupSpec]:
    """A group whose members and topics come and go; each generation has what Kafka and we assigned before."""
    topics, members = any_topics(random), dict[str, MemberSpec]()
    for generation in range(_GENERATIONS):
        for number in range(random.choice((0, 1, 1, 4))):
            one, member = any_member(10 * generation + number, topics, random, is_homogeneous=is_homogeneous)
            members[one] = member
        for one in random.sample(sorted(members), random.randint(0, max(0, len(members) - 1)) if random.random() < 0.5 else 0):
            del members[one]
        if random.random() < 0.3:  # a topic is deleted, and another one made
            topics.pop(next(iter(topics)))
            topics |= any_topics(random)
        for one, member in members.items():
            kept = frozenset(topics) if is_homogeneous else member.topics & topics.keys()
            members[one] = MemberSpec(member.instance_id, kept, member.assigned)
        group = GroupSpec(dict(members), topics, is_homogeneous)
        yield group
        found = ASSIGNORS[name](group) if members else {}
        for one, member in members.items():
            members[one] = MemberSpec(member.instance_id, member.topics, found.get(one, {}))


@oracle
@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_members_get_the_partitions_that_kafka_s_assignor_gives_them(judge: Judge, name: str, is_homogeneous: bool) -> None:
    for seed in range(_LIVES):
        for group in lives(Random(f"{name} {seed}"), name, is_homogeneous=is_homogeneous):
            found = ASSIGNORS[name](group) if group.members else {}
            assert {one: of for one, of in found.items() if of} == {
                one: of for one, of in kafka_s(judge, name, group).items() if of
            }, (seed, group)
