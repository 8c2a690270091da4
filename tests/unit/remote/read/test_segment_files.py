"""The file that an offset's batch is in, found again without a look at the manifest."""

import weakref
from pathlib import Path
from random import Random  # noqa: TID251  # seeded

import pytest
from archive_fakes import CountingIds, Door, FixedClock, MemoryStore
from archived_worlds import World
from hypothesis import given, settings
from hypothesis import strategies as st
from made_manifests import entry, manifest

from local_log.errors import Corrupt
from local_log.os_disk import OsDisk
from remote.manifest.gaps import COMPACTED, Gap
from remote.manifest.model import Limits, Manifest
from remote.manifest.store import ManifestWriter
from remote.read import segment_files
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange
from remote.store.api import FileOpener
from remote.store.folder.store import FolderStore

END = 60
Found = tuple[str, int, int | None] | str | None


class Files(MemoryStore):
    """A store in which every object has a file."""

    def file_opener(self, key: str) -> FileOpener:
        return lambda: OsDisk().open(__file__)


@st.composite
def some_manifest(draw: st.DrawFn) -> Manifest:
    """With entries that overlap or lie in each other, and gaps, some of which compaction has left."""
    segments = draw(st.lists(st.tuples(st.integers(0, END), st.integers(1, 15)), min_size=1, max_size=8))
    start = draw(st.integers(0, 8))
    made = manifest(*(entry(base, base + size) for base, size in segments if base + size > start), log_start_offset=start)
    gaps = tuple(Gap(g.start, g.end, "lost", 7, draw(st.sampled_from(("", COMPACTED)))) for g in made.gaps)
    return manifest(*made.entries, log_start_offset=start, gaps=gaps)


def found_by(log: ArchivedLog, offset: int, end_offset: int) -> Found:
    try:
        file = log.batch_file(offset, end_offset)
    except MissingRange as e:
        return str(e)
    return None if file is None else (file.name, file.end_offset, file.next_offset)


@settings(max_examples=60, deadline=None)
@given(some_manifest(), st.integers(0, 1 << 30))
def test_an_offset_is_found_again_in_the_segment_that_a_plan_takes_it_from(some: Manifest, seed: int) -> None:
    random, log = Random(seed), ArchivedLog(Files(), some)
    for _ in range(60):
        offset = random.randrange(some.log_start_offset, some.end_offset + 1)
        end_offset = random.choice((some.end_offset, random.randrange(offset, some.end_offset + 1)))
        assert found_by(log, offset, end_offset) == found_by(ArchivedLog(Files(), some), offset, end_offset)


def test_segments_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_files, "SEGMENTS_MAX", 3)
    some = manifest(*(entry(base, base + 10) for base in range(0, 100, 10)))
    log = ArchivedLog(Files(), some)
    for offset in (*range(100), *range(99, -1, -7)):
        found = some.entries[offset // 10]
        assert found_by(log, offset, 100) == (some.path.segment(found.log_name), found.end_offset, found.end_offset)
        assert len(log._files._kept[0]) <= 3


def test_pages_are_read_for_the_first_offset_of_a_segment_alone(finer: World) -> None:
    store, plain = Files(), finer.archived("g-txn-0").manifest
    writer = ManifestWriter(store, plain.path, FixedClock(), CountingIds(), "pager", 0, Limits(2, 2, 2))
    door = Door(store)
    log = ArchivedLog(door, writer.commit(plain, lambda m: m))
    first = next(iter(log.entries))
    assert first.end_offset - first.base_offset > 1
    door.calls.clear()
    assert not log.is_at_hand(first.base_offset)
    before = log.batch_file(first.base_offset + 1, log.end_offset)
    door.calls.clear()
    assert log.is_at_hand(first.base_offset)
    assert before is not None
    assert found_by(log, first.base_offset, log.end_offset) == (before.name, first.end_offset, first.end_offset)
    assert not log.is_at_hand(first.end_offset)
    assert not door.calls


def test_a_log_is_freed_at_once_with_the_segments_that_it_has_found() -> None:
    store, some = Files(), manifest(entry(0, 10))
    kept = weakref.ref(store)
    log = ArchivedLog(store, some)
    assert found_by(log, 3, 10) is not None
    del store, log
    assert kept() is None  # the collector of cycles hardly ever looks at what is old


def test_an_object_that_is_gone_is_missed_also_when_its_place_is_known(tmp_path: Path) -> None:
    store, some = FolderStore(str(tmp_path)), manifest(entry(0, 10))
    log, key = ArchivedLog(store, some), some.path.segment(some.entries[0].log_name)
    store.put_if_absent(key, b"batches")
    assert found_by(log, 3, 10) == (key, 10, 10)
    store.delete(key)
    with pytest.raises(Corrupt, match="it is not there"):
        log.batch_file(4, 10)
