"""What every store promises, as one class that each backend runs."""

import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from crc32c import crc32c

from local_log.errors import AlreadyExists, BadRange, Corrupt, Invalid, NotFound, Unavailable
from remote.store.api import Body, ObjectStore
from remote.store.open import probe
from remote.store.store_time import store_time_ms

MIB = 1024 * 1024


def upload(store: ObjectStore, key: str, *parts: bytes) -> None:
    body = b"".join(parts)
    store.upload(key, parts, size=len(body), crc32c=crc32c(body))


def race(contestants: int, create: Callable[[int], None]) -> list[int]:
    """Those who created, out of so many threads that start at once and are made to switch often."""
    return races(contestants, 1, lambda _, number: create(number))[0]


def races(contestants: int, rounds: int, create: Callable[[int, int], None]) -> list[list[int]]:
    """The same of each round; `create` is told the round, too. The threads stay the same, and start each round at once."""
    start = threading.Barrier(contestants)

    def run(number: int) -> list[bool]:
        return [_is_first(start, lambda of=of: create(of, number)) for of in range(rounds)]  # type: ignore[misc]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(contestants) as pool:
            won = [*zip(*pool.map(run, range(contestants)), strict=True)]
            return [[number for number, is_first in enumerate(of) if is_first] for of in won]
    finally:
        sys.setswitchinterval(interval)


def _is_first(start: threading.Barrier, create: Callable[[], None]) -> bool:
    with suppress(threading.BrokenBarrierError):  # another thread says what is wrong
        start.wait()
    try:
        create()
    except AlreadyExists:
        return False
    except BaseException:
        start.abort()
        raise
    return True


