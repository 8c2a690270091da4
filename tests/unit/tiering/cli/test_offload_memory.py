"""Partitions that disappeared between two offloads: an offload remembers what it saw of a log directory, and tells."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock
from golden_logs import broker_logs
from logs_to_archive import drop_segments_below, local_logs, path_of, set_checkpoint
from made_manifests import assert_sound_chain
from offloaded import Run, contents, manifests

from local_log.errors import Unavailable
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, PARTITION_METADATA, TopicPartition
from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk, OsWritableDisk
from remote.archive import create_archive
from remote.clock import SystemClock
from remote.manifest.losses import lost_ranges
from remote.manifest.store import load_newest
from remote.store.folder.store import FolderStore
from remote.store.open import open_store
from tiering.cli import offload as offload_command
from tiering.losses.seen_logs import SeenFile, SeenLog

TXN, TINY = "g-txn-0", "g-tiny-0"

Found = tuple[int, list[dict[str, object]], str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return broker_logs(tmp_path / "logs", TXN, TINY)


@pytest.fixture
def offload(run: Run, url: str, tmp_path: Path, folder: Path) -> Callable[..., Found]:
    """`tiering offload` of `folder`: exit code, rows, what it says."""

    def offloaded(*more: object) -> Found:
        given = ("--log-dir", folder, "--archive", url, "--state-dir", tmp_path / "state", "--output", "json")
        result = run("offload", *given, *more)
        return result.exit_code, json.loads(result.stdout or "[]"), result.stderr

    return offloaded


def memory(tmp_path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (tmp_path / "state").iterdir()}


def lost(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(row["topic"], row["segment"]) for row in rows if row["action"] == "lost"]


def test_a_topic_that_is_deleted_between_two_runs_is_lost_in_the_second(
    offload: Callable[..., Found], folder: Path, url: str
) -> None:
    end = local_logs(folder)[TINY].log_end_offset
    assert offload()[0] == 0
    rmtree(folder / TINY)
    code, rows, said = offload()
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])
    assert f"g-tiny-0: offsets [0, {end}) are lost" in said
    (loss,) = lost_ranges(manifests(open_store(url))[TINY])
    assert (loss.start, loss.end) == (0, end)
    code, rows, said = offload()
    assert (code, lost(rows), said) == (0, [], "")


def test_what_disappears_with_all_of_it_archived_is_a_plain_row(
    offload: Callable[..., Found], folder: Path, url: str, roll: Callable[[Path, str], None]
) -> None:
    roll(folder, TINY)
    offload()
    rmtree(folder / TINY)
    code, rows, _ = offload()
    (row,) = (row for row in rows if row["topic"] == "g-tiny")
    assert (code, row["action"], row["segment"]) == (0, "skipped", None)
    assert "all of it is archived" in str(row["reason"])
    assert set(manifests(open_store(url))[TINY].gone) == {LogDir(OsDisk(), str(folder)).id()}
    assert [row for row in offload()[1] if row["topic"] == "g-tiny"] == []


def test_a_dry_run_tells_it_and_changes_nothing(offload: Callable[..., Found], folder: Path, url: str, tmp_path: Path) -> None:
    offload()
    rmtree(folder / TINY)
    before = memory(tmp_path), contents(open_store(url))
    code, rows, _ = offload("--dry-run")
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])
    assert (memory(tmp_path), contents(open_store(url))) == before
    assert lost(offload()[1]) == [("g-tiny", 0)]


def test_a_run_judges_only_what_it_is_for(offload: Callable[..., Found], folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "tiering.toml"
    config.write_text('[topics]\nexclude = ["g-tiny"]\n')
    offload()
    rmtree(folder / TINY)
    for narrower in (("--topic", "g-txn"), ("--topic-partition", TXN), ("--config", config)):
        assert offload(*narrower)[0] == 0
    assert lost(offload("--topic-partition", TINY)[1]) == [("g-tiny", 0)]


def test_a_topic_that_was_the_only_one_is_lost_too(offload: Callable[..., Found], folder: Path) -> None:
    rmtree(folder / TXN)
    offload()
    rmtree(folder / TINY)
    assert offload()[0] == 3
    assert offload()[0] == 4


def test_a_log_directory_whose_disk_is_not_mounted_has_lost_nothing(
    offload: Callable[..., Found], folder: Path, url: str, tmp_path: Path
) -> None:
    offload()
    before = memory(tmp_path), contents(open_store(url))
    folder.rename(tmp_path / "unmounted")
    assert offload()[0] == 4
    folder.mkdir()
    assert offload()[0] == 4
    assert (memory(tmp_path), contents(open_store(url))) == before
    folder.rmdir()
    (tmp_path / "unmounted").rename(folder)
    assert offload()[0] == 0


@pytest.mark.slow
def test_while_the_store_does_not_answer_it_stays_remembered(
    offload: Callable[..., Found], folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offload()
    rmtree(folder / TINY)

    def down(*_: object) -> None:
        raise Unavailable("down")

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "put_if_absent", down)
        code, rows, _ = offload("--must-exist")
        assert (code, lost(rows)) == (5, [])
    code, rows, _ = offload()
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])


@pytest.mark.slow
def test_what_the_store_never_heard_of_is_lost_when_it_disappears(
    offload: Callable[..., Found], folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_archive(open_store(url), FixedClock(), CountingIds())

    def down(*_: object) -> None:
        raise Unavailable("down")

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "put_if_absent", down)
        assert offload("--must-exist")[0] == 5
    rmtree(folder / TINY)
    code, rows, _ = offload()
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])
    assert_sound_chain(open_store(url), manifests(open_store(url))[TINY].path)


def test_a_partition_that_moves_to_another_log_directory_of_the_broker_is_not_lost(
    offload: Callable[..., Found], run: Run, folder: Path, url: str, tmp_path: Path
) -> None:
    other = broker_logs(tmp_path / "other", TXN)
    (other / "meta.properties").write_text("directory.id=AAAAAAAAAAAAAAAAAAAAAB\n")
    config = tmp_path / "tiering.toml"
    config.write_text(f'[log]\ndirs = ["{folder}", "{other}"]\n')
    offload()
    path, source = path_of(local_logs(folder)[TINY]), LogDir(OsDisk(), str(folder)).id()
    (folder / TINY).rename(other / TINY)
    code, rows, _ = offload("--config", config)
    assert (code, [row["action"] for row in rows if row["topic"] == "g-tiny"]) == (0, ["skipped"])
    assert run("offload", "--log-dir", other, "--archive", url).exit_code == 0
    code, rows, _ = offload("--config", config)
    assert (code, [row["action"] for row in rows if row["topic"] == "g-tiny"]) == (0, ["skipped"])
    stored = load_newest(open_store(url), path)
    assert stored is not None
    assert set(stored.manifest.gone) == {source}
    assert [row for row in offload("--config", config)[1] if row["topic"] == "g-tiny"] == []


def test_a_topic_that_is_made_anew_in_another_log_directory_has_not_moved_there(
    offload: Callable[..., Found], run: Run, folder: Path, url: str, tmp_path: Path
) -> None:
    other = broker_logs(tmp_path / "other", TXN, TINY)
    (other / "meta.properties").write_text("directory.id=AAAAAAAAAAAAAAAAAAAAAB\n")
    config = tmp_path / "tiering.toml"
    config.write_text(f'[log]\ndirs = ["{folder}", "{other}"]\n')
    offload()
    former = local_logs(folder)[TINY].topic_id
    rmtree(folder / TINY)
    metadata = other / TINY / PARTITION_METADATA
    metadata.write_text(metadata.read_text().replace(former, "Z" * 21 + "A"))
    assert run("offload", "--log-dir", other, "--archive", url).exit_code == 0
    code, rows, _ = offload("--config", config)
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])


def test_a_partition_that_may_have_moved_to_a_directory_that_is_not_mounted_is_told_and_stays_remembered(
    offload: Callable[..., Found], folder: Path, tmp_path: Path
) -> None:
    (other := tmp_path / "other").mkdir()
    config = tmp_path / "tiering.toml"
    config.write_text(f'[log]\ndirs = ["{folder}", "{other}"]\n')
    offload()
    rmtree(folder / TINY)
    code, rows, said = offload("--config", config)
    assert (code, lost(rows)) == (1, [])
    assert f"{other}: it is empty" in said
    assert lost(offload()[1]) == [("g-tiny", 0)]


def test_a_loss_whose_run_ended_before_it_was_told_is_told_by_the_next(
    offload: Callable[..., Found], folder: Path, tmp_path: Path
) -> None:
    offload()
    rmtree(folder / TINY)
    before = memory(tmp_path)
    told = offload()
    for name, body in before.items():
        (tmp_path / "state" / name).write_bytes(body)
    code, rows, said = offload()
    assert (code, lost(rows), said) == (told[0], lost(told[1]), told[2])
    assert offload()[0] == 0


def test_of_a_log_that_another_directory_is_recorded_to_have_nobody_says_that_all_is_archived(
    offload: Callable[..., Found], run: Run, folder: Path, url: str, tmp_path: Path
) -> None:
    other = broker_logs(tmp_path / "other", TXN, TINY)
    (other / "meta.properties").write_text("directory.id=AAAAAAAAAAAAAAAAAAAAAB\n")
    offload()
    assert run("offload", "--log-dir", other, "--archive", url).exit_code == 0
    rmtree(folder / TINY)
    code, rows, _ = offload()
    assert code == 0
    assert [row["reason"] for row in rows if row["topic"] == "g-tiny"] == [
        "gone from the log directory; another one is recorded to have what is not archived"
    ]


def test_a_log_that_is_gone_after_a_run_that_was_killed_is_lost(
    offload: Callable[..., Found], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(offload_command, "_print", killed)
        patch.setattr(offload_command, "save_seen", lambda *_: None)
        offload()
    rmtree(folder / TINY)
    code, rows, _ = offload()
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])


def test_a_log_directory_that_is_another_one_since_the_run_began_is_refused(
    offload: Callable[..., Found], folder: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offload()
    rmtree(folder / TINY)
    before = memory(tmp_path), contents(open_store(url))
    looked = offload_command.refuse_a_shared_folder

    def then_unmounted(*given: Any) -> None:
        looked(*given)
        (folder / "meta.properties").unlink()

    with monkeypatch.context() as patch:
        patch.setattr(offload_command, "refuse_a_shared_folder", then_unmounted)
        code, _, said = offload()
    assert code != 0
    assert "check whether its disk is mounted" in said
    assert (memory(tmp_path), contents(open_store(url))) == before


def test_the_former_of_a_topic_that_was_made_anew_is_recorded_before_the_new_one(
    offload: Callable[..., Found], folder: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the new topic's manifest has the log directory, nobody asks for former topics."""
    offload()
    rmtree(tmp_path / "state")
    metadata, former = folder / TINY / PARTITION_METADATA, path_of(local_logs(folder)[TINY])
    metadata.write_text(metadata.read_text().replace(former.topic_id, "Z" * 21 + "A"))
    put = FolderStore.put_if_absent

    def down(store: FolderStore, key: str, *more: Any) -> Any:
        if key.startswith(former.manifests):
            raise Unavailable("down")
        return put(store, key, *more)

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "put_if_absent", down)
        assert offload("--must-exist")[0] != 0
    code, rows, _ = offload()
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])


