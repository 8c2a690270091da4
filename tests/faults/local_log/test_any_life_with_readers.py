"""A log that lives as in `test_any_life`, while other threads read it: they get whole batches of offsets that they asked for."""

import random  # noqa: TID251  # seeded
import sys
import threading

import pytest
from hypothesis import settings
from hypothesis.stateful import initialize, rule
from lived_logs import empty_disk
from lives import Life
from test_any_life import IN_TRANSACTIONS, SIZES, AnyLife

from local_log.engine.cleaner import OffsetMap, clean
from local_log.engine.memory_records import memory_batches
from local_log.engine.offsets import Isolation
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Conflict, OffsetOutOfRange
from local_log.formats.checksum import crc32c


def read_once(log: UnifiedLog, r: random.Random) -> None:
    """A read of any offset, checked."""
    now = log.offsets
    assert now.log_start <= now.last_stable <= now.high_watermark.offset <= now.end.offset
    offset = r.randint(now.log_start, now.end.offset)
    try:
        asked = offset, r.choice([1, 3_000, 30_000]), r.choice(list(Isolation))
        if r.random() < 0.5:
            records = log.read(*asked).records
        else:
            found = log.fetch(*asked).range
            records = b"" if found is None else found.read()
        log.offset_for(r.choice([-1, -2, 0]))
    except (OffsetOutOfRange, Conflict):
        return  # truncated or deleted since
    whole = [b for b in memory_batches(records) if b.position + b.size <= len(records)]
    for b in whole:
        assert (
            crc32c(memoryview(records)[b.position + 21 : b.position + b.size]).to_bytes(4, "big")
            == records[b.position + 17 :][:4]
        )
    assert not whole or whole[0].base_offset <= offset <= whole[0].last_offset


class AnyLifeWithReaders(AnyLife):
    """No crashes: after one, nobody reads on."""

    is_keyed = False

    @initialize()
    def begin(self) -> None:
        self.life = Life(empty_disk(), replicates=False, is_keyed=self.is_keyed)
        self.life.open()
        self.errors: list[BaseException] = []
        self.is_over = False
        self.interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        self.readers = [threading.Thread(target=self.read_on, args=(seed,)) for seed in range(2)]
        for reader in self.readers:
            reader.start()

    def read_on(self, seed: int) -> None:
        r = random.Random(seed)
        while not self.is_over and not self.errors:
            log = self.life.log
            try:
                read_once(log, r)
            except BaseException as e:
                if self.life.log is log:  # else it has been closed
                    self.errors.append(e)

    def teardown(self) -> None:
        """Stops the readers; raises what one of them met."""
        if hasattr(self, "readers"):
            self.is_over = True
            for reader in self.readers:
                reader.join()
            sys.setswitchinterval(self.interval)
            if self.errors:
                raise self.errors[0]

    @rule()
    def crash(self) -> None:
        pass

    @rule()
    def crash_in_the_middle(self) -> None:
        pass


TestAnyLifeWithReaders = pytest.mark.slow(AnyLifeWithReaders.TestCase)
TestAnyLifeWithReaders.settings = settings(deadline=None, max_examples=12, stateful_step_count=30, derandomize=True)


class AnyCompactedLifeWithReaders(AnyLifeWithReaders):
    """Rounds of cleaning join segments. They keep all batches: every key is the only one of its kind, and nothing is aborted."""

    is_keyed = True

    @rule()
    def compact(self) -> None:
        self.log.roll()
        self.log.maybe_increment_high_watermark(self.log.log_end_offset)
        now = self.log.offsets
        clean(self.log, now.log_start, now.last_stable, OffsetMap(24 * 1_000))
        self.log.folder.delete_due()

    @rule(size=SIZES, producer=IN_TRANSACTIONS)
    def append_in_a_transaction(self, size: int, producer: int) -> None:
        self.life.append(size=size, producer=producer)

    @rule()
    def end_a_transaction(self) -> None:
        pass


TestAnyCompactedLifeWithReaders = pytest.mark.slow(AnyCompactedLifeWithReaders.TestCase)
TestAnyCompactedLifeWithReaders.settings = settings(deadline=None, max_examples=12, stateful_step_count=30, derandomize=True)
