"""What a reader finds of the rows of `doomed_source`, and which objects there are of them."""

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
from doomed_source import ROWS

from remote import archive as archives
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from remote.store.open import open_store


def times_each(count: int) -> Counter[int]:
    return Counter(dict.fromkeys(range(ROWS), count) if count else {})


def found(store: ObjectStore) -> Counter[int]:
    """The rows that a reader finds, and how often; no offset is missing or there twice."""
    rows: Counter[int] = Counter()
    for manifest in archives.newest_manifests(store, "rows"):
        log = ArchivedLog(store, manifest)
        read = pa.Table.from_batches([*log.records(0, log.end_offset)])
        assert read.column("offset").to_pylist() == [*range(log.end_offset)]
        numbers = [int(key) for key in read.column("key").to_pylist()]
        assert {number % 2 for number in numbers} == {manifest.partition}
        rows.update(numbers)
    return rows


def objects(store: ObjectStore) -> set[str]:
    """The keys of all segments' objects."""
    return {meta.key for path in archives.partition_paths(store, "rows") for meta in store.list(path.segments)}


def named(store: ObjectStore) -> set[str]:
    """The keys of those that manifests name."""
    manifests = archives.newest_manifests(store, "rows")
    return {m.path.segment(name) for m in manifests for e in m.entries for name in (e.log_name, e.aux_name)}


def a_sweep_takes_the_rest(tiering: Callable[..., str], archive: str) -> None:
    """What no manifest names goes, of which there is some, and nothing else."""
    store = open_store(archive)
    rows = found(store)
    assert objects(store) > named(store)
    tiering("sweep", "--archive", archive, "--grace-ms", 0, "--yes")
    assert objects(store) == named(store)
    assert found(store) == rows
