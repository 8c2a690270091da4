"""Stand-ins for the archive's doors: a store in memory, wrappers that fail as real stores do, a clock, ids, and logs to archive.

Every wrapper is an `ObjectStore` around another one, so they stack. A listing is read whole when it is asked for: what a
test does between two calls cannot change it.
"""

import itertools
import shutil
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import pyarrow as pa
from crc32c import crc32c
from golden_logs import broker_logs, partitions

from local_log.formats.batch_v2 import Batches, scan
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.columns import decode, per_record
from local_log.formats.txn_index import AbortedTxn, read_txn_index, write_txn_index
from local_log.log import LocalLog
from local_log.log_dir import LogDir
from local_log.storage import OsDisk
from remote import archive
from remote.errors import AlreadyExists, Invalid, NotFound, Unknown
from remote.manifest import invariants
from remote.manifest.model import AuxRange, Gap, Manifest, SegmentEntry, missing_ranges, never_archived
from remote.manifest.store import load_newest, load_version
from remote.object_keys import AUX, LOG, PartitionPath, segment_name
from remote.object_store import Body, ObjectMeta, ObjectStore
from remote.stores.shared import check_folder, check_key, check_prefix, checked
from tiering.offload import Done, offload, plan

T = TypeVar("T")
Call = tuple[Any, ...]
"""A call as transcripts have it: the verb, the key or prefix, and for a range its start and end."""

When = Callable[[str, str], bool]
"""Whether a wrapper acts on a call, by its verb and key. Asked once a call, in order, so it may count."""

WRITES = {"put_if_absent", "upload", "delete"}


_stores: WeakValueDictionary[int, "MemoryStore"] = WeakValueDictionary()


class MemoryStore:
    """Objects in a dict. `calls` is the transcript. Its pickle is a handle on the same objects, in this process."""

    def __init__(self) -> None:
        _stores[id(self)] = self
        self.url = "memory://store"
        self.objects: dict[str, bytes] = {}
        self.calls: list[Call] = []
        self.turn = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _handle, (id(self),)

    def get(self, key: str) -> bytes:
        self.calls.append(("get", key))
        return self._body(key)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        self.calls.append(("get_range", key, start, end))
        body = self._body(key)
        if not 0 <= start <= end <= len(body):
            raise Invalid(f"{key} has {len(body)} bytes, not [{start}, {end})")
        return body[start:end]

    def head(self, key: str) -> ObjectMeta:
        self.calls.append(("head", key))
        body = self._body(key)
        return ObjectMeta(key, len(body), crc32c(body))

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[ObjectMeta]:
        self.calls.append(("list", prefix))
        check_prefix(prefix)
        keys = sorted((key for key in self.objects if key.startswith(prefix)), key=str.encode)
        return iter([ObjectMeta(key, len(self.objects[key])) for key in keys[:limit]])

    def list_folders(self, prefix: str) -> Iterator[str]:
        self.calls.append(("list_folders", prefix))
        check_folder(prefix)
        below = (key[len(prefix) :] for key in self.objects if key.startswith(prefix))
        return iter([name[:-1] for name in sorted({rest.partition("/")[0] + "/" for rest in below if "/" in rest})])

    def put_if_absent(self, key: str, body: Body) -> None:
        self.calls.append(("put_if_absent", key))
        self._create(key, bytes(body))

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        self.calls.append(("upload", key))
        self._create(key, b"".join(checked(key, parts, size, crc32c)))

    def delete(self, key: str) -> None:
        self.calls.append(("delete", key))
        check_key(key)
        self.objects.pop(key, None)

    def _body(self, key: str) -> bytes:
        check_key(key)
        if key not in self.objects:
            raise NotFound(f"{self.url}: no object {key}")
        return self.objects[key]

    def _create(self, key: str, body: bytes) -> None:
        check_key(key)
        with self.turn:
            if key in self.objects:
                raise AlreadyExists(key)
            self.objects[key] = body


def _handle(number: int) -> MemoryStore:
    return _stores[number]


