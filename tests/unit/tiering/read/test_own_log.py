"""A read of a log that this process writes, while what it reads leaves the local log, or the archive, at any moment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import MemoryStore
from owned_logs import PARTITION, OwnedLog

from local_log.errors import Conflict, OffsetOutOfRange
from local_log.file_range import FileRange
from local_log.formats.batches import scan
from tiering.endpoint.reads import Batches, Reads
from tiering.read.engine_log import EngineLog
from tiering.read.own_log import OwnLog
from tiering.read.tiered_log import Isolation


class Disturbed(MemoryStore):
    """A store in whose `at`-th call something else happens first."""

    at = -1
    happens: Callable[[], object] = staticmethod(lambda: None)

    def get(self, key: str) -> bytes:
        self._called()
        return super().get(key)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        self._called()
        return super().get_range(key, start, end)

    def list(self, *args: Any, **options: Any) -> Any:
        self._called()
        return super().list(*args, **options)

    def _called(self) -> None:
        self.at -= 1
        if self.at == 0:
            self.happens()


def world_of(tmp_path: Path) -> tuple[OwnedLog, Disturbed]:
    """Aborted transactions all over the log, whose first half is in the archive alone."""
    store = Disturbed()
    world = OwnedLog(str(tmp_path), store)
    for half in range(2):
        for number in range(6):
            world.transaction(7, 2, sequence=12 * half + 2 * number, commit=False)
            world.fill(1)
        if not half:
            world.offload()
            world.drop()
    world.fill(1)
    return world, store


def offsets_of(found: Batches) -> list[int]:
    data = b"".join(part.read() if isinstance(part, FileRange) else bytes(part) for part in found.parts)
    return [] if not data else scan(data)[0].base_offset.tolist()


def moments(tmp_path: Path, happens: Callable[[OwnedLog], object], max_bytes: int) -> list[tuple[OwnedLog, Batches]]:
    """What is read from the log's start if something happens before one of the store's calls, for each of them."""
    read: list[tuple[OwnedLog, Batches]] = []
    at = 0
    while True:
        at += 1
        world, store = world_of(tmp_path / str(at))
        log = OwnLog.of(world.live)
        store.at, store.happens = at, lambda world=world: happens(world)
        try:
            found = Reads().read(log, 0, max_bytes, Isolation.read_committed, one_at_least=True)
        except (Conflict, OffsetOutOfRange):
            assert store.at <= 0
        else:
            read.append((world, found))
        if store.at > 0:
            return read


@pytest.mark.parametrize("max_bytes", [1_200, 1 << 20])
def test_a_read_has_all_aborted_transactions_whatever_leaves_the_local_log_meanwhile(tmp_path: Path, max_bytes: int) -> None:
    def leaves(world: OwnedLog) -> None:
        world.offload()
        assert world.drop()

    found = moments(tmp_path, leaves, max_bytes)
    assert len(found) > 3
    for world, one in found:
        offsets = offsets_of(one)
        assert offsets == [base for base in world.batches if base < one.next_offset], "no batch between those read is skipped"
        last = offsets[-1]
        wanted = [(7, first) for first in range(0, 60, 5) if first <= last]
        assert [(txn.producer_id, txn.first_offset) for txn in one.aborted or ()] == wanted


def test_a_read_of_what_the_archive_deletes_meanwhile_has_all_aborted_transactions_or_is_refused(tmp_path: Path) -> None:
    for _, one in moments(tmp_path, lambda world: world.expire(400), 1 << 20):
        wanted = [(7, first) for first in range(0, 60, 5) if first <= offsets_of(one)[-1]]
        assert [(txn.producer_id, txn.first_offset) for txn in one.aborted or ()] == wanted


def test_no_batch_is_passed_over_where_local_retention_takes_segments_from_between_those_read(tmp_path: Path) -> None:
    world = OwnedLog(str(tmp_path))
    world.fill(20)
    engine = EngineLog(world.log, PARTITION, world.log.offsets)
    chunks = engine.chunks(0, world.log.log_end_offset)
    found = next(chunks).batches.base_offset.tolist()
    world.offload()
    world.drop()
    for chunk in chunks:  # their files are there until `file.delete.delay.ms` is over
        found += chunk.batches.base_offset.tolist()
    assert found == list(world.batches)
    with pytest.raises(Conflict, match=r"has left the local log, which starts at 3\d now; fetch again"):
        next(engine.chunks(0, 2))