class ObjectStoreConformance:
    """The promises of `remote.store.api`."""

    contestants = 32
    race_rounds = 8
    """Where a server or the operating system decides, whoever does not ask it loses the first one."""
    uploaders = 8
    strange_keys = ("z/é", "z/\U00010000", "z/\uffff", "ä/1")

    @pytest.fixture
    def store(self) -> ObjectStore:
        raise NotImplementedError

    # reading

    def test_get_gives_what_was_put(self, store: ObjectStore) -> None:
        store.put_if_absent("a/b.json", b"body")
        assert store.get("a/b.json") == b"body"

    @pytest.mark.parametrize("body", [b"bytes", bytearray(b"bytes"), memoryview(b"a bytes")[2:], memoryview(b"bytes")])
    def test_any_bytes_like_body_is_stored_as_its_bytes(self, store: ObjectStore, body: Body) -> None:
        store.put_if_absent("put", body)
        store.upload("upload", [body], size=5, crc32c=crc32c(b"bytes"))
        assert store.get("put") == store.get("upload") == b"bytes"

    def test_an_empty_object_is_an_object(self, store: ObjectStore) -> None:
        store.put_if_absent("put", b"")
        upload(store, "upload")
        assert store.get("put") == store.get("upload") == b""
        assert [meta.size for meta in store.list("")] == [0, 0]
        assert store.get_range("put", 0, 0) == b""

    def test_get_range_gives_exactly_the_bytes_from_start_to_before_end(self, store: ObjectStore) -> None:
        store.put_if_absent("key", b"0123456789")
        for start in range(11):
            for end in range(start, 11):
                assert store.get_range("key", start, end) == b"0123456789"[start:end]

    @pytest.mark.parametrize(("start", "end"), [(0, 11), (9, 11), (10, 11), (11, 11), (20, 30), (5, 4), (-1, 3), (-3, -1)])
    def test_a_range_that_the_object_does_not_have_is_told_from_all_that_is_refused(
        self, store: ObjectStore, start: int, end: int
    ) -> None:
        store.put_if_absent("key", b"0123456789")
        with pytest.raises(BadRange):
            store.get_range("key", start, end)

    def test_an_object_that_is_not_there_is_not_found(self, store: ObjectStore) -> None:
        store.put_if_absent("folder/object", b"")
        for key in ("missing", "missing/too", "folder", "folder/object2", "folder/object/below"):
            with pytest.raises(NotFound):
                store.get(key)
            with pytest.raises(NotFound):
                store.get_range(key, 0, 1)
            with pytest.raises(NotFound):
                store.get_range(key, 0, 0)
            with pytest.raises(NotFound):
                store.head(key)

    def test_head_gives_the_size_and_if_any_the_checksum_of_the_whole_object(self, store: ObjectStore) -> None:
        body = b"0123456789"
        store.put_if_absent("key", body)
        meta = store.head("key")
        assert (meta.key, meta.size) == ("key", 10)
        assert meta.crc32c in (None, crc32c(body))

    def test_an_object_is_as_old_as_the_stores_own_clock_says_in_head_and_listing(self, store: ObjectStore) -> None:
        before = store_time_ms(store, "probes/1")
        store.put_if_absent("put", b"")
        upload(store, "upload", b"body")
        after = store_time_ms(store, "probes/2")
        listed = {meta.key: meta.modified_ms for meta in store.list("")}
        assert listed.keys() == {"put", "upload"}
        for key, modified_ms in listed.items():
            in_head = store.head(key).modified_ms
            assert modified_ms is not None
            assert in_head is not None
            assert before <= modified_ms <= after
            assert before <= in_head <= after
            assert abs(in_head - modified_ms) < 1_000  # S3's listing may be finer than its headers

    # writing

    def test_put_if_absent_leaves_the_first_object_when_the_key_is_taken(self, store: ObjectStore) -> None:
        store.put_if_absent("a/key", b"first")
        with pytest.raises(AlreadyExists) as raised:
            store.put_if_absent("a/key", b"second")
        assert raised.value.args[0] == "a/key"
        assert store.get("a/key") == b"first"

    def test_upload_leaves_the_first_object_when_the_key_is_taken(self, store: ObjectStore) -> None:
        store.put_if_absent("a/key", b"first")
        with pytest.raises(AlreadyExists) as raised:
            upload(store, "a/key", b"second")
        assert raised.value.args[0] == "a/key"
        assert store.get("a/key") == b"first"

    def test_a_deleted_key_is_free_again(self, store: ObjectStore) -> None:
        store.put_if_absent("key", b"first")
        store.delete("key")
        store.put_if_absent("key", b"second")
        assert store.get("key") == b"second"

    def test_upload_joins_its_parts(self, store: ObjectStore) -> None:
        parts = [os.urandom(5 * MIB), os.urandom(5 * MIB), os.urandom(5 * MIB - 7)]
        upload(store, "a/segment", *parts)
        assert store.get("a/segment") == b"".join(parts)
        assert store.get_range("a/segment", 5 * MIB - 2, 5 * MIB + 2) == parts[0][-2:] + parts[1][:2]
        assert store.head("a/segment").crc32c in (None, crc32c(b"".join(parts)))

    def test_upload_takes_parts_that_can_be_read_only_once(self, store: ObjectStore) -> None:
        parts = (bytes([n]) * 5 * MIB for n in range(2))
        body = bytes(5 * MIB) + b"\1" * 5 * MIB
        try:
            store.upload("key", parts, size=10 * MIB, crc32c=crc32c(body))
        except Unavailable:  # such an upload cannot be repeated, and somebody else may take the key
            store.upload("key", [body], size=10 * MIB, crc32c=crc32c(body))
        assert store.get("key") == body

    def test_an_upload_of_one_part_may_be_of_any_size(self, store: ObjectStore) -> None:
        upload(store, "key", b"small")
        assert store.get("key") == b"small"

    def test_a_failed_upload_leaves_nothing_and_its_reason_comes_through(self, store: ObjectStore) -> None:
        class Parts:
            def __iter__(self) -> Iterator[bytes]:
                yield bytes(5 * MIB)
                yield bytes(5 * MIB)
                raise OSError("the disk broke")

        with pytest.raises(OSError, match="the disk broke"):
            store.upload("a/key", Parts(), size=15 * MIB, crc32c=0)
        with pytest.raises(NotFound):
            store.get("a/key")
        assert list(store.list("")) == []

    @pytest.mark.parametrize(("size", "checksum"), [(4, 0), (6, 0), (5, 1)])
    def test_an_upload_of_other_bytes_than_promised_is_corrupt(self, store: ObjectStore, size: int, checksum: int) -> None:
        with pytest.raises(Corrupt, match="key"):
            store.upload("key", [b"bytes"], size=size, crc32c=crc32c(b"bytes") ^ checksum)
        assert list(store.list("")) == []

    def test_of_many_that_create_one_key_at_once_exactly_one_wins(self, store: ObjectStore) -> None:
        def create(of: int, number: int) -> None:
            store.put_if_absent(f"race/{of}", b"writer %d" % number)

        for of, winners in enumerate(races(self.contestants, self.race_rounds, create)):
            assert [b"writer %d" % n for n in winners] == [store.get(f"race/{of}")]

    def test_of_many_that_upload_one_key_at_once_exactly_one_wins(self, store: ObjectStore) -> None:
        winners = race(self.uploaders, lambda n: upload(store, "race/key", bytes([n]) * 5 * MIB, b"end"))
        assert [bytes([n]) * 5 * MIB + b"end" for n in winners] == [store.get("race/key")]

    # deleting

    def test_deleting_what_is_not_there_counts_as_deleted(self, store: ObjectStore) -> None:
        store.put_if_absent("a/key", b"")
        for key in ("a/key", "a/key", "a", "missing/key"):
            store.delete(key)
        assert list(store.list("")) == []

    def test_what_was_uploaded_or_refused_leaves_no_upload_behind(self, store: ObjectStore) -> None:
        upload(store, "a/key", bytes(5 * MIB), b"end")
        with pytest.raises(AlreadyExists):
            upload(store, "a/key", bytes(5 * MIB), b"end")
        assert list(store.abandoned_uploads("", store_time_ms(store, "probe") + 60_000)) == []

    # listing

    def test_list_gives_keys_in_the_order_of_their_bytes(self, store: ObjectStore) -> None:
        keys = ["a-b", "a.c/x", "a/0", "a/b/c/d", "a/b/e", "a/z", "a0", "B", *self.strange_keys]
        for key in keys:
            store.put_if_absent(key, key.encode())
        assert [(meta.key, meta.size) for meta in store.list("")] == [
            (key, len(key.encode())) for key in sorted(keys, key=str.encode)
        ]

    @pytest.mark.parametrize(
        ("prefix", "keys"),
        [
            ("a/b", ["a/b", "a/bc", "a/bd/e"]),
            ("a/", ["a/b", "a/bc", "a/bd/e", "a/c"]),
            ("a", ["a/b", "a/bc", "a/bd/e", "a/c", "ab"]),
            ("a/bd/", ["a/bd/e"]),
            ("a/b/", []),
            ("missing/", []),
            ("a/c/d", []),
        ],
    )
    def test_list_gives_the_keys_that_start_with_the_prefix(self, store: ObjectStore, prefix: str, keys: list[str]) -> None:
        for key in ("a/b", "a/bc", "a/bd/e", "a/c", "ab", "b"):
            store.put_if_absent(key, b"")
        assert [meta.key for meta in store.list(prefix)] == keys

    @pytest.mark.parametrize("limit", [0, 1, 2, 5, 6, 1_001])
    def test_list_gives_the_first_ones_up_to_its_limit(self, store: ObjectStore, limit: int) -> None:
        keys = ["a", "b/1", "b/2", "b/3", "c"]
        for key in reversed(keys):
            store.put_if_absent(key, b"")
        assert [meta.key for meta in store.list("", limit=limit)] == keys[:limit]

    @pytest.mark.parametrize("prefix", ["", "a/", "a/b"])
    def test_list_goes_on_after_any_key_whether_it_is_there_or_not(self, store: ObjectStore, prefix: str) -> None:
        keys = sorted(["a-b", "a/b-c/d", "a/b/c", "a/b/d/e", "a/b/d/f", "a/c", "a0", "b/a/b"])
        for key in keys:
            store.put_if_absent(key, b"")
        for after in (*keys, "a", "a/", "a/b", "a/b/", "a/b/d/", "a/b/d/e0", "a/b0", "0", "z"):
            expected = [key for key in keys if key.startswith(prefix) and key > after]
            assert [meta.key for meta in store.list(prefix, start_after=after)] == expected
            assert [meta.key for meta in store.list(prefix, start_after=after, limit=2)] == expected[:2]

    def test_list_sees_at_once_what_another_handle_has_done(self, store: ObjectStore) -> None:
        other = pickle.loads(pickle.dumps(store))
        assert list(store.list("a/")) == list(store.list_folders("")) == []
        other.put_if_absent("a/1", b"")
        assert [meta.key for meta in store.list("a/")] == ["a/1"]
        assert list(store.list_folders("")) == ["a"]
        other.put_if_absent("a/2", b"")
        assert [meta.key for meta in store.list("a/")] == ["a/1", "a/2"]
        other.delete("a/1")
        assert [meta.key for meta in store.list("a/")] == ["a/2"]
        assert store.head("a/2") == other.head("a/2")

    def test_list_folders_gives_each_next_part_once_and_in_order(self, store: ObjectStore) -> None:
        for key in ("t/b/0/x", "t/b/1/x", "t/a/0/x", "t/a-b/0/x", "t/file", "u/0/x"):
            store.put_if_absent(key, b"")
        assert list(store.list_folders("")) == ["t", "u"]
        assert list(store.list_folders("t/")) == ["a-b", "a", "b"]  # "-" comes before "/"
        assert list(store.list_folders("t/b/")) == ["0", "1"]
        assert list(store.list_folders("t/b/0/")) == list(store.list_folders("missing/")) == []

    def test_list_folders_gives_no_folder_whose_objects_are_all_deleted(self, store: ObjectStore) -> None:
        store.put_if_absent("a/b/c", b"")
        store.put_if_absent("d/e", b"")
        store.delete("a/b/c")
        assert list(store.list_folders("")) == ["d"]

    # all

    @pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", ".", "a/../b", "..", "a/.", "a\0b", "\udc80", "k" * 1_025])
    def test_what_is_no_key_is_refused(self, store: ObjectStore, key: str) -> None:
        for ask in (store.get, store.head, store.delete):
            with pytest.raises(Invalid):
                ask(key)
        with pytest.raises(Invalid):
            store.get_range(key, 0, 1)
        with pytest.raises(Invalid):
            store.put_if_absent(key, b"")
        with pytest.raises(Invalid):
            upload(store, key, b"")

    @pytest.mark.parametrize("prefix", ["/", "/a", "a//", "../", "a/..", "a/../b"])
    def test_a_prefix_that_no_key_can_start_with_is_refused(self, store: ObjectStore, prefix: str) -> None:
        with pytest.raises(Invalid):
            list(store.list(prefix))
        with pytest.raises(Invalid):
            list(store.list_folders("a"))
        with pytest.raises(Invalid):
            list(store.abandoned_uploads(prefix, 0))

    def test_a_pickled_store_is_the_same_store(self, store: ObjectStore) -> None:
        store.put_if_absent("key", b"body")
        copy = pickle.loads(pickle.dumps(store))
        assert copy.url == store.url
        assert copy.get("key") == b"body"

    def test_the_probe_passes_and_leaves_nothing(self, store: ObjectStore) -> None:
        probe(store, "probes/1")
        assert list(store.list("")) == []