class Door:
    """A wrapper that lets everything through. `calls` is the transcript of what was asked of it."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.url = inner.url
        self.calls: list[Call] = []

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        """What becomes of a call."""
        return call()

    def get(self, key: str) -> bytes:
        self.calls.append(("get", key))
        return self.around("get", key, lambda: self.inner.get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        self.calls.append(("get_range", key, start, end))
        return self.around("get_range", key, lambda: self.inner.get_range(key, start, end))

    def head(self, key: str) -> ObjectMeta:
        self.calls.append(("head", key))
        return self.around("head", key, lambda: self.inner.head(key))

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[ObjectMeta]:
        self.calls.append(("list", prefix))
        return iter(self.around("list", prefix, lambda: [*self.inner.list(prefix, limit=limit)]))

    def list_folders(self, prefix: str) -> Iterator[str]:
        self.calls.append(("list_folders", prefix))
        return iter(self.around("list_folders", prefix, lambda: [*self.inner.list_folders(prefix)]))

    def put_if_absent(self, key: str, body: Body) -> None:
        self.calls.append(("put_if_absent", key))
        self.around("put_if_absent", key, lambda: self.inner.put_if_absent(key, body))

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        self.calls.append(("upload", key))
        self.around("upload", key, lambda: self.inner.upload(key, parts, size=size, crc32c=crc32c))

    def delete(self, key: str) -> None:
        self.calls.append(("delete", key))
        self.around("delete", key, lambda: self.inner.delete(key))


class Nth:
    """Picks the calls of a verb by number, 1 and up; all of them where no number is given."""

    def __init__(self, verb: str, *numbers: int) -> None:
        self.verb = verb
        self.numbers = numbers
        self.seen = 0

    def __call__(self, verb: str, key: str) -> bool:
        if verb != self.verb:
            return False
        self.seen += 1
        return not self.numbers or self.seen in self.numbers


class FailsBefore(Door):
    """Raises `error` instead of making the call."""

    def __init__(self, inner: ObjectStore, error: Exception, when: When) -> None:
        super().__init__(inner)
        self.error = error
        self.when = when

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if self.when(verb, key):
            raise self.error
        return call()


class LosesAnswer(Door):
    """Makes the call, and raises Unknown whatever came of it."""

    def __init__(self, inner: ObjectStore, when: When) -> None:
        super().__init__(inner)
        self.when = when

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if not self.when(verb, key):
            return call()
        with suppress(AlreadyExists):
            call()
        raise Unknown(f"{self.url}: the answer to {verb} {key} was lost")


class AppliesLate(Door):
    """Raises Unknown and makes the call only at `land`."""

    def __init__(self, inner: ObjectStore, when: When) -> None:
        super().__init__(inner)
        self.when = when
        self.late: list[Callable[[], Any]] = []

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if not self.when(verb, key):
            return call()
        self.late.append(call)
        raise Unknown(f"{self.url}: no answer to {verb} {key}")

    def land(self) -> None:
        """Makes the calls that are still on their way; nobody hears what comes of them."""
        for call in self.late:
            with suppress(AlreadyExists):
                call()
        self.late.clear()


class IgnoresCondition(Door):
    """Lets every put through, over whatever is there."""

    def put_if_absent(self, key: str, body: Body) -> None:
        self.inner.delete(key)
        super().put_if_absent(key, body)


class ListsStale(Door):
    """After `freeze` so many listings show what was there then, also what has been deleted since."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.left = 0
        self.seen: list[ObjectMeta] = []

    def freeze(self, listings: int) -> None:
        self.seen = [*self.inner.list("")]
        self.left = listings

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[ObjectMeta]:
        if not self.left:
            return super().list(prefix, limit=limit)
        self.left -= 1
        self.calls.append(("list", prefix))
        return itertools.islice((meta for meta in self.seen if meta.key.startswith(prefix)), limit)


class Corrupts(Door):
    """Stores other bytes than it was given, without a word: `damage` of what was uploaded."""

    def __init__(self, inner: MemoryStore, when: When, damage: Callable[[bytes], bytes]) -> None:
        super().__init__(inner)
        self.objects = inner.objects
        self.when = when
        self.damage = damage

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        answer = call()
        if self.when(verb, key):
            self.objects[key] = self.damage(self.objects[key])
        return answer


class KeepsNoChecksum(Door):
    """Knows sizes alone, as a folder does."""

    def head(self, key: str) -> ObjectMeta:
        meta = super().head(key)
        return ObjectMeta(meta.key, meta.size)


class RunsBetween(Door):
    """Runs something just before the call of that number, 1 and up."""

    def __init__(self, inner: ObjectStore, actions: Mapping[int, Callable[[], object]]) -> None:
        super().__init__(inner)
        self.actions = dict(actions)

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if (action := self.actions.pop(len(self.calls), None)) is not None:
            action()
        return call()


class Crash(Exception):
    """The process ends here. Nothing in the product knows this error."""


class CrashesAt(Door):
    """Ends the process just before the call of that number, 1 and up, or just after the store has done it."""

    def __init__(self, inner: ObjectStore, number: int, *, after: bool) -> None:
        super().__init__(inner)
        self.number = number
        self.after = after

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if len(self.calls) < self.number:
            return call()
        if self.after:
            call()
        raise Crash