def test_of_a_topic_that_was_made_anew_the_former_is_lost_up_to_where_it_was_seen_to_end(
    offload: Callable[..., Found], folder: Path, url: str
) -> None:
    (folder / TINY).rename(folder / "aside")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, TINY, 2)
    (folder / "aside").rename(folder / TINY)
    offload()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, TINY, 9)
    offload()
    metadata = folder / TINY / PARTITION_METADATA
    metadata.write_text(metadata.read_text().replace(local_logs(folder)[TINY].topic_id, "Z" * 21 + "A"))
    code, rows, said = offload()
    assert (code, lost(rows)) == (3, [("g-tiny", 0)])
    assert "offsets [0, 9) are lost: of the former topic" in said
    assert offload()[0] == 0


def test_where_nothing_can_be_remembered_the_work_is_done_all_the_same(offload: Callable[..., Found], tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    code, _, said = offload()
    assert code == 0
    assert said.count("give another --state-dir") == 1


@pytest.mark.parametrize("damage", ["{", '{"format": 2, "logs": {}}', '{"format": 1, "logs": {"g-tiny-0": [1]}}', "[" * 100_000])
def test_a_damaged_state_file_is_told_and_kept_under_another_name(
    offload: Callable[..., Found], folder: Path, tmp_path: Path, damage: str
) -> None:
    offload()
    (file,) = (tmp_path / "state").iterdir()
    file.write_text(damage)
    damaged = file.with_name(f"{file.name}.damaged")
    code, _, said = offload("--dry-run")
    assert (code, said.count("expected a state file of format 1"), damaged.exists()) == (0, 1, False)
    assert f"{file} at byte " in said
    code, _, said = offload()
    assert (code, said.count(f"the next save keeps it as {damaged.name}")) == (0, 1)
    assert damaged.read_text() == damage
    rmtree(folder / TINY)
    code, rows, said = offload()
    assert (code, lost(rows), "state file" in said) == (3, [("g-tiny", 0)], False)


def test_eight_runs_at_once_forget_nothing_of_each_other(tmp_path: Path) -> None:
    file = SeenFile(OsWritableDisk(), str(tmp_path / "state"), "logs.json")
    seen = SeenLog("A" * 22, 0, 5, 0, 7)
    partitions = [TopicPartition("orders", n) for n in range(64)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda p: file.save({p: seen}, SystemClock()), partitions))
    assert file.load() == dict.fromkeys(partitions, seen)
    file.save({partitions[0]: None}, SystemClock())
    assert file.load().keys() == set(partitions[1:])
    assert [at.name for at in (tmp_path / "state").iterdir()] == ["logs.json"]


def test_a_run_that_copies_nothing_prints_the_plan_and_notes_down_what_it_sees(
    offload: Callable[..., Found], folder: Path, url: str
) -> None:
    code, rows, _ = offload("--copy-nothing")
    planned = offload("--dry-run")[1]
    assert (code, rows) == (0, planned)
    assert [key for key in contents(open_store(url)) if "/segments/" in key] == []
    rmtree(folder / TINY)
    drop_segments_below(folder, TXN, 102)
    code, rows, _ = offload("--copy-nothing")
    assert (code, lost(rows)) == (3, [("g-tiny", 0), ("g-txn", 0)])
    assert ("g-txn", "copy") in [(row["topic"], row["action"]) for row in rows]
    assert lost(offload()[1]) == []
