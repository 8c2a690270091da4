"""What must hold of groups: who has which partition in which generation, and which offsets are committed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from local_log.formats.filenames import TopicPartition
from simulated.schedule import Schedule

Place = tuple[str, TopicPartition]
"""A group and a partition."""
NOTHING = -1


@dataclass(eq=False)
class Member:
    """A member of a consumer group of KIP-848, as the endpoint has told it."""

    heard_ms: int
    has: frozenset[TopicPartition] = frozenset()
    told: frozenset[TopicPartition] = frozenset()
    revoked_ms: int | None = None
    """Since when it is asked to give something up."""


@dataclass(eq=False)
class GroupsJudge:
    """`keeps_all`: what was appended is kept whatever crashes."""

    schedule: Schedule
    keeps_all: bool
    session_ms: int
    rebalance_ms: int
    positions: dict[Place, list[int]] = field(default_factory=dict)
    """What was committed since the last that is kept, the latest last."""
    unsure: set[Place] = field(default_factory=set)
    """Where it may be any of these: a crash or a failing disk may have taken some."""
    pending: dict[int, dict[Place, tuple[int, int]]] = field(default_factory=dict)
    """Of transactions that are open, by producer id: where what they have consumed begins and ends."""
    generations: dict[str, int] = field(default_factory=dict)
    _synced: dict[str, int] = field(default_factory=dict)
    _leaders: dict[tuple[str, int], str] = field(default_factory=dict)
    _owners: dict[tuple[str, int, TopicPartition], str] = field(default_factory=dict)
    _members: dict[str, dict[str, Member]] = field(default_factory=dict)
    _unsure_generations: set[str] = field(default_factory=set)
    """The groups of which a failing disk may have kept a generation that nobody was told of."""
    _unsynced: set[int] = field(default_factory=set)
    _unsure_pending: set[tuple[int, Place]] = field(default_factory=set)
    _ended: dict[int, set[tuple[Place, int]]] = field(default_factory=dict)
    """What was pending in transactions whose markers may not be on the disk, by producer id."""
    _revived: dict[int, set[tuple[Place, int]]] = field(default_factory=dict)
    """The same since their markers may be lost: the producer's next marker may end them."""

    # Classic groups

    def joined(self, group: str, generation: int, leader: str) -> None:
        """A member was told that it is one of a generation."""
        if generation < self.generations.get(group, 0):
            raise self.schedule.violated(f"{group} is in generation {generation}, after {self.generations[group]}")
        self.generations[group] = generation
        if self._leaders.setdefault((group, generation), leader) != leader:
            raise self.schedule.violated(f"generation {generation} of {group} has two leaders")

    def assigned(self, group: str, generation: int, member: str, partitions: Iterable[TopicPartition]) -> None:
        """A member was told its assignment."""
        self.takes(group, generation, f"a sync of {member}")
        self._synced[group] = generation
        for one in partitions:
            owner = self._owners.setdefault((group, generation, one), member)
            if owner != member:
                raise self.schedule.violated(f"{one} is of {owner} and of {member} in generation {generation} of {group}")

    def may_be_in(self, group: str) -> None:
        """A generation has failed with the disk: nobody knows whether it is kept."""
        self._unsure_generations.add(group)

    def takes(self, group: str, generation: int, what: str) -> None:
        """Something of a member of a generation was taken."""
        if generation != self.generations.get(group, generation):
            raise self.schedule.violated(
                f"{what} of generation {generation} of {group} is taken, and {self.generations[group]} is current"
            )

    # Groups of KIP-848

    def left(self, group: str, member: str) -> None:
        """A member has left, or has said that it does: it has nothing more, whatever it was answered."""
        self._members.get(group, {}).pop(member, None)

    def gives_up(self, group: str, member: str, owned: frozenset[TopicPartition] | None) -> None:
        """A member has said what it has, and was told an error: what it has said may be kept all the same."""
        known = self._members.get(group, {}).get(member)
        if known is not None and owned is not None:
            known.has &= owned

    def heard(
        self, group: str, member: str, owned: frozenset[TopicPartition] | None, told: frozenset[TopicPartition] | None
    ) -> None:
        """A member has said what it has, if it has changed, and was told what to have, if that has."""
        members, now = self._members.setdefault(group, {}), self.schedule.now
        known = members.setdefault(member, Member(now))
        known.heard_ms = now
        had = known.has if owned is None else owned
        if told is not None:
            for name, other in members.items():
                both = told & other.has - had
                if name != member and both and not self._is_out(other):
                    raise self.schedule.violated(f"{min(both)} of {group} is given to {member}, and {name} has it")
            known.told = told
        known.has = had | known.told
        known.revoked_ms = None if known.has == known.told else known.revoked_ms or now

    def _is_out(self, member: Member) -> bool:
        """Whether the endpoint may have given up a member."""
        now = self.schedule.now
        is_late = member.revoked_ms is not None and now - member.revoked_ms >= self.rebalance_ms
        return is_late or now - member.heard_ms >= self.session_ms

    def check_owner(self, group: str, member: str, partition: TopicPartition) -> None:
        """A commit of a member of a consumer group was taken."""
        for name, other in self._members.get(group, {}).items():
            if name != member and partition in other.told and not self._is_out(other):
                raise self.schedule.violated(f"{group} takes a commit of {member} for {partition}, which {name} has")

    # Offsets

    def committed(self, place: Place, offset: int, *, is_sure: bool = False) -> None:
        """A commit was taken."""
        known = self.positions.setdefault(place, [NOTHING])
        known.append(offset)
        self.unsure.discard(place)
        if is_sure or self.keeps_all:
            del known[:-1]

    def is_synced(self, place: Place, offset: int) -> None:
        """A commit that was taken before is on the disk."""
        known = self.positions.get(place, [])
        if offset in known:
            del known[: len(known) - 1 - known[::-1].index(offset)]

    def may_be(self, place: Place, offset: int) -> None:
        """A commit has failed with the disk: nobody knows whether it is kept."""
        self.positions.setdefault(place, [NOTHING]).append(offset)
        self.unsure.add(place)

    def consumes(self, producer_id: int, place: Place, begin: int, end: int) -> None:
        """A transaction has taken offsets of a group: what it has consumed."""
        pending = self.pending.setdefault(producer_id, {})
        if (producer_id, place) in self._unsure_pending and pending[place] != (begin, end):
            self.may_be(place, pending[place][1])  # the one before has ended, and nobody knows what a crash has taken of it
        pending[place] = begin, end
        self._unsynced.add(producer_id)
        self._unsure_pending.discard((producer_id, place))

    def is_consumed(self, producer_id: int) -> None:
        """That is on the disk."""
        self._unsynced.discard(producer_id)

    def ends(self, producer_id: int, *, committed: bool, is_sure: bool) -> None:
        """The offsets of a group have the marker of a producer's transaction."""
        pending, revived = self.pending.pop(producer_id, {}), self._revived.pop(producer_id, set())
        for place, end in sorted(revived) if committed else ():
            self.may_be(place, end)
        if not (is_sure or self.keeps_all):
            self._ended.setdefault(producer_id, set()).update(revived, ((place, end) for place, (_, end) in pending.items()))
        for place, (begin, end) in pending.items() if committed else ():
            if (producer_id, place) in self._unsure_pending:
                self.may_be(place, end)
                continue
            known = self.positions.setdefault(place, [NOTHING])
            if place not in self.unsure and known[-1] != begin:
                raise self.schedule.violated(
                    f"a transaction has consumed [{begin}, {end}) of {place}, and another one up to {known[-1]}"
                )
            self.committed(place, end, is_sure=is_sure)
        self._unsure_pending -= {(producer_id, place) for place in pending}

    def told(self, place: Place, offset: int) -> None:
        """Somebody was told a position."""
        known = self.positions.setdefault(place, [NOTHING])
        if place in self.unsure and offset in known:
            known.append(offset)
            self.unsure.discard(place)
        elif offset != known[-1]:
            raise self.schedule.violated(f"{place} is at {offset}, and {known[-1]} is committed")

    # Crashes

    def crashed(self, *, is_killed: bool, keeps_ended: bool) -> None:
        """Another process goes on with what is kept. `keeps_ended`: what is committed in transactions that have ended is."""
        if not is_killed and not self.keeps_all:
            for known in (self.generations, self._synced, self._leaders, self._owners, self._members):
                known.clear()
            self.unsure |= {place for place, known in self.positions.items() if len(known) > 1}
            unsure = self.pending.keys() & self._unsynced if keeps_ended else self.pending.keys()
            self._unsure_pending |= {(producer_id, place) for producer_id in unsure for place in self.pending[producer_id]}
            for producer_id, ended in self._ended.items() if not keeps_ended else ():
                self._revived.setdefault(producer_id, set()).update(ended)
            self._ended.clear()
        for group in self._unsure_generations:
            self._synced.pop(group, None)
        self._unsure_generations.clear()
        self.generations = {**self._synced}
        self._leaders = {key: leader for key, leader in self._leaders.items() if key[1] <= self._synced.get(key[0], 0)}
        for group, members in self._members.items():
            self._members[group] = {name: one for name, one in members.items() if not self._is_out(one)}
            for one in self._members[group].values():
                one.heard_ms, one.revoked_ms = self.schedule.now, None

    def goes_on(self, ends: Mapping[TopicPartition, int]) -> None:
        """The process goes on, with logs that end there: what was committed beyond these ends is set to them.

        Not what is pending again, since the marker of its transaction is lost.
        """
        for place, offsets in self.positions.items():
            lowered = [min(offset, ends[place[1]]) for offset in offsets]
            known = {offset for offset in (*offsets, *lowered) if place in self.unsure}
            offsets[:] = [*sorted(known), lowered[-1]] if known else lowered
