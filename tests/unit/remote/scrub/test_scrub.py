"""Every kind of damage, done to a sound archive: the scrub finds exactly it. A sound archive has none, and nothing is written."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import Door, MemoryStore, verbs
from crc32c import crc32c
from golden_logs import broker_logs, legacy_logs, legacy_partitions
from logs_to_archive import cut_finer, finer_logs, offload_all
from scrubbed import BIG, NOW_MS, TXN, findings, flip, found, newest, path, rewritten, with_entry, with_part

from local_log.formats.batches import scan
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.indexes.transaction import read_txn_index
from remote import archive
from remote.manifest import codec
from remote.manifest.gaps import Gap
from remote.manifest.model import Manifest
from remote.scrub.finding import Kind
from remote.scrub.objects import GRACE_MS
from remote.store.open import open_store

# sound archives


@pytest.mark.slow
def test_a_sound_archive_of_all_golden_logs_has_no_finding(tmp_path: Path) -> None:
    store = MemoryStore()
    offload_all(finer_logs(tmp_path / "logs"), store)
    offload_all(legacy_logs(tmp_path / "legacy"), store)
    for deep in (False, True):
        assert findings(store, deep=deep) == []


@pytest.mark.parametrize("place", ["folder", "s3"])
def test_a_sound_archive_has_no_finding_whatever_store_it_lies_in(
    tmp_path: Path, request: pytest.FixtureRequest, sound: dict[str, bytes], place: str
) -> None:
    store = open_store(f"s3://{request.getfixturevalue('s3_bucket')}/a" if place == "s3" else str(tmp_path / "archive"))
    for key, body in sound.items():
        store.put_if_absent(key, body)
    offload_all(legacy_logs(tmp_path / "legacy", legacy_partitions()[0]), store)
    for deep in (False, True):
        assert findings(store, deep=deep) == []


def test_a_scrub_writes_nothing_and_deletes_nothing(store: MemoryStore) -> None:
    before = dict(store.objects)
    findings(store, deep=True)
    assert set(verbs(store.calls)) <= {"get", "get_range", "list"}
    assert store.objects == before


def test_a_hole_that_the_ledger_names_is_a_note(store: MemoryStore, tmp_path: Path) -> None:
    folder = broker_logs(tmp_path, "g-txn-0")
    cut_finer(folder / "g-txn-0", 14)
    file = sorted((folder / "g-txn-0").glob("*.log"))[3]
    body = bytearray(file.read_bytes())
    body[200] ^= 1
    file.write_bytes(body)
    damaged = MemoryStore()
    offload_all(folder, damaged)
    [note] = findings(damaged, deep=True)
    assert (note.kind, note.is_anomaly) == (Kind.gap, False)
    assert f"[{int(file.stem)}, " in note.problem
    assert "refused" in note.problem


# objects


@pytest.mark.parametrize("suffix", ["log", "aux"])
@pytest.mark.parametrize("deep", [False, True])
def test_an_object_that_is_missing_is_found(store: MemoryStore, suffix: str, deep: bool) -> None:
    entry = newest(store).manifest.entries[4]
    key = path(store).segment(entry.log_name if suffix == "log" else entry.aux_name)
    del store.objects[key]
    assert found(store, deep=deep) == [(Kind.missing_object, key)]


@pytest.mark.parametrize("size", [0, 10, -1, +1])
@pytest.mark.parametrize("deep", [False, True])
def test_an_object_of_another_size_is_found(store: MemoryStore, size: int, deep: bool) -> None:
    key = path(store).segment(newest(store).manifest.entries[-1].log_name)
    body = store.objects[key]
    store.objects[key] = {0: b"", 10: body[:10], -1: body[:-1], 1: body + b"\0"}[size]
    assert found(store, deep=deep) == [(Kind.wrong_size, key)]


def test_a_checksum_that_the_store_lists_is_held_against_the_manifest(store: MemoryStore) -> None:
    class ListsChecksums(Door):
        def list(self, prefix: str, **more: Any) -> Any:
            for meta in super().list(prefix, **more):
                yield replace(meta, crc32c=crc32c(store.objects[meta.key]))

    assert found(ListsChecksums(store)) == []
    key = path(store).segment(newest(store).manifest.entries[2].aux_name)
    flip(store, key, 5)
    assert found(ListsChecksums(store)) == [(Kind.wrong_crc, key)]
    assert found(store) == []


def test_a_flipped_bit_in_a_batch_is_found_by_its_place(store: MemoryStore) -> None:
    entry = newest(store).manifest.entries[5]
    key = path(store).segment(entry.log_name)
    flip(store, key, entry.log_size // 2)
    [finding] = findings(store, deep=True)
    assert (finding.kind, finding.key) == (Kind.bad_batch, key)
    assert finding.position is not None
    assert 0 <= entry.log_size // 2 - finding.position < 20_000


def test_a_byte_that_no_batchs_checksum_covers_is_found_by_the_objects(store: MemoryStore) -> None:
    """The leader epoch of a batch: where the log's lineage says nothing of it, only the object's CRC-32C knows."""
    entry = newest(store).manifest.entries[5]
    rewritten(store, lambda m: replace(m, leader_epochs=()))
    key = path(store).segment(entry.log_name)
    flip(store, key, int(scan(store.objects[key])[0].positions[-1]) + 15)
    assert [k for k in found(store, deep=True) if k[0] is not Kind.broken_invariant] == [(Kind.wrong_crc, key)]


def test_a_flipped_bit_beside_the_log_is_found(store: MemoryStore) -> None:
    entry = newest(store).manifest.entries[3]
    key = path(store).segment(entry.aux_name)
    for part, where in entry.aux_ranges.items():
        flip(store, key, where.start)
        [finding] = findings(store, deep=True)
        assert (finding.kind, finding.key, finding.position) == (Kind.wrong_crc, key, where.start)
        assert part in finding.problem
        flip(store, key, where.start)


def other_last_byte(body: bytes) -> bytes:
    return body[:-1] + bytes([body[-1] ^ 1])


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("offset_index", other_last_byte),
        ("offset_index", lambda body: body[:-3]),
        ("offset_index", lambda body: body[:8]),
        ("time_index", lambda body: body[:-12]),
        ("time_index", lambda body: body[::-1]),
        ("transaction_index", lambda body: body[34:]),
        ("producer_snapshot", other_last_byte),
        ("leader_epoch_checkpoint", lambda body: b"what is this"),
    ],
)
def test_an_index_that_does_not_fit_its_log_is_found_though_its_checksum_holds(
    store: MemoryStore, part: str, change: Callable[[bytes], bytes]
) -> None:
    topic = BIG if part == "producer_snapshot" else TXN
    number = next(n for n, e in enumerate(newest(store, topic).manifest.entries) if part in e.aux_ranges)
    key = with_part(store, number, part, change, topic)
    assert found(store, deep=True) == [(Kind.bad_index, key)]
    assert found(store) == []


def test_an_index_may_lack_an_abort_whose_records_lie_in_the_segment_before(store: MemoryStore) -> None:
    """As that of a broker does whose log starts with this segment. Who reads the records is told with their own segment."""
    manifest, partition = newest(store).manifest, path(store)
    reach_back = [
        (number, at)
        for number, entry in enumerate(manifest.entries)
        if (where := entry.aux_ranges.get("transaction_index"))
        for at, txn in enumerate(read_txn_index(store.objects[partition.segment(entry.aux_name)][where.start : where.end]))
        if txn.first_offset < txn.last_offset == entry.base_offset
    ]
    assert reach_back
    number, at = reach_back[0]
    with_part(store, number, "transaction_index", lambda body: body[: 34 * at] + body[34 * (at + 1) :], TXN)
    assert found(store, deep=True) == []


@pytest.mark.parametrize(
    "fields",
    [{"record_count": 7}, {"max_timestamp_ms": 7}, {"last_offset": 300}, {"leader_epochs": ()}],
    ids=lambda fields: next(iter(fields)),
)
def test_an_entry_that_says_something_else_than_its_segment_is_found(store: MemoryStore, fields: dict[str, Any]) -> None:
    entry = with_entry(store, 1, **fields)
    key = path(store).segment(entry.log_name)
    assert [f for f in found(store, deep=True) if f[0] is not Kind.broken_invariant] == [(Kind.bad_entry, key)]


# what nobody names


@pytest.mark.parametrize("suffix", ["log", "aux"])
def test_an_object_that_no_manifest_names_is_an_orphan_once_it_is_older_than_a_copy_takes(
    store: MemoryStore, suffix: str
) -> None:
    entry = newest(store).manifest.entries[6]
    name = f"{entry.log_name.rpartition('-')[0]}-{'0' * 24}deadbeef.{suffix}"
    store.put_if_absent(path(store).segment(name), b"left behind")
    [finding] = findings(store, now_ms=NOW_MS + GRACE_MS + 5)
    assert (finding.kind, finding.key, finding.age_ms) == (Kind.orphan, path(store).segment(name), GRACE_MS + 5)
    [note] = findings(store, now_ms=NOW_MS + GRACE_MS - 1)
    assert (note.kind, note.is_anomaly) == (Kind.fresh_orphan, False)


def test_a_partition_that_has_objects_and_no_manifest_has_orphans_only(store: MemoryStore) -> None:
    prefix = path(store).prefix
    for key in [key for key in store.objects if key.startswith(f"{prefix}manifest/")]:
        del store.objects[key]
    orphans = [key for key in sorted(store.objects) if key.startswith(prefix)]
    assert found(store) == [(Kind.orphan, key) for key in orphans]
    assert {finding.problem for finding in findings(store)} == {
        "no manifest refers to it; a sweep deletes it 30 days after it was made"
    }


def test_what_a_probe_has_left_behind_is_an_orphan(store: MemoryStore) -> None:
    store.put_if_absent("probe-123", b"first")
    assert found(store) == [(Kind.orphan, "probe-123")]


@pytest.mark.parametrize(
    "key",
    [
        "notes.txt",
        "g-txn/notes.txt",
        "g-txn/{id}/notes.txt",
        "g-txn/{id}/0/notes.txt",
        "g-txn/{id}/0/manifest/notes.txt",
        "g-txn/{id}/0/manifest/00000000000000000001-v1.json",
        "g-txn/{id}/0/segments/notes.txt",
        "g-txn/{id}/0/segments/00000000000000000000-0-1.log",
        "g-txn/{id}/00/segments/00000000000000000000-0-11111111111111111111111111111111.log",
        "g-txn/{id}/0/zzz",
        "other/topic/0/x",
        "zzz/readme.md",
    ],
)
@pytest.mark.slow
def test_a_key_that_no_archive_has_is_foreign(store: MemoryStore, key: str) -> None:
    key = key.format(id=path(store).topic_id)
    store.put_if_absent(key, b"?")
    assert found(store, deep=True) == [(Kind.foreign_key, key)]


# manifests


def test_a_manifest_that_was_changed_after_it_was_written_breaks_the_chain(store: MemoryStore) -> None:
    key = path(store).manifest(3)
    store.objects[key] = codec.encode(replace(codec.decode(store.objects[key], key), writer="somebody"))
    assert found(store) == [(Kind.broken_chain, key)]


def test_a_version_that_is_missing_in_the_middle_breaks_the_chain(store: MemoryStore) -> None:
    partition = path(store)
    del store.objects[partition.manifest(4)]
    assert found(store) == [(Kind.broken_chain, partition.manifest(4))]


def test_the_oldest_versions_may_have_been_swept(store: MemoryStore) -> None:
    for version in (1, 2, 3):
        del store.objects[path(store).manifest(version)]
    assert found(store) == []


def test_a_first_version_that_names_a_parent_breaks_the_chain(store: MemoryStore) -> None:
    [manifest] = archive.newest_manifests(store, BIG)
    assert manifest.version == 1
    key = rewritten(store, lambda m: replace(m, parent_sha256="0" * 64), BIG)
    assert found(store) == [(Kind.broken_chain, key)]


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"[]", lambda b: b.replace(b'"major":1', b'"major":9')])
def test_an_old_manifest_that_cannot_be_read_is_found(store: MemoryStore, damage: Callable[[bytes], bytes]) -> None:
    key = path(store).manifest(2)
    store.objects[key] = damage(store.objects[key])
    assert found(store) == [(Kind.corrupt_manifest, key)]


def test_of_a_partition_whose_newest_manifest_cannot_be_read_the_objects_are_left_out(store: MemoryStore) -> None:
    partition, key = path(store), path(store).manifest(newest(store).manifest.version)
    store.objects[key] = store.objects[key][:-9]
    assert found(store, deep=True) == [(Kind.corrupt_manifest, key), (Kind.left_out, partition.prefix)]


def test_a_manifest_of_another_partition_is_found(store: MemoryStore) -> None:
    partition = path(store)
    key = partition.manifest(newest(store).manifest.version)
    store.objects[key] = store.objects[path(store, BIG).manifest(1)]
    assert found(store) == [(Kind.broken_chain, key), (Kind.left_out, partition.prefix)]


def test_a_hole_that_the_ledger_does_not_name_is_found(store: MemoryStore) -> None:
    lost = newest(store).manifest.entries[6]
    for name in (lost.log_name, lost.aux_name):
        del store.objects[path(store).segment(name)]
    rewritten(store, lambda m: replace(m, entries=tuple(e for e in m.entries if e != lost)))
    findings_ = [f for f in findings(store) if f.kind is not Kind.broken_invariant]
    assert [(f.kind, f.key) for f in findings_] == [(Kind.unnamed_gap, path(store).prefix)]
    assert f"[{lost.base_offset}, {lost.end_offset})" in findings_[0].problem


def test_of_a_hole_only_what_the_ledger_does_not_name_is_an_anomaly(store: MemoryStore) -> None:
    lost = newest(store).manifest.entries[6]
    for name in (lost.log_name, lost.aux_name):
        del store.objects[path(store).segment(name)]
    middle = (lost.base_offset + lost.end_offset) // 2
    gap = Gap(lost.base_offset, middle, "refused", 7)
    rewritten(store, lambda m: replace(m, entries=tuple(e for e in m.entries if e != lost), gaps=(gap,)))
    told = [(f.kind, f.problem) for f in findings(store) if f.kind is not Kind.broken_invariant]
    assert [kind for kind, _ in told] == [Kind.gap, Kind.unnamed_gap]
    assert f"[{lost.base_offset}, {middle})" in told[0][1]
    assert f"[{middle}, {lost.end_offset})" in told[1][1]


def test_a_segment_of_another_history_is_found(store: MemoryStore) -> None:
    entry = newest(store).manifest.entries[4]
    rewritten(store, lambda m: replace(m, leader_epochs=(*m.leader_epochs, EpochEntry(9, entry.last_offset))))
    told = found(store)
    later = [e for e in newest(store).manifest.entries if e.last_offset >= entry.last_offset]
    assert told == [(Kind.foreign_lineage, path(store).segment(e.log_name)) for e in later]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: replace(m, leader_epochs=(EpochEntry(5, 10), EpochEntry(6, 0))),
        lambda m: replace(m, leader_epochs=(EpochEntry(5, 0), EpochEntry(5, 0))),
    ],
)
def test_a_step_that_no_writer_may_take_is_found(store: MemoryStore, change: Callable[[Manifest], Manifest]) -> None:
    key = rewritten(store, change)
    assert (Kind.broken_invariant, key) in found(store)


@pytest.mark.parametrize("change", [lambda m: replace(m, writer_epoch=-1), lambda m: replace(m, log_start_offset=-1)])
def test_a_number_that_no_manifest_may_have_is_found(store: MemoryStore, change: Callable[[Manifest], Manifest]) -> None:
    key = rewritten(store, change)
    assert (Kind.corrupt_manifest, key) in found(store)
