"""What an offload has left in an archive, held against the log directory; and damage to that directory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result
from logs_to_archive import due

from remote import archive as archives
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TRANSACTION_INDEX
from remote.store.api import ObjectStore

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]

FILES = {OFFSET_INDEX: ".index", TIME_INDEX: ".timeindex", TRANSACTION_INDEX: ".txnindex"}


def manifests(store: ObjectStore) -> dict[str, Manifest]:
    return {f"{m.topic}-{m.partition}": m for topic in archives.topics(store) for m in archives.newest_manifests(store, topic)}


def keys(store: ObjectStore) -> list[str]:
    return [meta.key for meta in store.list("")]


def contents(store: ObjectStore) -> dict[str, bytes]:
    return {key: store.get(key) for key in keys(store)}


def assert_holds_exactly(store: ObjectStore, logs: Path, names: tuple[str, ...]) -> None:
    """The manifests name the segments that are due, each object is its file byte for byte, and there is no other object."""
    found = manifests(store)
    expected = {name: due(logs, name) for name in names if due(logs, name)}
    assert {name: [(e.base_offset, e.end_offset) for e in m.entries] for name, m in found.items()} == expected
    named = set()
    for name, manifest in found.items():
        path = manifest.path
        for entry in manifest.entries:
            body = store.get(path.segment(entry.log_name))
            assert body == (logs / name / f"{entry.base_offset:020d}.log").read_bytes()
            assert len(body) == entry.log_size
            aux = store.get(path.segment(entry.aux_name))
            for part, suffix in FILES.items():
                file = logs / name / f"{entry.base_offset:020d}{suffix}"
                where = entry.aux_ranges.get(part)
                assert (aux[where.start : where.end] if where else b"") == (file.read_bytes() if file.exists() else b"")
            where = entry.aux_ranges[PRODUCER_SNAPSHOT]
            assert aux[where.start : where.end] == (logs / name / f"{entry.end_offset:020d}.snapshot").read_bytes()
            named |= {path.segment(entry.log_name), path.segment(entry.aux_name)}
    assert {key for key in keys(store) if "/segments/" in key} == named


def flip(file: Path, position: int) -> Callable[[], None]:
    """Flips a bit, and gives what flips it back."""
    body = bytearray(file.read_bytes())
    body[position] ^= 1
    file.write_bytes(body)

    def back() -> None:
        body[position] ^= 1
        file.write_bytes(body)

    return back
