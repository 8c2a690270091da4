"""What a history says of each partition's log: which value is at which offset, who sent it, and who has to be given it."""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from histories.operations import History, Kind, Operation, Outcome

SENDS = (Kind.SEND, Kind.TXN)


@dataclass
class Logs:
    """The logs of a history."""

    history: History
    sender_of: dict[str, Operation] = field(default_factory=dict)
    """By value."""
    partition_of: dict[str, str] = field(default_factory=dict)
    """By value that was sent."""
    values: dict[str, dict[int, dict[str, Operation]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))
    """By partition and offset: each value that somebody was told, and who was."""
    offsets: dict[tuple[str, str], dict[int, Operation]] = field(default_factory=lambda: defaultdict(dict))
    """By partition and value: each of its offsets, and who was told."""
    polls: dict[bool, dict[tuple[str, str], Operation]] = field(default_factory=lambda: {True: {}, False: {}})
    """By whether only committed records are read, and partition and value: the first who read it."""

    def __post_init__(self) -> None:
        for one in self.history:
            for sent in one.sent:
                self.sender_of[sent.value], self.partition_of[sent.value] = one, sent.partition
                if sent.offset is not None:
                    self._told(sent.partition, sent.offset, sent.value, one)
            if one.kind is Kind.POLL:
                for polled in one.polled:
                    self._told(polled.partition, polled.offset, polled.value, one)
                    self.polls[one.is_committed_only].setdefault((polled.partition, polled.value), one)

    def _told(self, partition: str, offset: int, value: str, one: Operation) -> None:
        self.values[partition][offset].setdefault(value, one)
        self.offsets[partition, value].setdefault(offset, one)

    @cached_property
    def _committed_after_all(self) -> frozenset[int]:
        """The transactions of which nobody knew whether they were committed, and of which something is read."""
        found = {self.sender_of[value].index for _, value in self.polls[True] if value in self.sender_of}
        return frozenset(one.index for one in self.history if one.index in found and one.outcome is Outcome.UNKNOWN)

    def is_committed(self, one: Operation) -> bool:
        """Whether what it sent has to be there, for readers of committed records, too."""
        return one.outcome is Outcome.OK or one.index in self._committed_after_all

    @cached_property
    def ranges(self) -> dict[str, set[tuple[int, int]]]:
        """By partition: what processes have read without a break, from the position that they were given."""
        found: dict[str, set[tuple[int, int]]] = defaultdict(set)
        started: dict[tuple[str, str], int] = {}
        last: dict[tuple[str, str], int] = {}

        def ends(process: str) -> None:
            for key in [key for key in started if key[0] == process]:
                start = started.pop(key)
                found[key[1]].add((start, last.pop(key, start)))

        for one in self.history:
            if one.kind is Kind.ASSIGN:
                ends(one.process)
                started |= {(one.process, at.partition): at.offset for at in one.positions}
            elif one.kind is Kind.POLL:
                last |= {(one.process, polled.partition): polled.offset + 1 for polled in one.polled}
                last |= {(one.process, end.partition): end.offset for end in one.positions}
        for process in {process for process, _ in started}:
            ends(process)
        return found

    @cached_property
    def visible(self) -> dict[tuple[str, bool], list[int]]:
        """By partition and whether only committed records are read: the offsets that a reader has to be given, in order."""
        found: dict[tuple[str, bool], list[int]] = {}
        for partition, values in self.values.items():
            found[partition, False] = sorted(values)
            found[partition, True] = [offset for offset in found[partition, False] if self._is_visible(partition, offset)]
        return found

    def _is_visible(self, partition: str, offset: int) -> bool:
        return any(
            (partition, value) in self.polls[True] or (value in self.sender_of and self.is_committed(self.sender_of[value]))
            for value in self.values[partition][offset]
        )

    def between(self, partition: str, start: int, end: int, *, is_committed_only: bool) -> list[int]:
        """The offsets in [start, end) that a reader has to be given."""
        found = self.visible.get((partition, is_committed_only), [])
        return found[bisect_left(found, start) : bisect_left(found, end)]
