"""A log beside a list of batches: whatever happens to both, crashes too, all of the list can be read and nothing else."""

from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lived_logs import Written, empty_disk
from lives import ALL_LOST, KILLED, Crash, Life
from simulated_disk import Crashed
from sound_logs import check_sound, replayed

from local_log.engine.memory_records import memory_batches
from local_log.engine.offsets import Isolation
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import OffsetOutOfRange
from local_log.formats.checkpoints import EpochEntry

PARTS = st.floats(0, 1)
"""How far into what there is."""
SIZES = st.sampled_from([10, 300, 900, 2_000, 4_090, 6_000])
IN_TRANSACTIONS, OUTSIDE = st.integers(1, 3), st.sampled_from([-1, -1, 4, 5])
CRASHES: st.SearchStrategy[Crash] = st.one_of(
    st.just(KILLED), st.just(ALL_LOST), st.tuples(st.sampled_from([0.2, 0.5, 0.8]), st.integers(0, 1_000))
)


class AnyLife(RuleBasedStateMachine):
    """The life's list of batches is the model."""

    @initialize()
    def begin(self) -> None:
        self.life = Life(empty_disk(), replicates=False)
        self.life.open()

    @property
    def log(self) -> UnifiedLog:
        return self.life.log

    def some_offset(self, part: float, low: int, high: int) -> int:
        """Where a batch starts or the last one ends, in `[low, high]`."""
        ends = sorted({b for b in [low, high, *(b.end for b in self.life.batches)] if low <= b <= high})
        return ends[round(part * (len(ends) - 1))]

    # What happens

    @rule(records=st.integers(1, 3), size=SIZES, producer=OUTSIDE)
    def append(self, records: int, size: int, producer: int) -> None:
        self.life.append(records=records, size=size, producer=producer)

    @rule(size=SIZES, producer=IN_TRANSACTIONS)
    def append_in_a_transaction(self, size: int, producer: int) -> None:
        self.life.append(size=size, producer=producer, in_transaction=True)

    @rule(producer=IN_TRANSACTIONS, commits=st.booleans())
    def end_a_transaction(self, producer: int, commits: bool) -> None:
        self.life.end_transaction(producer, commits=commits)

    @rule()
    def another_leader(self) -> None:
        self.life.epoch += 1

    @rule()
    def roll(self) -> None:
        self.life.log.roll()

    @rule()
    def flush(self) -> None:
        self.life.flush()
        assert self.log.recovery_point == self.log.log_end_offset

    @rule(part=PARTS)
    def replicate(self, part: float) -> None:
        before = self.log.high_watermark
        offset = self.some_offset(part, self.log.log_start_offset, self.log.log_end_offset)
        assert self.log.maybe_increment_high_watermark(offset) == (offset > before)
        assert self.log.high_watermark == max(before, offset)

    @precondition(lambda self: self.log.high_watermark > self.log.log_start_offset)
    @rule(part=PARTS)
    def delete_records(self, part: float) -> None:
        offset = self.some_offset(part, self.log.log_start_offset, self.log.high_watermark)
        self.life.delete_records(offset)
        assert self.log.log_start_offset == offset

    @rule()
    def retain(self) -> None:
        self.life.retain()

    @rule()
    def delete_records_that_are_not_replicated(self) -> None:
        with pytest.raises(OffsetOutOfRange):
            self.log.maybe_increment_log_start_offset(self.log.high_watermark + 1)

    @rule(part=PARTS)
    def truncate(self, part: float) -> None:
        first = self.log.local.segments.first.base_offset
        offset = self.some_offset(part, first, self.log.log_end_offset)
        self.life.truncate(offset)
        assert self.log.log_end_offset == offset

    @rule(part=PARTS)
    def begin_anew(self, part: float) -> None:
        offset = round(part * (self.log.log_end_offset + 10))
        self.life.restart(offset)
        assert (self.log.log_start_offset, self.log.log_end_offset) == (offset, offset)

    @rule()
    def shut_down_and_start(self) -> None:
        self.life.reopen()

    @rule(crash=CRASHES)
    def crash(self, crash: Crash) -> None:
        self.life = self.life.survive(crash)

    @rule(
        act=st.sampled_from(["append", "roll", "flush", "truncate", "begin_anew", "reopen", "delete", "retain"]),
        part=PARTS,
        size=SIZES,
        calls=st.integers(1, 30),
        crash=CRASHES,
    )
    def crash_in_the_middle(self, act: str, part: float, size: int, calls: int, crash: Crash) -> None:
        life = self.life
        life.disk.crash_after = len(life.disk.calls) + calls
        acts = {
            "append": lambda: self.append(1, size, 4),
            "roll": self.roll,
            "flush": self.flush,
            "truncate": lambda: self.truncate(part),
            "begin_anew": lambda: self.begin_anew(part),
            "reopen": life.reopen,
            "retain": life.retain,
            "delete": lambda: self.log.high_watermark > self.log.log_start_offset and self.delete_records(part),
        }
        with suppress(Crashed):
            acts[act]()
        self.life = life.survive(crash)

    @rule(part=PARTS, size_max=st.sampled_from([0, 1, 1_000, 5_000, 30_000]), isolation=st.sampled_from(Isolation))
    def read(self, part: float, size_max: int, isolation: Isolation) -> None:
        log = self.log
        offset = log.log_start_offset + round(part * (log.log_end_offset - log.log_start_offset))
        ends = {
            Isolation.LOG_END: log.log_end_offset,
            Isolation.HIGH_WATERMARK: log.high_watermark,
            Isolation.TXN_COMMITTED: log.last_stable_offset,
        }
        following = [b for b in self.life.batches if b.end > offset and b.header.base_offset < ends[isolation]]
        found = log.read(offset, size_max, isolation).records
        assert b"".join(b.data for b in following).startswith(found)
        if following and offset < ends[isolation]:
            assert len(following[0].data) <= len(found) <= max(size_max, len(following[0].data))
        else:
            assert found == b""

    # What always holds

    @invariant()
    def the_log_is_sound_and_has_the_batches_of_the_model(self) -> None:
        assert [b.data for b in check_sound(self.log, self.life.start_max, self.life.ever())] == [
            b.data for b in self.life.batches
        ]

    @invariant()
    def every_batch_can_be_read_and_nothing_else(self) -> None:
        log = self.log
        offset, found = log.log_start_offset, []
        while offset < log.log_end_offset:
            records = log.read(offset, 1).records
            (header,) = memory_batches(records)
            found.append(records)
            offset = header.last_offset + 1
        assert found == [b.data for b in self.life.batches if b.end > log.log_start_offset]
        assert log.read(log.log_end_offset, 1_000).records == b""
        for outside in (log.log_start_offset - 1, log.log_end_offset + 1):
            with pytest.raises(OffsetOutOfRange):
                log.read(outside, 1_000)

    @invariant()
    def open_transactions_hold_back_the_last_stable_offset(self) -> None:
        producers, _ = replayed(self.life.ever())
        still_open = [k.txn_first_offset for k in producers.values() if k.txn_first_offset is not None]
        inside = [first for first in still_open if first >= self.log.log_start_offset]
        assert self.log.last_stable_offset <= min(inside, default=self.log.high_watermark)
        if self.log.high_watermark == self.log.log_end_offset and not still_open:
            assert self.log.last_stable_offset == self.log.high_watermark

    @invariant()
    def an_epoch_ends_where_the_next_one_starts(self) -> None:
        entries = epochs_of(self.life.batches, self.log.log_start_offset)
        ends = [*(e.start_offset for e in entries[1:]), self.log.log_end_offset]
        for entry, end in zip(entries, ends, strict=False):  # there is an end even where there is no epoch
            assert self.log.epochs.end_offset_for(entry.epoch, self.log.log_end_offset) == EpochEntry(entry.epoch, end)


def epochs_of(batches: list[Written], start: int) -> list[EpochEntry]:
    """The epochs that have batches at or above `start`."""
    entries: list[EpochEntry] = []
    for b in batches:
        if b.end > start and (not entries or entries[-1].epoch != b.header.leader_epoch):
            entries.append(EpochEntry(b.header.leader_epoch, b.header.base_offset))
    return entries


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(deadline=None, max_examples=150, stateful_step_count=50, derandomize=True)
