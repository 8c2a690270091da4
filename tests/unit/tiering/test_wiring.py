"""Addresses in, tiers out."""

from pathlib import Path

import pytest
from archive_fakes import MemoryStore, verbs
from golden_logs import broker_logs
from logs_to_archive import copy_of, drop_segments_below, local_logs, offload_all, offsets_of, path_of

from local_log.errors import Invalid, NotFound, Unavailable
from local_log.formats.filenames import DELETED, LOG, PARTITION_METADATA, SWAP
from remote import archive
from remote.clock import RandomIds, SystemClock
from remote.keys import ARCHIVE
from remote.store.folder.store import FolderStore
from remote.store.open import open_store
from tiering.log_dirs import log_dir
from tiering.wiring import Tiers, open_reading, open_tiers, read_ahead_pool

NAMES = ("g-txn-0", "g-codec-none-0", "g-tiny-0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return broker_logs(tmp_path_factory.mktemp("broker"), *NAMES)


@pytest.fixture(scope="module")
def archive_folder(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    into = tmp_path_factory.mktemp("archive")
    offload_all(folder, FolderStore(str(into)))
    return into


def test_a_path_with_a_slash_at_its_end_is_the_same_log_directory(folder: Path) -> None:
    assert log_dir(f"{folder}/").path == log_dir(str(folder)).path == str(folder)
    assert log_dir("/").path == "/"


def test_what_is_given_is_opened(folder: Path, archive_folder: Path) -> None:
    assert open_tiers(None, None) == Tiers(None, None)
    local, remote = open_tiers(str(folder), None), open_tiers(None, str(archive_folder))
    assert local.log_dir is not None
    assert (local.log_dir.path, local.store) == (str(folder), None)
    assert remote.log_dir is None
    assert remote.store is not None
    assert remote.store.url == f"file://{archive_folder}"


def test_an_archive_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no archive there"):
        open_tiers(None, str(tmp_path))


def test_an_archive_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / ARCHIVE).write_text('{"format": {"major": 2, "minor": 0}}')
    with pytest.raises(Invalid, match="upgrade"):
        open_tiers(None, str(tmp_path))


def test_topics_are_those_of_either_tier(folder: Path, archive_folder: Path) -> None:
    assert open_tiers(str(folder), None).topics() == ("g-codec-none", "g-tiny", "g-txn")
    assert open_tiers(None, str(archive_folder)).topics() == (
        "g-codec-none",
        "g-tiny",
        "g-txn",
    )  # of which it knows where it begins
    assert open_tiers(str(folder), str(archive_folder)).topics() == ("g-codec-none", "g-tiny", "g-txn")
    assert Tiers(None, None).topics() == ()


def test_a_topic_has_the_partitions_of_either_tier(folder: Path, archive_folder: Path) -> None:
    both = open_tiers(str(folder), str(archive_folder))
    log = both.partition("g-txn", 0)
    assert (log.name, log.local is not None, log.archived is not None) == ("g-txn-0", True, True)
    tiny = both.partition("g-tiny", 0)
    assert (tiny.local is not None, tiny.archived) == (True, None)
    remote = open_tiers(None, str(archive_folder)).partition("g-txn", 0)
    assert (remote.name, remote.local, remote.archived is not None) == ("g-txn-0", None, True)


def test_a_partition_that_only_the_archive_has_is_a_partition(tmp_path: Path, archive_folder: Path, folder: Path) -> None:
    local = copy_of(folder, tmp_path / "logs")
    (local / "g-txn-0").rename(local / "g-txn-1")
    partitions = open_tiers(str(local), str(archive_folder)).partitions("g-txn")
    assert list(partitions) == [0, 1]
    assert (partitions[0].local, partitions[0].archived is not None) == (None, True)
    assert (partitions[1].local is not None, partitions[1].archived) == (True, None)


def test_a_topic_that_nobody_has_is_not_found_by_name_and_place(folder: Path, archive_folder: Path) -> None:
    with pytest.raises(NotFound) as raised:
        open_tiers(str(folder), str(archive_folder)).partitions("other")
    text = str(raised.value)
    assert "other" in text
    assert f"{folder} and file://{archive_folder}" in text
    assert "g-codec-none, g-tiny, g-txn" in text


def test_a_partition_that_nobody_has_is_not_found_by_number(folder: Path, archive_folder: Path) -> None:
    with pytest.raises(NotFound, match="no partition 7; it has 0"):
        open_tiers(str(folder), str(archive_folder)).partition("g-txn", 7)


def test_a_log_directory_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        open_tiers(str(tmp_path / "none"), None).topics()


def test_what_a_topic_of_the_same_name_has_left_in_the_archive_is_another_topics(
    tmp_path: Path, folder: Path, archive_folder: Path
) -> None:
    local = copy_of(folder, tmp_path / "logs")
    metadata = local / "g-txn-0" / PARTITION_METADATA
    metadata.write_text("version: 0\ntopic_id: another-topic-id-00000\n")
    log = open_tiers(str(local), str(archive_folder)).partition("g-txn", 0)
    assert log.local is not None
    assert log.archived is None
    assert open_tiers(None, str(archive_folder)).partition("g-txn", 0).archived is not None


@pytest.mark.parametrize("name", ["segments", "²", "00", "-1"])
def test_a_foreign_folder_in_the_archive_is_passed_over(tmp_path: Path, folder: Path, archive_folder: Path, name: str) -> None:
    archive = copy_of(archive_folder, tmp_path / "archive")
    (topic_folder,) = (archive / "g-txn").iterdir()
    (topic_folder / name).mkdir()
    (topic_folder / name / "file").write_bytes(b"")
    assert list(open_tiers(str(folder), str(archive)).partitions("g-txn")) == [0]
    assert list(open_tiers(None, str(archive)).partitions("g-txn")) == [0]


def test_a_topic_whose_old_segments_only_the_archive_has_reads_from_its_start(
    tmp_path: Path, folder: Path, archive_folder: Path
) -> None:
    local = copy_of(folder, tmp_path / "logs")
    drop_segments_below(local, "g-txn-0", 2_744)
    log = open_tiers(str(local), str(archive_folder)).partition("g-txn", 0)
    assert (log.log_start_offset, log.end_offset()) == (0, 3_706)
    assert path_of(local_logs(local)["g-txn-0"]).topic_id == log.archived.manifest.topic_id  # type: ignore[union-attr]
    assert next(log.read(0)).column("offset")[0].as_py() == 0


def test_one_partition_of_the_archive_is_opened_and_read_by_five_requests(folder: Path) -> None:
    store = MemoryStore()
    offload_all(folder, store)
    store.calls.clear()
    log = Tiers(None, store).partition("g-txn", 0)
    assert verbs(store.calls) == ["list_folders", "list", "get"]
    assert offsets_of(log.read(500, 501)) == [500]
    assert verbs(store.calls)[3:] == ["get_range"] * 2


def test_what_is_kept_in_a_folder_is_bounded_and_read_ahead_by_the_pool(tmp_path: Path) -> None:
    with read_ahead_pool(2) as pool:
        reading = open_reading(str(tmp_path), 50 << 30, pool)
        assert reading.ahead.pool is pool
        assert reading.chunks is not None
        assert reading.ahead.align == reading.chunks.chunk_bytes
        assert reading.chunks.files.bytes_max == 49 << 30
        assert open_reading(None, 0, None).chunks is None


def test_threads_read_ahead_of_a_store_and_not_of_a_folder(archive_folder: Path) -> None:
    store = "memory://read-ahead"
    archive.create_archive(open_store(store), SystemClock(), RandomIds())
    with read_ahead_pool(1) as pool:
        reading = open_reading(None, 0, pool)
        assert open_tiers(None, store, reading).reading.ahead.pool is pool
        assert open_tiers(None, str(archive_folder), reading).reading.ahead.pool is None


def test_a_log_is_not_read_while_a_cleaner_s_segment_is_not_yet_in_its_place(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path / "logs")
    tiers = open_tiers(str(copy), None)
    middle = Path(local_logs(copy)["g-txn-0"].segments[1].path(LOG))
    swap = middle.with_name(middle.name + SWAP)
    swap.write_bytes(middle.read_bytes())
    middle.rename(middle.with_name(middle.name + DELETED))
    for ask in (lambda: tiers.partition("g-txn", 0), lambda: tiers.partitions("g-txn")):
        with pytest.raises(Unavailable, match="is being replaced by its cleaned one; ask again"):
            ask()
    assert tiers.partition("g-tiny", 0).local is not None
    swap.rename(middle)
    assert tiers.partition("g-txn", 0).log_end_offset == local_logs(folder)["g-txn-0"].log_end_offset
