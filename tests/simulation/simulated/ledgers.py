"""The log of a partition as the clients of an endpoint know it: what was appended, and what of it no crash may take."""

from dataclasses import dataclass, field

from local_log.engine.memory_records import MemoryBatch, batch_at, memory_batches
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.control import ControlType, read_end_txn_marker
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from simulated.schedule import Schedule

READ_BYTES = 1 << 20


@dataclass(eq=False)
class Ledger:
    """Batches by base offset. `durable` is the end of what is kept whatever crashes."""

    name: str
    schedule: Schedule
    committed: dict[int, bytes] = field(default_factory=dict)
    end: int = 0
    durable: int = 0

    def add(self, base: int, body: bytes, *, is_durable: bool) -> None:
        """A batch was appended."""
        self.committed[base], self.end = body, batch_in(body).last_offset + 1
        if is_durable:
            self.durable = self.end

    def recovered(self, log: UnifiedLog, *, is_killed: bool, may_have_more: bool) -> None:
        """After a crash the log is the beginning of what was appended, and has all that is kept."""
        found, end = batches_from(log, log.local_log_start_offset), log.log_end_offset
        kept = self.end if is_killed else self.durable
        if end < kept:
            raise self.schedule.violated(f"{self.name} ends at {end} after a crash, and {kept} was acknowledged and kept")
        for base, body in found.items():
            if self.committed.get(base) != body and not (may_have_more and base >= self.end):
                raise self.schedule.violated(f"{self.name} has other records at {base} after a crash than were appended")
        missing = {base for base in self.committed if log.local_log_start_offset <= base < end} - found.keys()
        if missing:
            raise self.schedule.violated(f"{self.name} lacks the batch at {min(missing)} after a crash")
        self.committed = {base: body for base, body in self.committed.items() if base < end}
        self.end = min(self.end, end)
        self.durable = self.end


def batches_from(log: UnifiedLog, offset: int) -> dict[int, bytes]:
    """The batches of the local log from an offset on."""
    found: dict[int, bytes] = {}
    while offset < log.log_end_offset:
        data = log.local.read(offset, READ_BYTES, log.local.end).records
        batches = memory_batches(data)
        if not batches:
            break
        found |= {b.base_offset: bytes(data[b.position : b.position + b.size]) for b in batches}
        offset = batches[-1].last_offset + 1
    return found


def records_in(body: bytes) -> bytes:
    """What of a batch is as its producer has sent it, wherever it is appended."""
    return bytes(body[BATCH_HEADER_BYTES:])


def is_commit(body: bytes) -> bool:
    """Whether a control batch is the marker of a commit."""
    return read_end_txn_marker(records_in(body)).control_type is ControlType.COMMIT


def batch_in(body: bytes) -> MemoryBatch:
    """The header of a batch."""
    return batch_at(body, 0)
