"""Addresses and the stores that they name, and the proof that a store keeps its word."""

import dataclasses
import re
from typing import Any

import pytest
from archive_fakes import CountingIds, Door, IgnoresCondition, KeepsNoTime, MemoryStore, SleptClock
from store_promises import ObjectStoreConformance

from local_log.errors import BadAddress, Invalid
from remote import archive
from remote.clock import jitter
from remote.store.api import ObjectStore
from remote.store.folder.store import FolderStore
from remote.store.fsspec.store import FsspecStore
from remote.store.instrumented import Meter
from remote.store.open import open_backend, open_store, probe
from remote.store.s3.store import S3Store
from remote.store.shared import key_bytes_max
from remote.store.store_time import store_time_ms


class TestOpening:
    @pytest.mark.parametrize(
        ("url", "kind", "name"),
        [
            ("/archive", FolderStore, "file:///archive"),
            ("/archive/", FolderStore, "file:///archive"),
            ("file:///archive", FolderStore, "file:///archive"),
            ("s3://bucket", S3Store, "s3://bucket/"),
            ("s3://bucket/a/b/", S3Store, "s3://bucket/a/b"),
            ("s3a://bucket/a", S3Store, "s3://bucket/a"),
            ("S3://bucket/a", S3Store, "s3://bucket/a"),
            ("memory://a/b", FsspecStore, "memory://a/b"),
        ],
    )
    def test_a_url_names_its_store(self, url: str, kind: type, name: str) -> None:
        store = open_backend(url)
        assert type(store) is kind
        assert store.url == open_store(url).url == name

    def test_a_relative_path_is_taken_from_where_the_process_started(
        self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert open_store("archive").url == f"file://{tmp_path}/archive"

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "s3://",
            "s3:///prefix",
            "s3:/bucket/prefix",
            "s3://bucket/a/../b",
            "file:/folder",
            "file://host/folder",
            "nonesuch://bucket",
            "://bucket",
            "local:///folder",
            "simplecache::s3://bucket/a",
            "sftp://host/folder",
        ],
    )
    def test_an_address_that_cannot_be_used_is_a_bad_one_and_named(self, url: str) -> None:
        with pytest.raises(BadAddress) as raised:
            open_store(url)
        message = str(raised.value)
        assert repr(url) in message or "a/../b" in message
        assert ";" in message  # what follows is what would do

    @pytest.mark.parametrize(
        ("protocol", "extra"), [("gs", "gcs"), ("gcs", "gcs"), ("abfs", "azure"), ("abfss", "azure"), ("az", "azure")]
    )
    def test_an_address_whose_package_is_missing_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch, protocol: str, extra: str
    ) -> None:
        def missing(_: str) -> None:
            raise ImportError("install something")

        monkeypatch.setattr("fsspec.get_filesystem_class", missing)
        with pytest.raises(BadAddress, match=re.escape(f"; pip install 'kafka-tiering[{extra}]'") + "$") as raised:
            open_store(f"{protocol}://bucket/prefix")
        assert "give" not in str(raised.value)

    def test_a_password_in_a_url_is_refused_and_not_repeated(self) -> None:
        with pytest.raises(Invalid) as raised:
            open_store("s3://key:secret@bucket/prefix")
        assert "secret" not in str(raised.value)

    def test_the_longest_key_is_taken(self, tmp_path: Any) -> None:
        key = "/".join(["k" * 100] * 10 + ["k" * 14])
        assert len(key) == key_bytes_max
        store = open_store(str(tmp_path))
        store.put_if_absent(key, b"")
        assert [meta.key for meta in store.list("")] == [key]


def opened(url: str) -> ObjectStore:
    return open_store(url, bytes_per_second=1 << 30, meter=Meter(), clock=SleptClock(), chance=jitter)


class TestEverythingAroundAFolder(ObjectStoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Any) -> ObjectStore:
        return opened(str(tmp_path / "archive"))


class TestEverythingAroundMemory(ObjectStoreConformance):
    @pytest.fixture
    def store(self, request: pytest.FixtureRequest) -> ObjectStore:
        return opened(f"memory://everything-{id(request.node)}/prefix")


