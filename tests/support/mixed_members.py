"""Members of both protocols in one group in one line each: classic consumers that say and understand what Kafka's do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import pack
from typing import Any

from consumer_members import GROUP, Consumers, Has
from group_members import DELAY_MS, REBALANCE_MS, SESSION_MS

from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_describe import DescribedConsumerGroup

REJOIN = ErrorCode.REBALANCE_IN_PROGRESS


def _string(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()


def _partitions(has: Mapping[str, frozenset[int]]) -> bytes:
    found = (_string(topic) + pack(f">i{len(of)}i", len(of), *sorted(of)) for topic, of in sorted(has.items()))
    return pack(">i", len(has)) + b"".join(found)


def subscription(*topics: str, version: int = 1, has: Mapping[str, frozenset[int]] | None = None, rack: str = "") -> bytes:
    """What a consumer says of itself, by ConsumerProtocolSubscription.json."""
    data = pack(">hi", version, len(topics)) + b"".join(map(_string, topics)) + pack(">i", -1)
    if version >= 1:
        data += _partitions(has or {})
    if version >= 2:
        data += pack(">i", 7)
    return data + (_string(rack) if version >= 3 else b"")


def assignment(version: int = 0, user_data: bytes | None = None, **has: frozenset[int] | set[int]) -> bytes:
    """What a consumer is assigned, by ConsumerProtocolAssignment.json."""
    data = pack(">i", -1) if user_data is None else pack(">i", len(user_data)) + user_data
    return pack(">h", version) + _partitions({topic: frozenset(of) for topic, of in has.items()}) + data


def assigned(data: bytes) -> Has:
    """The partitions of an assignment."""
    found, pos = {}, 6
    for _ in range(int.from_bytes(data[2:6], "big")):
        end = pos + 2 + int.from_bytes(data[pos : pos + 2], "big")
        topic, count = data[pos + 2 : end].decode(), int.from_bytes(data[end : end + 4], "big")
        pos = end + 4 + 4 * count
        found[topic] = frozenset(int.from_bytes(data[at : at + 4], "big") for at in range(end + 4, pos, 4))
    assert data[pos:] == pack(">i", -1)
    return found


@dataclass
class ClassicConsumer:
    """A client of the classic protocol: its generation, and what it has. A cooperative one keeps that while it joins again."""

    member_id: str
    topics: tuple[str, ...] = ("orders",)
    is_cooperative: bool = False
    instance_id: str | None = None
    version: int = 1
    protocols: tuple[str, ...] = ("range",)
    generation: int = -1
    has: Has = field(default_factory=dict)
    code: int = 0

    @property
    def offers(self) -> dict[str, bytes]:
        owned = self.has if self.is_cooperative else {}
        return dict.fromkeys(self.protocols, subscription(*self.topics, version=self.version, has=owned))


class MixedMembers(Consumers):
    """A coordinator, and what members of both protocols of the group `readers` ask of it."""

    def shared(self, *shares: frozenset[int] | set[int], data: bytes | None = None, **more: Any) -> list[ClassicConsumer]:
        """A stable classic group whose members have these partitions of `orders`, or what `data` says."""
        protocols = more.pop("protocols", {"range": subscription("orders")})
        told = self.rebalanced(len(shares), protocols=protocols, **more)
        given = {one.member_id: assignment(orders=of) if data is None else data for one, of in zip(told, shares, strict=True)}
        for one in told:
            self.sync(one.member_id, one.generation_id, given if one.leader == one.member_id else {})
        names = (*more.get("instances", ()), *(None,) * len(shares))
        return [
            ClassicConsumer(one.member_id, instance_id=name, generation=one.generation_id, has={"orders": frozenset(of)})
            for one, of, name in zip(told, shares, names, strict=False)
        ]

    def came(self, *topics: str, member_version: int = 9, **more: Any) -> ClassicConsumer:
        """A classic member that has joined the consumer group, and asked for its partitions."""
        consumer = ClassicConsumer("", topics or ("orders",), **more)
        if consumer.instance_id is None and member_version >= 4:
            told = self.join("", consumer.offers, version=member_version).result(0)
            assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
            consumer.member_id = told.member_id
        return self.rejoin(consumer, version=member_version)

    def rejoin(self, consumer: ClassicConsumer, *, syncs: bool = True, **more: Any) -> ClassicConsumer:
        """The member joins, and asks for its partitions. One that is not cooperative has given up all it had before."""
        said = {"instance_id": consumer.instance_id, **more}
        told = self.join(consumer.member_id, consumer.offers, **said).result(0)
        consumer.code = told.error_code
        if told.error_code:
            return consumer
        assert (told.leader, told.members, told.protocol_type) == ("", (), "consumer")
        consumer.member_id, consumer.generation = told.member_id, told.generation_id
        return self.synced(consumer) if syncs else consumer

    def synced(self, consumer: ClassicConsumer) -> ClassicConsumer:
        """The member asks for its partitions."""
        names = {"protocol_type": "consumer", "protocol_name": consumer.protocols[0]}
        found = self.sync(consumer.member_id, consumer.generation, group_instance_id=consumer.instance_id, **names).result(0)
        consumer.code = found.error_code
        if not found.error_code:
            consumer.has = assigned(found.assignment)
        return consumer

    def beats(self, consumer: ClassicConsumer) -> int:
        """The error code of a heartbeat."""
        return self.heartbeat(consumer.member_id, consumer.generation, consumer.instance_id)

    def goes_on(self, *consumers: Any, rounds: int = 6) -> list[Has]:
        """What clients of both protocols have after some heartbeats of each; classic ones join again when they are told to."""
        for _ in range(rounds):
            for one in consumers:
                if not isinstance(one, ClassicConsumer):
                    self.beat(one)
                elif self.beats(one) == REJOIN:
                    self.rejoin(one)
        return [one.has for one in consumers]

    def consumer_described(self) -> DescribedConsumerGroup:
        """As for an administrator."""
        return self.groups.describe_consumer_group(GROUP)

    def group_type(self) -> str:
        """The type of the group, and its state."""
        ((_, kind, state),) = self.listed()
        return f"{kind} {state}"


__all__ = ["DELAY_MS", "GROUP", "REBALANCE_MS", "REJOIN", "SESSION_MS"]