class FixedClock:
    """Stands still; `slept` are the seconds that somebody wanted to wait."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now = now_ms
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class CountingIds:
    """Ids that count up; sources with another `prefix` (hexadecimal digits) never share one."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.numbers = itertools.count(1)

    def new_id(self) -> str:
        return self.prefix + f"{next(self.numbers):0{32 - len(self.prefix)}x}"


# manifests

TOPIC_ID = "A" * 22
PATH = PartitionPath("topic", TOPIC_ID, 0)
_segment_numbers = itertools.count(1)


def entry(base_offset: int, end_offset: int, **fields: Any) -> SegmentEntry:
    """An entry of `[base_offset, end_offset)` that names objects which need not exist."""
    segment_id = f"{next(_segment_numbers):032x}"
    known: dict[str, Any] = {
        "segment_id": segment_id,
        "base_offset": base_offset,
        "end_offset": end_offset,
        "last_offset": end_offset - 1,
        "max_timestamp_ms": 1_000 + end_offset,
        "record_count": end_offset - base_offset,
        "leader_epochs": (EpochEntry(0, base_offset),),
        "log_name": segment_name(base_offset, 0, segment_id, LOG),
        "log_size": 100,
        "log_crc32c": 1,
        "aux_name": segment_name(base_offset, 0, segment_id, AUX),
        "aux_size": 10,
        "aux_crc32c": 2,
        "aux_ranges": {"offset_index": AuxRange(0, 10, 0)},
        "txn_index_empty": True,
        "encoding": "identity",
        "copied_at_ms": 5_000,
    }
    return SegmentEntry(**{**known, **fields})


def manifest(*entries: SegmentEntry, log_start_offset: int = 0, reason: str = "lost", **fields: Any) -> Manifest:
    """Version 1 with these entries, and a gap of that reason for each range that they leave open."""
    first = never_archived(PATH.topic, PATH.topic_id, PATH.partition, log_start_offset)
    known: dict[str, Any] = {name: getattr(first, name) for name in first.__dataclass_fields__}
    known |= {"version": 1, "entries": tuple(sorted(entries, key=lambda e: (e.base_offset, e.end_offset)))}
    ungapped = Manifest(**known)
    known["gaps"] = tuple(Gap(start, end, reason, 7) for start, end in missing_ranges(ungapped))
    return Manifest(**{**known, **fields})


def assert_sound_chain(store: ObjectStore, path: PartitionPath = PATH, *, first_version: int = 1) -> Manifest:
    """Every version from `first_version` on follows the one before it and keeps the invariants; gives the newest."""
    newest = load_newest(store, path)
    assert newest is not None
    before = None if first_version == 1 else load_version(store, path, first_version - 1)
    for version in range(first_version, newest.manifest.version + 1):
        after = load_version(store, path, version)
        assert after.manifest.version == version
        assert after.manifest.parent_sha256 == (before.sha256 if before else "")
        if before is not None:
            invariants.check(before.manifest, after.manifest)
        before = after
    return newest.manifest


def assert_sound_archive(store: ObjectStore, path: PartitionPath) -> Manifest:
    """The chain is sound, and every named object exists with its size and CRC-32C, and is named once; gives the newest."""
    newest = assert_sound_chain(store, path)
    for e in newest.entries:
        for name, size, crc in ((e.log_name, e.log_size, e.log_crc32c), (e.aux_name, e.aux_size, e.aux_crc32c)):
            body = store.get(path.segment(name))
            assert (len(body), crc32c(body)) == (size, crc), name
    assert len({e.log_name for e in newest.entries}) == len({e.base_offset for e in newest.entries}) == len(newest.entries)
    return newest


def verbs(calls: Iterable[Call]) -> list[str]:
    """A transcript without keys."""
    return [call[0] for call in calls]


# logs


def local_logs(folder: Path) -> dict[str, LocalLog]:
    """The logs of a log directory by the names of their folders."""
    return {str(log.partition): log for log in LogDir(OsDisk(), str(folder)).logs()}


def path_of(log: LocalLog) -> PartitionPath:
    """Where a log lies in an archive."""
    return PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)


def offload_all(
    folder: Path, store: ObjectStore, *, clock: FixedClock | None = None, ids: CountingIds | None = None, source: str = "source"
) -> list[Done]:
    """Offloads a log directory as the command does, and gives what became of each segment."""
    clock, ids = clock or FixedClock(), ids or CountingIds()
    archive.create_archive(store, clock, ids)
    logs = local_logs(folder).values()
    return [done for log in logs for done in offload(plan(log, store), store, clock, ids, source, lambda _: None)]


def copy_of(folder: Path, into: Path) -> Path:
    """A log directory to change at will."""
    return Path(shutil.copytree(folder, into))


_INDEX_INTERVAL_BYTES = 4096
_SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


