"""Whatever is done to a log and its archive, reads over both tiers give what was appended, and answer as a linear scan does."""

from itertools import takewhile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from owned_logs import OwnedLog, drained
from simulated_disk import SimulatedDisk
from small_logs import NOW

from local_log.engine.memory_records import memory_batches
from local_log.errors import OffsetOutOfRange
from local_log.formats.list_offsets import EARLIEST, EARLIEST_LOCAL, LATEST
from tiering.read.tiered_log import Isolation

COMMITTED = Isolation.read_committed
SIZES = st.sampled_from([1, 200, 600, 1 << 20])


class AnyLife(RuleBasedStateMachine):
    """A log that is appended to, archived, dropped, expired, cut and opened again."""

    def __init__(self) -> None:
        super().__init__()
        disk = SimulatedDisk()
        disk.make_folder("/logs")
        self.at = OwnedLog("/logs", disk=disk, segment_bytes=400, file_delete_delay_ms=0)
        self.sequences = dict.fromkeys(range(1, 4), 0)
        self.open: set[int] = set()
        self.position = 0

    @rule(count=st.integers(1, 5), time=st.integers(0, 50))
    def append(self, count: int, time: int) -> None:
        self.at.fill(count, time=NOW + time)

    @rule(producer=st.integers(1, 3), batches=st.integers(1, 4), commit=st.sampled_from([True, False, None]))
    def transaction(self, producer: int, batches: int, commit: bool | None) -> None:
        self.at.transaction(producer, batches, sequence=self.sequences[producer], commit=commit)
        self.sequences[producer] += batches
        self.open = self.open - {producer} if commit is not None else self.open | {producer}

    @rule()
    def end_transactions(self) -> None:
        for producer in self.open:
            self.at.end_transaction(producer, commit=False)
        self.open = set()

    @rule()
    def offload(self) -> None:
        self.at.offload()

    @rule(local_bytes=st.sampled_from([0, 500, 1_500]))
    def offload_and_drop(self, local_bytes: int) -> None:
        self.at.offload()
        self.at.live.refresh()
        self.at.drop(local_bytes)

    @rule(retention_bytes=st.sampled_from([300, 900]))
    def expire(self, retention_bytes: int) -> None:
        if self.at.archived_end():
            self.at.expire(retention_bytes)

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        log = self.at.log
        log.maybe_increment_log_start_offset(log.log_start_offset + int(part * (log.high_watermark - log.log_start_offset)))

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        """Not into a transaction: what is archived of it would be without its end."""
        log = self.at.log
        first = max(log.log_start_offset, self.at.archived_end(), log.local_log_start_offset)
        later = sorted((base for base in self.at.batches if base >= first), reverse=True)
        plain = [*takewhile(lambda base: not memory_batches(self.at.batches[base])[0].is_transactional, later)]
        if plain:
            offset = plain[int(part * (len(plain) - 1))]
            log.truncate_to(offset)
            self.at.batches = {base: body for base, body in self.at.batches.items() if base < offset}
            self.forget_producers()

    def forget_producers(self) -> None:
        """Goes on as the log says that its producers do."""
        for producer in self.sequences:
            known = self.at.log.producers.producers.get(producer)
            self.sequences[producer] = known.last_sequence + 1 if known is not None and known.batches else 0
            (self.open.add if known is not None and known.txn_first_offset is not None else self.open.discard)(producer)

    @rule()
    def reopen(self) -> None:
        start = self.at.log.log_start_offset
        self.at.log.close()
        self.at.log = self.at.opened(start=start)
        self.at.live = self.at.lived()
        self.forget_producers()

    @rule(part=st.floats(0, 1), size=SIZES)
    def read(self, part: float, size: int) -> None:
        now = self.at.log.offsets
        offset = now.log_start + int(part * (now.end.offset - now.log_start))
        assert drained(self.at.live, offset, size) == (self.at.expected(offset) if offset < now.end.offset else b"")
        committed = drained(self.at.live, offset, size, isolation=COMMITTED)
        assert committed == (self.at.expected(offset, now.last_stable) if offset < now.last_stable else b"")

    @rule()
    def refresh(self) -> None:
        self.at.live.refresh()

    @rule(sizes=st.lists(SIZES, min_size=1, max_size=4))
    def go_on(self, sizes: list[int]) -> None:
        """Fetches of a reader that reads on and on, whatever is done in between."""
        for size in sizes:
            now = self.at.log.offsets
            offset = min(max(self.position, now.log_start), now.end.offset)
            records = self.at.live.fetch(offset, size).read()
            whole = memory_batches(records)
            expected = self.at.expected(offset) if offset < now.end.offset else b""
            assert records[: sum(b.size for b in whole)] == expected[: sum(b.size for b in whole)]
            assert bool(whole) == bool(expected)
            self.position = whole[-1].last_offset + 1 if whole else 0

    @rule(time=st.integers(-1, 60))
    def find(self, time: int) -> None:
        start = self.at.log.log_start_offset
        found = self.at.live.list_offsets(NOW + time)
        headers = [memory_batches(self.at.batches[base])[0] for base in sorted(self.at.batches)]
        late = (max(b.base_offset, start) for b in headers if b.last_offset >= start and b.max_timestamp >= NOW + time)
        assert (found and found.offset) == next(late, None)

    @invariant()
    def holds(self) -> None:
        now = self.at.log.offsets
        asked = [self.at.live.list_offsets(time) for time in (EARLIEST, EARLIEST_LOCAL, LATEST)]
        assert [found and found.offset for found in asked] == [now.log_start, now.local_log_start, now.high_watermark.offset]
        assert now.log_start <= now.local_log_start <= now.end.offset
        for offset in (now.log_start - 1, now.end.offset + 1):
            try:
                self.at.live.fetch(offset, 1)
            except OffsetOutOfRange:
                continue
            raise AssertionError(offset)


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
