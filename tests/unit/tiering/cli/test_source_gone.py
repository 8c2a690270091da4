"""`tiering source-gone`: a log directory that was taken out of service."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock
from click.testing import Result
from made_manifests import PATH, entry

from local_log.formats.checkpoints import EpochEntry
from remote.archive import create_archive
from remote.manifest.losses import Seen, local_deletions_recorded, lost_offsets
from remote.manifest.model import Manifest, never_archived
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import segment_copied, source_seen
from remote.store.folder.store import FolderStore

Rows = Callable[..., list[dict[str, Any]]]
Run = Callable[..., Result]
FIRST = never_archived(PATH.topic, PATH.topic_id, 0, 0)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """100 offsets are archived of two brokers; broker b had 10 more when it was last told."""
    store, clock = FolderStore(str(tmp_path)), FixedClock()
    create_archive(store, clock, CountingIds("a"))
    writer = ManifestWriter(store, PATH, clock, CountingIds("b"), "w", 0)
    writer.commit(FIRST, lambda m: segment_copied(m, entry(0, 100), (EpochEntry(0, 0),), "lost", 7))
    writer.commit(FIRST, lambda m: source_seen(m, "a", 50, 100))
    writer.commit(FIRST, lambda m: source_seen(m, "b", 50, 110))
    return str(tmp_path)


def newest(url: str) -> Manifest:
    stored = load_newest(FolderStore(url), PATH)
    assert stored is not None
    return stored.manifest


def lost_with_start_at_120(manifest: Manifest) -> int:
    """How many offsets are lost when broker a's log starts at 120."""
    return lost_offsets(local_deletions_recorded(manifest, Seen("a", 120, ((120, 130),)), 9))


def test_what_a_broker_had_that_is_out_of_service_is_not_believed_to_be_there_any_more(rows: Rows, url: str) -> None:
    asked = ("source-gone", "--archive", url, "--source", "b")
    before = newest(url)
    assert lost_with_start_at_120(before) == 10
    (planned,) = rows(*asked, "--dry-run")
    assert (planned["partition"], planned["local_log_start_offset"], planned["newly_lost_offsets"]) == (0, 50, 0)
    assert newest(url) == before
    assert rows(*asked, "--yes") == [planned]
    assert set(newest(url).gone) == {"b"}
    assert lost_with_start_at_120(newest(url)) == 20
    assert rows(*asked, "--yes") == []
    assert newest(url).version == before.version + 1


def test_with_the_last_broker_what_is_not_archived_is_lost(rows: Rows, url: str) -> None:
    for source, lost in (("a", 0), ("b", 10)):
        (told,) = rows("source-gone", "--archive", url, "--source", source, "--yes")
        assert told["newly_lost_offsets"] == lost
    assert lost_offsets(newest(url)) == 10


def test_one_that_comes_back_is_known_again(rows: Rows, url: str) -> None:
    rows("source-gone", "--archive", url, "--source", "b", "--yes")
    store, m = FolderStore(url), newest(url)
    back = ManifestWriter(store, PATH, FixedClock(), CountingIds("c"), "w", m.writer_epoch)
    assert not back.commit(m, lambda n: source_seen(n, "b", 60, 120)).gone


def test_an_id_that_no_manifest_knows_is_refused_with_those_that_are_known(run: Run, url: str) -> None:
    failed = run("source-gone", "--archive", url, "--source", "c", "--yes")
    assert failed.exit_code != 0
    assert "there are: a, b" in failed.stderr
    assert newest(url).version == 3
