"""The folder keeps the promises, also on a disk that fails, and syncs what it has written."""

import itertools
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from archive_fakes import Door, MemoryStore, SleptClock
from store_promises import ObjectStoreConformance

from local_log.errors import AlreadyExists, Corrupt, Invalid, LogError, NotFound, Unavailable, Unknown
from local_log.formats.checksum import crc32c
from remote.store.api import AbandonedUpload, ObjectStore, file_opener, make_durable
from remote.store.folder.store import FolderStore
from remote.store.folder.write_behind import BEHIND_BYTES_MIN
from remote.store.open import open_backend
from remote.store.retrying import Retrying


class TestFolder(ObjectStoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Any) -> ObjectStore:
        return open_backend(str(tmp_path / "new" / "archive"))

    def test_an_objects_file_stays_open_when_it_is_deleted_and_what_is_no_object_has_none(self, store: FolderStore) -> None:
        store.put_if_absent("a/b", b"0123456789")
        opener = file_opener(Retrying(store, SleptClock(), lambda: 0.5), "a/b")
        assert opener is not None
        opened = opener()
        store.delete("a/b")
        assert opened.read(2, 20) == os.pread(opened.fileno(), 20, 2) == b"23456789"
        assert opened.state().size == 10
        for key in ("a/b", "a"):
            with pytest.raises(NotFound):
                store.file_opener(key)()
        assert file_opener(MemoryStore(), "a/b") is None

    def test_of_many_processes_that_create_one_key_at_once_exactly_one_wins(self, store: FolderStore) -> None:
        rounds, writers = 50, 4
        with ProcessPoolExecutor(writers, mp_context=multiprocessing.get_context("spawn")) as pool:
            tries = [
                (key, body, pool.submit(store.put_if_absent, key, body))
                for key in (f"race/{n}" for n in range(rounds))
                for body in (b"writer %d" % n for n in range(writers))
            ]
        winners = [(key, body) for key, body, future in tries if not isinstance(future.exception(), AlreadyExists)]
        assert winners == [(f"race/{n}", store.get(f"race/{n}")) for n in range(rounds)]

    def test_a_listing_passes_over_temporary_files_links_and_names_that_are_no_text(self, store: FolderStore) -> None:
        store.put_if_absent("a/key", b"")
        folder = os.path.join(store.root, "a")
        with open(os.path.join(folder, ".tmp-1-2"), "wb"), open(os.fsencode(folder) + b"/\xff", "wb"):
            pass
        os.symlink(store.root, os.path.join(folder, "loop"))
        os.mkfifo(os.path.join(folder, "pipe"))
        os.mkdir(os.path.join(store.root, "empty"))
        assert [meta.key for meta in store.list("")] == ["a/key"]
        assert list(store.list_folders("")) == ["a"]
        with pytest.raises(NotFound):
            store.get("a/pipe")
        with pytest.raises(Invalid):
            store.get("a/.tmp-1-2")

    def test_no_temporary_file_remains_whether_a_put_wins_loses_or_fails(self, store: FolderStore) -> None:
        store.put_if_absent("key", b"")
        with pytest.raises(AlreadyExists):
            store.put_if_absent("key", b"")
        with pytest.raises(Corrupt):
            store.upload("other", [b"x"], size=1, crc32c=0)
        assert os.listdir(store.root) == ["key"]

    def test_what_killed_processes_left_is_found_by_its_age_and_removed(self, store: FolderStore) -> None:
        store.put_if_absent("a/b/key", b"")
        for name in (".tmp-1-0", "a/b/.tmp-1-1", "a/b/.tmp-1-2"):
            with open(os.path.join(store.root, name), "wb"):
                pass
            os.utime(os.path.join(store.root, name), (1_000, 1_000))
        with open(os.path.join(store.root, ".tmp-1-3"), "wb"):
            pass
        found = list(store.abandoned_uploads("", 1_000_001))
        assert [(u.key, u.started_ms) for u in found] == [
            (key, 1_000_000) for key in (".tmp-1-0", "a/b/.tmp-1-1", "a/b/.tmp-1-2")
        ]
        assert list(store.abandoned_uploads("", 1_000_000)) == []
        assert [u.key for u in store.abandoned_uploads("a/", 1_000_001)] == ["a/b/.tmp-1-1", "a/b/.tmp-1-2"]
        for upload in (*found, *found):
            store.abort_upload(upload)
        assert sorted(os.listdir(store.root)) == [".tmp-1-3", "a"]
        assert os.listdir(os.path.join(store.root, "a/b")) == ["key"]

    @pytest.mark.parametrize("key", ["a/key", "../.tmp-1-0", "/.tmp-1-0"])
    def test_nothing_but_a_temporary_file_is_removed_as_one(self, store: FolderStore, key: str) -> None:
        store.put_if_absent("a/key", b"body")
        with pytest.raises(Invalid):
            store.abort_upload(AbandonedUpload(key, "", 0))
        assert store.get("a/key") == b"body"

    def test_leftovers_with_our_process_id_are_stepped_over(self, store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
        os.makedirs(store.root)
        for number in range(3):
            with open(os.path.join(store.root, f".tmp-{os.getpid()}-{number}"), "wb"):
                pass
        monkeypatch.setattr("remote.store.folder.store._counter", itertools.count())
        store.put_if_absent("key", b"body")
        assert [meta.key for meta in store.list("")] == ["key"]

    def test_a_file_is_synced_before_its_link_and_its_folders_after(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []
        fsync, link = os.fsync, os.link

        def recording_fsync(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            calls.append("file" if os.path.isfile(path) else os.path.relpath(path, os.path.dirname(store.root)))
            fsync(descriptor)

        def recording_link(source: str, target: str) -> None:
            calls.append("link")
            link(source, target)

        monkeypatch.setattr(os, "fsync", recording_fsync)
        monkeypatch.setattr(os, "link", recording_link)
        store.put_if_absent("a/b/key", b"")
        assert calls == ["file", "link", "archive/a/b", "archive/a", "archive", ".", ".."]
        calls.clear()
        with pytest.raises(AlreadyExists):
            store.put_if_absent("a/b/key", b"")
        assert calls == ["file", "link", "archive/a/b", "archive/a", "archive"]

    @pytest.mark.parametrize(
        ("call", "number", "expected"),
        [
            ("fsync", "EIO", Unavailable),
            ("write", "ENOSPC", Unavailable),
            ("write", "EIO", Unavailable),
            ("link", "EPERM", Invalid),
            ("link", "EIO", Unknown),
        ],
    )
    def test_a_put_that_fails_on_the_disk_says_what_to_do_and_leaves_nothing(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch, call: str, number: str, expected: type[LogError]
    ) -> None:
        def failing(*_: object) -> None:
            raise OSError(getattr(__import__("errno"), number), number)

        os.makedirs(store.root)
        monkeypatch.setattr(os, call, failing)
        with pytest.raises(expected, match="key"):
            store.put_if_absent("key", b"body")
        assert os.listdir(store.root) == []

    @pytest.mark.parametrize("parts", [1, 2, 5])
    def test_an_upload_is_no_object_when_a_sync_on_its_way_fails_though_the_last_one_succeeds(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch, parts: int
    ) -> None:
        tries = itertools.count()

        def failing_once(_: int) -> None:
            if next(tries) == 0:
                raise OSError(5, "EIO")

        monkeypatch.setattr(os, "fdatasync", failing_once)
        bodies = [b"%d" % n * BEHIND_BYTES_MIN for n in range(parts)]
        whole = b"".join(bodies)
        with pytest.raises(Unavailable, match="EIO"):
            store.upload("key", bodies, size=len(whole), crc32c=crc32c(whole))
        assert os.listdir(store.root) == []
        store.upload("key", bodies, size=len(whole), crc32c=crc32c(whole))
        assert store.get("key") == whole

    def test_a_read_that_is_not_allowed_says_nothing_of_writing(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(*_: object) -> None:
            raise PermissionError(13, "EACCES")

        store.put_if_absent("key", b"body")
        monkeypatch.setattr(os, "open", failing)
        monkeypatch.setattr(os, "scandir", failing)
        for read in (store.get, store.head, lambda prefix: list(store.list(prefix))):
            with pytest.raises(Invalid, match=r"give a folder that this user may read$"):
                read("key")
        with pytest.raises(Invalid, match="may write"):
            store.put_if_absent("other", b"body")

    def test_a_put_whose_folder_cannot_be_synced_is_unknown(self, store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
        fsync = os.fsync

        def failing_for_folders(descriptor: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                raise OSError(5, "EIO")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", failing_for_folders)
        for _ in range(2):
            with pytest.raises(Unknown):
                store.put_if_absent("key", b"body")
        assert store.get("key") == b"body"

    def test_what_somebody_else_has_linked_is_made_durable_by_syncing_its_folders(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.put_if_absent("a/b/key", b"body")
        synced: list[str] = []
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
        make_durable(Retrying(Door(store), SleptClock(), lambda: 0.5), "a/b/key")
        assert synced == [os.path.join(store.root, *parts) for parts in (("a", "b"), ("a",), ())]
        make_durable(MemoryStore(), "a/b/key")

    def test_a_file_where_a_folder_should_be_is_invalid(self, store: FolderStore) -> None:
        store.put_if_absent("a", b"")
        with pytest.raises(Invalid):
            store.put_if_absent("a/key", b"")
