"""Time travel: what an archive held at a version or a time."""

import json
import os
from pathlib import Path

import pytest
from made_archive import TOPIC_ID, made

from local_log.errors import NotFound
from remote.keys import PartitionPath
from remote.manifest.store import load_version
from remote.store.api import ObjectStore
from remote.store.folder.store import FolderStore
from spark_jobs.errors import OptionError
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import plan_splits

TICK_MS = 1_000


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """Two partitions; in version 2, 3, … of each there is one segment more of 8 offsets. The second begins a minute later."""
    archive = FolderStore(str(tmp_path / "archive"))
    segments = [[[s * 100 + r for r in range(8)]] for s in range(5)]
    made(archive, segments, tick_ms=TICK_MS)
    made(archive, segments, partition=1, tick_ms=TICK_MS, first_ms=60_000)
    return archive


def ends(store: ObjectStore, **options: object) -> dict[int, int]:
    given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    found = plan_splits(store, parse({"archive": store.url, **({} if "assign" in given else {"subscribe": "made"}), **given}))
    return {p: max(s.span.end for s in found if s.partition == p) for p in {s.partition for s in found}}


def committed_ms(store: ObjectStore, partition: int, version: int) -> int:
    return load_version(store, PartitionPath("made", TOPIC_ID, partition), version).manifest.committed_at_ms


def test_a_version_shows_what_was_there_then(store: ObjectStore) -> None:
    assert ends(store, assign={"made": [0]}, asOfVersion="3") == {0: 16}
    assert ends(store, asOfVersion={"made": {"0": 2, "1": 6}}) == {0: 8, 1: 40}
    assert ends(store) == {0: 40, 1: 40}


def test_one_version_for_several_partitions_is_refused(store: ObjectStore) -> None:
    with pytest.raises(OptionError, match=r"asOfVersion 3 is one version, and several partitions .*asOfTimestamp"):
        ends(store, asOfVersion="3")
    with pytest.raises(OptionError, match=r"asOfVersion names no version for made-1; .*the newest is 6"):
        ends(store, asOfVersion={"made": {"0": 2}})


def test_a_version_that_is_not_stored_is_named_with_those_that_are(store: ObjectStore) -> None:
    with pytest.raises(NotFound, match="asOfVersion 9: made-0 has versions 1 to 6"):
        ends(store, assign={"made": [0]}, asOfVersion="9")


@pytest.mark.parametrize("version", range(2, 7))
def test_a_time_shows_the_version_that_was_the_newest_then(store: ObjectStore, version: int) -> None:
    at = committed_ms(store, 1, version)
    assert ends(store, asOfTimestamp=at) == {0: 40, 1: 8 * (version - 1)}
    assert ends(store, asOfTimestamp=at + 1)[1] == 8 * (version - 1)
    assert ends(store, asOfTimestamp=at - 1).get(1, 0) == 8 * (version - 2)


def test_a_partition_that_came_later_is_not_there_yet(store: ObjectStore) -> None:
    assert ends(store, asOfTimestamp=committed_ms(store, 0, 6)) == {0: 40}
    assert ends(store, asOfTimestamp=5) == {}


def test_a_time_whose_versions_have_been_swept_is_refused(store: ObjectStore) -> None:
    at = committed_ms(store, 0, 2)
    for version in (1, 2):
        store.delete(PartitionPath("made", TOPIC_ID, 0).manifest(version))
    with pytest.raises(NotFound, match=rf"asOfTimestamp {at}: the oldest stored version of made-0 is 3.*swept"):
        ends(store, asOfTimestamp=at)


def test_what_a_sleeping_writer_has_put_under_a_freed_key_is_no_version_of_any_time(store: ObjectStore, tmp_path: Path) -> None:
    path = PartitionPath("made", TOPIC_ID, 0)
    at, body = committed_ms(store, 0, 2), store.get(path.manifest(2))
    for version in (1, 2, 3):
        store.delete(path.manifest(version))
    store.put_if_absent(path.manifest(2), body)
    file = tmp_path / "archive" / path.manifest(2)
    late_s = file.stat().st_mtime + 30 * 3600
    os.utime(file, (late_s, late_s))
    with pytest.raises(NotFound, match="asOfVersion 2: made-0 has versions 4 to 6"):
        ends(store, assign={"made": [0]}, asOfVersion="2")
    with pytest.raises(NotFound, match=rf"asOfTimestamp {at}: the oldest stored version of made-0 is 4.*swept"):
        ends(store, asOfTimestamp=at)
