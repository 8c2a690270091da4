"""A local log whose segments begin at other offsets than the archive's: what is equal may be deleted, and nothing else."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, verbs
from encodings_to_try import ENCODED, KEYS, transforms
from golden_logs import broker_logs
from logs_to_archive import cut_finer, drop_segments_below, local_logs, roll

from local_log.errors import Conflict, NoKey
from local_log.log_reader import LogReader
from remote.manifest.gaps import COMPACTED, NO_BATCH, Gap
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.retention.local import held, refuse_others

NAME = "g-codec-none-0"


def replica(folder: Path, segments: int) -> Path:
    """The same log, cut into other segments."""
    broker_logs(folder, NAME)
    cut_finer(folder / NAME, segments)
    roll(folder, NAME)
    return folder


@pytest.fixture
def adopted(tmp_path: Path) -> Path:
    return replica(tmp_path / "adopted", 7)


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    """An archive of another replica."""
    log, store = local_logs(replica(tmp_path / "archived", 5))[NAME], MemoryStore()
    list(offload(plan(log, store), OffloadRun(store, FixedClock(), CountingIds(), "replica", lambda _: None)))
    store.calls.clear()
    return store


def compared(folder: Path, store: MemoryStore, count: int | None = None) -> tuple[LogReader, int]:
    log = local_logs(folder)[NAME]
    closed = [s for s in log.segments if s.next_base_offset is not None][:count]
    return log, refuse_others(store, log, held(store, log), closed)


def test_what_is_equal_may_go_although_other_segments_have_it_and_nothing_is_read_from_the_store(
    adopted: Path, store: MemoryStore
) -> None:
    log, through = compared(adopted, store)
    assert through == log.segments[-1].base_offset - 1
    assert verbs(store.calls) == ["list", "get"], "the manifest"
    assert compared(adopted, store, 2)[1] == log.segments[2].base_offset - 1


def test_of_an_archived_segment_that_begins_below_the_log_the_common_part_is_read(adopted: Path, store: MemoryStore) -> None:
    second = [s.base_offset for s in local_logs(adopted)[NAME].segments][1]
    drop_segments_below(adopted, NAME, second)
    log, through = compared(adopted, store)
    assert log.segments[0].base_offset == second
    assert through == log.segments[-1].base_offset - 1
    assert len({call[1] for call in store.calls if call[1].endswith(".log")}) == 1


@pytest.mark.parametrize("encoding", ENCODED)
def test_of_an_encrypted_segment_a_part_is_read_with_its_key(adopted: Path, tmp_path: Path, encoding: str) -> None:
    log, store = local_logs(replica(tmp_path / "archived", 5))[NAME], MemoryStore()
    run = OffloadRun(store, FixedClock(), CountingIds(), "replica", lambda _: None, transforms(encoding))
    assert [d.error for d in offload(plan(log, store), run) if d.error] == []
    drop_segments_below(adopted, NAME, [s.base_offset for s in local_logs(adopted)[NAME].segments][1])
    log = local_logs(adopted)[NAME]
    known, gone = held(store, log), log.segments[:-1]
    assert refuse_others(store, log, known, gone, partial(DecodedBytes, keys=KEYS)) == log.segments[-1].base_offset - 1
    assert refuse_others(store, log, known, gone[-1:]) == log.segments[-1].base_offset - 1, "all of it lies in the log"
    if known.manifest is not None and known.manifest.entries[0].is_encrypted:
        with pytest.raises(NoKey):
            refuse_others(store, log, known, gone)


@pytest.mark.parametrize("starts_later", [False, True])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_another_byte_keeps_the_segment_and_those_after_it(
    adopted: Path, store: MemoryStore, at: int, starts_later: bool
) -> None:
    if starts_later:
        drop_segments_below(adopted, NAME, [s.base_offset for s in local_logs(adopted)[NAME].segments][1])
    segment = local_logs(adopted)[NAME].segments[at]
    file = adopted / NAME / f"{segment.base_offset:020d}.log"
    body = file.read_bytes()
    file.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
    with pytest.raises(Conflict, match="with other records"):
        compared(adopted, store, at + 1)


def test_batches_where_compaction_has_emptied_the_archive_keep_their_segment(adopted: Path, store: MemoryStore) -> None:
    log = local_logs(adopted)[NAME]
    known = held(store, log)
    assert known.manifest is not None
    first, gone, *others = known.manifest.entries
    gap = Gap(first.end_offset, gone.end_offset, NO_BATCH, 0, COMPACTED)
    emptied = replace(known, manifest=replace(known.manifest, entries=(first, *others), gaps=(gap,)))
    closed = log.segments[:-1]
    assert refuse_others(store, log, emptied, closed[:1]) == closed[1].base_offset - 1
    with pytest.raises(Conflict, match=r"let archive[.]replace[.]compacted name its topic"):
        refuse_others(store, log, emptied, closed[:3])
