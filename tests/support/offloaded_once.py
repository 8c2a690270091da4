"""What holds of a partition's archive after whatever offloads: all that is due, each offset once, one chain, all of it sound."""

from pathlib import Path

from logs_to_archive import due

from remote import archive
from remote.read.context import decoder_with
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Kind
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from remote.store.open import open_store


def assert_one_sound_chain(url: str, logs: Path, partition: str) -> None:
    """Holds the archive against the log directory: its entries, its bytes, and what a deep scrub finds."""
    store = open_store(url)
    (manifest,) = archive.newest_manifests(store, partition.rpartition("-")[0])
    assert [(e.base_offset, e.end_offset) for e in manifest.entries] == due(logs, partition)
    assert manifest.gaps == ()
    for entry in manifest.entries:
        archived = store.get(manifest.path.segment(entry.log_name))
        assert archived == (logs / partition / f"{entry.base_offset:020d}.log").read_bytes()
    found = scrub(RequestBudget(store, None), decoder_with(None), ScrubSettings(deep=True), now_ms=0)
    assert [f for f in found if f.kind not in (Kind.fresh_orphan, Kind.orphan)] == []
