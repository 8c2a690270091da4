"""Archives of a compacted topic that is cleaned and archived again: what is run, and what is there then."""

from archive_fakes import CountingIds, FixedClock, MemoryStore
from keyed_logs import KeyedLog
from logs_to_archive import path_of
from made_manifests import assert_sound_chain

from local_log.log_reader import LogReader
from remote.manifest.model import Limits, Manifest
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan

Record = tuple[int, bytes | None, bytes | None]


def run(store: ObjectStore, log: LogReader, prefix: str, *, replaces: bool = True, limits: Limits = Limits()) -> list[Done]:  # noqa: B008
    due = plan(log, store, replaces=replaces)
    return list(offload(due, OffloadRun(store, FixedClock(), CountingIds(prefix), "source", lambda _: None, limits=limits)))


def errors(done: list[Done]) -> list[Exception]:
    return [d.error for d in done if d.error]


def newest(store: MemoryStore, log: KeyedLog) -> Manifest:
    return assert_sound_chain(store, path_of(log.reader()))


def records(log: LogReader | ArchivedLog, start: int, end: int) -> list[Record]:
    found: list[Record] = []
    for chunk in log.chunks(start, end):
        for _, batch in chunk.records():
            found += [(row["offset"], row["key"], row["value"]) for row in batch.to_pylist()]
    return [row for row in found if start <= row[0] < end]


def archived_records(store: MemoryStore, manifest: Manifest) -> list[Record]:
    return records(ArchivedLog(store, manifest), manifest.log_start_offset, manifest.end_offset)


def ranges(manifest: Manifest) -> list[tuple[int, int]]:
    return [(e.base_offset, e.end_offset) for e in manifest.entries]


def closed(log: KeyedLog) -> list[tuple[int, int]]:
    return [(s.base_offset, s.next_base_offset) for s in log.reader().segments if s.next_base_offset is not None]


def assert_as_local(store: MemoryStore, log: KeyedLog) -> Manifest:
    """The archive has the records of the local log, and no others."""
    manifest = newest(store, log)
    assert archived_records(store, manifest) == records(log.reader(), 0, manifest.end_offset)
    assert manifest.end_offset == closed(log)[-1][1]
    assert manifest.holes == ()
    return manifest
