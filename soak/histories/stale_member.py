"""A member of a group by hand: it commits with the generation before, after the group has had another one."""

import random  # noqa: TID251  # of a seed
from dataclasses import dataclass
from typing import Any

from asked_by_wire import Wire

from histories.operations import Kind, Outcome, Position
from histories.recorder import Recorder
from tiering.endpoint.protocol.api_keys import JOIN_GROUP, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP, TOPIC = "by-hand", "orders"


class Again(Exception):  # it is no error: the member begins anew
    """The connection, or the member, is gone."""


@dataclass
class StaleMember:
    """Commits numbers that grow; those of its former generation are to be refused."""

    process: str
    address: str
    recorder: Recorder
    chance: random.Random
    member_id: str = ""
    number: int = 0

    def run(self) -> None:
        wire = Wire(self.address)
        while not self.recorder.stopping.is_set():
            try:
                before = self.joined(wire, b"a")
                self.commit(wire, before)
                now = self.joined(wire, b"b")
                self.commit(wire, now)
                self.commit(wire, before, is_stale=True)
                self.fetch(wire)
            except (Again, OSError) as e:
                self.recorder.count(f"{self.process}: {type(e).__name__}")
                wire.close()
                self.member_id = ""
            self.recorder.stopping.wait(self.chance.random())

    def asked(self, wire: Wire, api: Any, version: int, message: object) -> Any:
        found = wire.ask(api, version, message)
        if found is None:
            raise Again
        return found

    def joined(self, wire: Wire, metadata: bytes) -> int:
        """The generation that it is in then; other metadata than before make another one."""
        protocols = (JoinGroupRequestProtocol("by hand", metadata),)
        found = self.asked(
            wire,
            JOIN_GROUP,
            3,
            JoinGroupRequest(GROUP, 10_000, 10_000, self.member_id, protocol_type="test", protocols=protocols),
        )
        if found.error_code:
            raise Again
        self.member_id = found.member_id
        assigned = (SyncGroupRequestAssignment(self.member_id, b""),)
        if self.asked(
            wire, SYNC_GROUP, 2, SyncGroupRequest(GROUP, found.generation_id, self.member_id, assignments=assigned)
        ).error_code:
            raise Again
        return int(found.generation_id)

    def commit(self, wire: Wire, generation: int, *, is_stale: bool = False) -> None:
        """A number that is greater than all before, or, of a stale member, one less."""
        self.number += -1 if is_stale else 2
        place = OffsetCommitRequestTopic(TOPIC, partitions=(OffsetCommitRequestPartition(0, self.number, committed_metadata=""),))
        invoked_ns, outcome = self.recorder.now_ns(), Outcome.UNKNOWN
        fields: dict[str, Any] = {"group": GROUP, "positions": (Position(f"{TOPIC}-0", self.number),)}
        self.number += 1 if is_stale else 0
        try:
            found = self.asked(wire, OFFSET_COMMIT, 7, OffsetCommitRequest(GROUP, generation, self.member_id, topics=(place,)))
            outcome = Outcome.FAIL if found.topics[0].partitions[0].error_code else Outcome.OK
        finally:
            self.recorder.note(self.process, Kind.COMMIT, invoked_ns, outcome, **fields)
        if outcome is Outcome.FAIL and not is_stale:
            raise Again

    def fetch(self, wire: Wire) -> None:
        invoked_ns = self.recorder.now_ns()
        found = self.asked(wire, OFFSET_FETCH, 5, OffsetFetchRequest(GROUP, (OffsetFetchRequestTopic(TOPIC, (0,)),)))
        told = found.topics[0].partitions[0]
        if not told.error_code:
            at = (Position(f"{TOPIC}-0", told.committed_offset),)
            self.recorder.note(self.process, Kind.COMMITTED, invoked_ns, group=GROUP, positions=at)