class TestEverythingAroundS3(ObjectStoreConformance):
    race_rounds = 2

    @pytest.fixture
    def store(self, s3_bucket: str) -> ObjectStore:
        return opened(f"s3://{s3_bucket}/prefix")


@dataclasses.dataclass
class Careless:
    """A store that ignores the put-if-absent condition, as rclone's S3 server does."""

    url: str = "careless://archive"
    objects: dict[str, bytes] = dataclasses.field(default_factory=dict)

    def put_if_absent(self, key: str, body: bytes) -> None:
        self.objects[key] = body

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


class TestProbe:
    def test_a_store_that_ignores_the_condition_is_refused_and_left_clean(self) -> None:
        store: Any = Careless()
        with pytest.raises(Invalid, match="If-None-Match"):
            probe(store, "probe")
        assert store.objects == {}

    def test_a_key_that_is_taken_proves_nothing_and_is_kept(self, tmp_path: Any) -> None:
        store = open_store(str(tmp_path))
        store.put_if_absent("probe", b"mine")
        with pytest.raises(Invalid, match="fresh"):
            probe(store, "probe")
        assert store.get("probe") == b"mine"


class TestTheStoresClock:
    def test_it_is_that_of_the_objects_and_nothing_is_left(self) -> None:
        store = MemoryStore(SleptClock(1_234))
        assert store_time_ms(store, "probe") == 1_234
        assert store.objects == {}

    def test_a_store_that_tells_no_times_is_refused_and_left_clean(self) -> None:
        memory = MemoryStore()
        with pytest.raises(Invalid, match="swept by age"):
            store_time_ms(KeepsNoTime(memory), "probe")
        assert memory.objects == {}


class TestWhichStoresThereMayBe:
    @pytest.mark.parametrize(
        "scheme", ["http", "https", "zip", "reference", "sftp", "ftp", "github", "hf", "local", "data", "dbfs"]
    )
    def test_no_archive_lies_where_a_commit_could_overwrite_another(self, scheme: str) -> None:
        with pytest.raises(BadAddress, match=r"cannot lie on .*; give one of file://, s3://, gs://.*memory://") as raised:
            open_store(f"{scheme}://host/archive")
        assert f"{scheme}://" in str(raised.value)


class ListsBackwards(Door):
    """A store whose newest manifest would not be the first key that it lists."""

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Any:
        return reversed([*self.inner.list(prefix, start_after=start_after)][-(limit or 0) :])


class ListsAsPut(Door):
    """A store that lists what was put first first."""

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Any:
        found = {meta.key: meta for meta in self.inner.list(prefix, start_after=start_after)}
        memory: Any = self.inner
        return iter([found[key] for key in memory.objects if key in found][:limit])


class TestTheProof:
    @pytest.mark.parametrize("kind", [ListsBackwards, ListsAsPut])
    def test_a_store_that_lists_in_another_order_is_refused_and_left_clean(self, kind: Any) -> None:
        memory = MemoryStore()
        with pytest.raises(Invalid, match="the newest manifest has to be the first key listed"):
            archive.create_archive(kind(memory), SleptClock(), CountingIds())
        assert memory.objects == {}

    @pytest.mark.parametrize("open_it", [lambda s: archive.create_archive(s, SleptClock(), CountingIds("b")),
                                         lambda s: archive.open_to_write(s, CountingIds("b"))])  # fmt: skip
    def test_an_archive_that_was_moved_to_a_store_without_the_condition_is_not_written(self, open_it: Any) -> None:
        good = MemoryStore()
        archive.create_archive(good, SleptClock(), CountingIds())
        moved = MemoryStore()
        moved.objects = dict(good.objects)
        with pytest.raises(Invalid, match="put-if-absent"):
            open_it(IgnoresCondition(moved))
        archive.open_archive(IgnoresCondition(moved))  # who only reads is not concerned
        assert moved.objects == good.objects

    def test_a_process_proves_an_address_once_for_six_requests(self, tmp_path: Any) -> None:
        meter = Meter()
        for _ in range(3):
            archive.create_archive(open_store(str(tmp_path / "archive"), meter=meter), SleptClock(), CountingIds())
        counted = {verb: count.calls for verb, count in meter.snapshot().items() if count.calls}
        assert counted == {"get": 3, "put_if_absent": 3 + 1, "list": 1, "delete": 2}
