"""Archives to be damaged, scrubs of them, and what these found."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from archive_fakes import FixedClock, MemoryStore
from crc32c import crc32c
from golden_logs import broker_logs
from logs_to_archive import cut_finer, offload_all

from remote import archive
from remote.keys import PartitionPath
from remote.manifest import codec
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import AuxRange, SegmentEntry
from remote.manifest.store import Stored, load_newest
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Finding, Kind
from remote.scrub.objects import GRACE_MS
from remote.scrub.scrub import findings_of, scrub, walk
from remote.scrub.segment_runs import scrub_run, segment_runs
from remote.scrub.settings import ScrubSettings
from remote.scrub.steps import SegmentToRead
from remote.segment_bytes import StoredBytes
from remote.store.api import ObjectStore

NOW_MS = 1_700_000_000_000
LATER_MS = NOW_MS + 2 * GRACE_MS
TXN, BIG = "g-txn", "g-big"
Found = list[tuple[Kind, str]]


def findings(store: ObjectStore, *, deep: bool = False, now_ms: int = LATER_MS, **more: Any) -> list[Finding]:
    settings = ScrubSettings(deep, more.pop("sample", 1.0), more.pop("seed", 0))
    requests_max = more.pop("requests_max", None)
    told = list(scrub(RequestBudget(store, requests_max), StoredBytes, settings, now_ms, **more))
    if deep and requests_max is None:
        calls = getattr(store, "calls", [])
        asked = len(calls)
        for bytes_max in (1, 50_000, 1 << 40):
            assert in_stretches(store, settings, now_ms, bytes_max, **more) == told
        del calls[asked:]  # a test counts the calls of one scrub
    return told


def in_stretches(store: ObjectStore, settings: ScrubSettings, now_ms: int, bytes_max: int, **more: Any) -> list[Finding]:
    """The findings of a scrub whose segments are read by tasks of their own, in an order of their own."""
    steps = list(walk(RequestBudget(store), settings, now_ms, **more))
    parts = list(segment_runs((step for step in steps if isinstance(step, SegmentToRead)), bytes_max))
    done = [scrub_run(RequestBudget(store), StoredBytes, part) for part in reversed(parts)]
    found = chain.from_iterable(one.found for one in reversed(done))
    return list(findings_of(steps, lambda _: next(found)))


def found(store: ObjectStore, *, deep: bool = False, **more: Any) -> Found:
    return [(f.kind, f.key) for f in findings(store, deep=deep, **more)]


def sound_objects(folder: Path) -> dict[str, bytes]:
    """The objects of an archive of two topics, one of them with a dozen segments and many transactions."""
    folder, store = broker_logs(folder, "g-txn-0", "g-big-0"), MemoryStore()
    cut_finer(folder / "g-txn-0", 14)
    offload_all(folder, store)
    return store.objects


def archive_of(sound: dict[str, bytes]) -> MemoryStore:
    """A store of its own with these objects."""
    store = MemoryStore(FixedClock(NOW_MS))
    for key, body in sound.items():
        store.put_if_absent(key, body)
    store.calls.clear()
    return store


def newest(store: ObjectStore, topic: str = TXN) -> Stored:
    [manifest] = archive.newest_manifests(store, topic)
    stored = load_newest(store, manifest.path)
    assert stored is not None
    return stored


def path(store: ObjectStore, topic: str = TXN) -> PartitionPath:
    return newest(store, topic).manifest.path


def rewritten(store: MemoryStore, change: Callable[[Manifest], Manifest], topic: str = TXN) -> str:
    """The newest manifest as it would be had it been committed with that change; its key."""
    manifest = newest(store, topic).manifest
    key = manifest.path.manifest(manifest.version)
    store.objects[key] = codec.encode(change(manifest))
    return key


def with_entry(store: MemoryStore, number: int, topic: str = TXN, **fields: Any) -> SegmentEntry:
    """Changes an entry in the newest manifest; gives the changed one."""
    entries = list(newest(store, topic).manifest.entries)
    entries[number] = replace(entries[number], **fields)
    rewritten(store, lambda m: replace(m, entries=tuple(entries)), topic)
    return entries[number]


def flip(store: MemoryStore, key: str, position: int) -> None:
    body = bytearray(store.objects[key])
    body[position] ^= 1
    store.objects[key] = bytes(body)


def with_part(
    store: MemoryStore, number: int, part: str, change: Callable[[bytes], bytes], topic: str = TXN, **fields: Any
) -> str:
    """Changes a part of an aux object, and what the manifest says of it, as an uploader with a bug would; the object's key."""
    entry = newest(store, topic).manifest.entries[number]
    key = path(store, topic).segment(entry.aux_name)
    bodies = {p: store.objects[key][r.start : r.end] for p, r in entry.aux_ranges.items()}
    bodies[part] = change(bodies.get(part, b""))
    ranges, aux = {}, b""
    for name, body in bodies.items():
        ranges[name] = AuxRange(len(aux), len(aux) + len(body), crc32c(body))
        aux += body
    store.objects[key] = aux
    with_entry(store, number, topic, aux_ranges=ranges, aux_size=len(aux), aux_crc32c=crc32c(aux), **fields)
    return key