def cut_finer(folder: Path, segments: int) -> None:
    """Cuts the log in a partition's folder into about so many segments, with the indexes that a broker would have written.

    Batches stay as they are, and so do the snapshots: few of the new segments have one.
    """
    logs = sorted(folder.glob("*.log"))
    body = b"".join(file.read_bytes() for file in logs)
    aborted = [t for file in sorted(folder.glob("*.txnindex")) for t in read_txn_index(file.read_bytes())]
    first_base = int(logs[0].stem)
    batches, _ = scan(body)
    if not len(batches):
        return
    for suffix in _SEGMENT_SUFFIXES:
        for file in folder.glob(f"*{suffix}"):
            file.unlink()
    per_segment = max(1, -(-len(batches) // segments))
    runs = [batches[at : at + per_segment] for at in range(0, len(batches), per_segment)]
    for number, run in enumerate(runs):
        base = int(run.base_offset[0]) if number else first_base
        _write_segment(folder / f"{base:020d}", base, run, body, aborted)


def _write_segment(stem: Path, base: int, run: Batches, body: bytes, aborted: Iterable[AbortedTxn]) -> None:
    start = int(run.positions[0])
    index, times = bytearray(), bytearray()
    since_entry, latest, written = 0, (-1, -1), -1
    for position, size, last, timestamp in zip(
        run.positions.tolist(), run.size.tolist(), run.last_offset.tolist(), run.max_timestamp.tolist(), strict=True
    ):
        if timestamp > latest[0]:
            latest = (timestamp, last)
        if since_entry > _INDEX_INTERVAL_BYTES:
            index += struct.pack(">ii", last - base, position - start)
            if latest[0] > written:
                times += struct.pack(">qi", latest[0], latest[1] - base)
                written = latest[0]
            since_entry = 0
        since_entry += size
    if latest[0] > written:
        times += struct.pack(">qi", latest[0], latest[1] - base)
    own = [t for t in aborted if base <= t.last_offset < run.next_offset]
    stem.with_suffix(".log").write_bytes(body[start : int(run.end[-1])])
    stem.with_suffix(".index").write_bytes(index)
    stem.with_suffix(".timeindex").write_bytes(times)
    if own:
        stem.with_suffix(".txnindex").write_bytes(write_txn_index(own))


def finer_logs(folder: Path, segments: int = 12) -> Path:
    """The golden log directory, unpacked into `folder` and all of it cut finer: every partition then has much to archive."""
    broker_logs(folder)
    for name in partitions():
        cut_finer(folder / name, segments)
    return folder


def drop_segments_below(folder: Path, partition: str, offset: int) -> None:
    """What a broker's local retention leaves: no segment that ends at or below `offset`, and checkpoints that say so."""
    bases = sorted(int(file.stem) for file in (folder / partition).glob("*.log"))
    start = max(base for base in bases if base <= offset)
    for file in (folder / partition).iterdir():
        if file.stem.isdigit() and int(file.stem) < start:
            file.unlink()
    set_checkpoint(folder / "log-start-offset-checkpoint", partition, start)


def set_checkpoint(file: Path, partition: str, offset: int) -> None:
    """Sets a partition's line of an offset checkpoint."""
    topic, _, number = partition.rpartition("-")
    lines = [line for line in file.read_text().splitlines()[2:] if line.split()[:2] != [topic, number]]
    lines.append(f"{topic} {number} {offset}")
    file.write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def all_records(log: LocalLog) -> pa.Table:
    """Every record of a local log, control records too (column `control`), decoded without any index."""
    tables = []
    for segment in log.segments:
        body = segment.read(".log") or b""
        batches, _ = scan(body)
        for group, records in decode(body, batches):
            columns = {"control": group.is_control, "leader_epoch": group.header["partition_leader_epoch"]}
            table = pa.Table.from_batches([records])
            for name, column in columns.items():
                table = table.append_column(name, pa.array(per_record(group, column)))
            tables.append(table)
    return pa.concat_tables(tables)


def for_applications(records: pa.Table, start_offset: int, end_offset: int) -> pa.Table:
    """What an application sees of `all_records` in `[start_offset, end_offset)`, read_uncommitted."""
    offsets = records.column("offset").to_numpy()
    seen = ~records.column("control").to_numpy() & (offsets >= start_offset) & (offsets < end_offset)
    return records.filter(pa.array(seen)).drop_columns(["control", "leader_epoch"]).combine_chunks()


def table_of(batches: Iterable[pa.RecordBatch], like: pa.Table) -> pa.Table:
    """Record batches as one table, an empty one like `like` for none."""
    return pa.Table.from_batches(list(batches), like.schema).combine_chunks()


def offsets_of(batches: Iterable[pa.RecordBatch]) -> list[int]:
    """The offsets of records, in the order in which they came."""
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]
