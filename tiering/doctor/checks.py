"""The checks of a store: each asks for one thing that an archive needs of it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from local_log.errors import AlreadyExists, Invalid, LogError, NotFound
from local_log.formats.checksum import crc32c
from remote.archive import is_archive
from remote.clock import Clock
from remote.store.api import ObjectStore
from remote.store.store_time import DIFFERENCE_MAX_MS, store_time_ms

WRITERS = 32
ROUNDS = 4
PART_BYTES = 5 << 20
"""The least that S3 takes for a part that is not the last."""
DIFFERENCE_OK_MS = 5_000
UPLOAD_AGE_MS = 7 * 24 * 3_600_000
ORDERED = ("!", "-", ".", "0", "A", "Z", "_", "a", "a-", "a0", "z", "~", "é")
"""Ends of keys, in the order of their bytes."""


class Verdict(StrEnum):
    """How a check ended: as it should, with a warning, or with a promise broken."""

    ok = "ok"
    warn = "warn"
    fail = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was checked, what was seen, and, unless all is well, what that means and what to do."""

    check: str
    verdict: Verdict
    seen: str
    remedy: str = ""
    error: LogError | None = None


class Broken(Exception):
    """A promise that the store does not keep: what was seen, and what it means."""

    def __init__(self, seen: str, remedy: str) -> None:
        super().__init__(seen)
        self.seen = seen
        self.remedy = remedy


_OVERWRITES = "two writers would overwrite each other's commits: do not put an archive there; use a store that supports it"


class StoreProbe:
    """One check a method: each gives what was seen, raises Broken, or the store's own error. All keys begin with `prefix`."""

    def __init__(self, store: ObjectStore, prefix: str, clock: Clock) -> None:
        self._store = store
        self._prefix = prefix
        self._clock = clock
        self._made: set[str] = set()

    def reach(self) -> str:
        """Lists, which needs the address, the credentials and one right."""
        first = next(self._store.list("", limit=1), None)
        return f"{self._store.url} answers; {'it is empty' if first is None else 'there are objects in it'}"

    def archive(self) -> str:
        """Reads `archive.json`, if there is one."""
        return "there is an archive, which stays as it is" if is_archive(self._store) else "there is no archive yet"

    def create(self) -> str:
        """Creates one object."""
        self._put("first", b"0123456789")
        return "an object was created"

    def read(self) -> str:
        """Reads that object back: its bytes and its size."""
        self._expect("first", b"0123456789")
        size = self._store.head(self._prefix + "first").size
        if size != 10:
            raise Broken(
                f"an object of 10 bytes is said to have {size}", "what is archived cannot be verified: use another store"
            )
        return "its bytes and its size came back"

    def delete(self) -> str:
        """Removes it; what is made after this can be removed."""
        key = self._prefix + "first"
        self._store.delete(key)
        self._made.discard(key)
        with suppress(NotFound):
            self._store.get(key)
            raise Broken(
                f"{key} is still read after it was deleted", "readers would see what is gone: use a store without a cache"
            )
        return "it was deleted, and is gone at once"

    def range(self) -> str:
        """Reads parts of an object, and more than there is."""
        body = bytes(range(256)) * 4
        self._put("range", body)
        spans = ((0, 1), (0, 1024), (1023, 1024), (255, 257), (7, 700))
        for start, end in spans:
            got = self._store.get_range(self._prefix + "range", start, end)
            if got != body[start:end]:
                raise Broken(
                    f"{len(got)} bytes, or others, for the range [{start}, {end})",
                    "archived segments are read by range: use a store that gives exactly what was asked for",
                )
        with suppress(Invalid):
            self._store.get_range(self._prefix + "range", 1000, 1100)
            raise Broken("a range past an object's end was given", "a truncated object would go unnoticed: use another store")
        return f"{len(spans)} ranges came back exactly, one past the end was refused"

    def list(self) -> str:
        """Whether what was just written is listed, in order."""
        before = [meta.key for meta in self._store.list(self._prefix + "list")]
        for end in reversed(ORDERED):
            self._put("list" + end, b"")
        expected = [f"{self._prefix}list{end}" for end in ORDERED]
        listed = [meta.key for meta in self._store.list(self._prefix + "list")]
        if before or sorted(listed) != sorted(expected):
            raise Broken(
                f"{len(set(expected) & set(listed))} of {len(expected)} objects are listed just after they were written",
                "commits would miss each other: use a store whose listing is consistent, and no cache before it",
            )
        if listed != expected:
            raise Broken(
                "the listing is not in the order of the keys' bytes",
                "the newest manifest is the first one listed, and would not be found: use a store that lists in order",
            )
        first = [meta.key for meta in self._store.list(self._prefix + "list", limit=1)]
        if first != expected[:1]:
            raise Broken("a listing of one object gives another than the first", "the newest manifest would not be found")
        return f"{len(expected)} new objects are listed at once, in the order of their keys' bytes"

    def condition(self) -> str:
        """Puts one key twice, of which the second has to be refused."""
        self._put("condition", b"first")
        self._refused(lambda: self._put("condition", b"second"), "condition", b"first")
        return "a second put of one key is refused, and the first one stays"

    def race(self) -> str:
        """Many put one key at the same time, several rounds."""
        with ThreadPoolExecutor(WRITERS) as pool:
            for number in range(ROUNDS):
                start = threading.Barrier(WRITERS)

                def run(writer: int, name: str = f"race{number}", start: threading.Barrier = start) -> bool:
                    start.wait()
                    with suppress(AlreadyExists):
                        self._put(name, b"writer %d" % writer)
                        return True
                    return False

                winners = [writer for writer, won in enumerate(pool.map(run, range(WRITERS))) if won]
                if len(winners) != 1:
                    raise Broken(f"of {WRITERS} writers of one key at once {len(winners)} heard that they had won", _OVERWRITES)
                self._expect(f"race{number}", b"writer %d" % winners[0])
        return f"of {WRITERS} writers of one key at once exactly one wins, {ROUNDS} times of {ROUNDS}"

    def upload(self) -> str:
        """An object in two parts, and again."""
        parts = (b"\1" * PART_BYTES, b"end")
        self._upload("upload", parts)
        key, size = self._prefix + "upload", PART_BYTES + 3
        if self._store.head(key).size != size or self._store.get_range(key, PART_BYTES - 1, size) != b"\1end":
            raise Broken("an object in two parts came back as another", "segments would be damaged: use another store")
        self._refused(lambda: self._upload("upload", (b"\2" * PART_BYTES, b"END")), "upload", b"".join(parts))
        return f"an object of {size:,} bytes in two parts came back, a second upload of its key is refused"

    def checksum(self) -> Finding | str:
        """Whether the store keeps the checksum that an upload came with."""
        expected = crc32c(b"\1" * PART_BYTES + b"end")
        found = self._store.head(self._prefix + "upload").crc32c
        if found is None:
            remedy = "every object is read back once to verify it: that costs a second transfer, and nothing else"
            return Finding("checksum", Verdict.warn, "the store keeps no CRC-32C of a whole object", remedy)
        if found != expected:
            raise Broken(
                f"the store says CRC-32C {found:08x} of bytes that have {expected:08x}", "no upload would pass: use another store"
            )
        return "the store keeps the CRC-32C of a whole object"

    def clock(self) -> Finding | str:
        """How far the store's clock is from this machine's."""
        before_ms = self._clock.now_ms()
        theirs_ms = store_time_ms(self._store, self._made_key("clock"))
        after_ms = self._clock.now_ms()
        # Theirs was read between our two readings, and may be in whole seconds.
        off_ms = max(theirs_ms - after_ms, before_ms - theirs_ms - 999, 0)
        seen = f"the store's clock and this machine's are {off_ms / 1000:.0f} s apart"
        if off_ms > DIFFERENCE_MAX_MS:
            raise Broken(seen, "S3 refuses requests, and pins end at the wrong time: set this machine's clock (NTP)")
        if off_ms > DIFFERENCE_OK_MS:
            return Finding(
                "clock", Verdict.warn, seen, "times in manifests and pins are off by as much: set this machine's clock (NTP)"
            )
        return seen

    def leftovers(self) -> Finding | str:
        """Uploads that broke off long ago."""
        long_ago_ms = store_time_ms(self._store, self._made_key("leftovers")) - UPLOAD_AGE_MS
        try:
            found = sum(1 for _ in self._store.abandoned_uploads("", long_ago_ms))
        except Invalid as error:
            remedy = "incomplete uploads cannot be found: allow listing them (s3:ListBucketMultipartUploads)"
            return Finding("leftovers", Verdict.warn, str(error), remedy, error)
        if found:
            remedy = "they take up space that no listing shows: sweep the archive"
            return Finding("leftovers", Verdict.warn, f"{found} uploads have been incomplete for more than a week", remedy)
        return "no upload has been incomplete for more than a week"

    def clean(self) -> str:
        """Deletes all that was made, and looks whether it is gone."""
        for key in sorted(self._made):
            self._store.delete(key)
            self._made.discard(key)
        if left := [meta.key for meta in self._store.list(self._prefix)]:
            raise Broken(f"{left[0]} is still listed after it was deleted", "a sweep would never end: use a consistent store")
        return "all that was made is deleted, and no longer listed"

    def clear(self) -> None:
        """Deletes what is left of it, as far as the store lets us."""
        for key in sorted(self._made):
            with suppress(LogError):
                self._store.delete(key)

    def _made_key(self, name: str) -> str:
        key = self._prefix + name
        self._made.add(key)
        return key

    def _put(self, name: str, body: bytes) -> None:
        self._store.put_if_absent(self._made_key(name), body)

    def _upload(self, name: str, parts: tuple[bytes, ...]) -> None:
        body = b"".join(parts)
        self._store.upload(self._made_key(name), parts, size=len(body), crc32c=crc32c(body))

    def _expect(self, name: str, body: bytes) -> None:
        got = self._store.get(self._prefix + name)
        if got != body:
            raise Broken(
                f"{len(got)} bytes came back, or others, where {len(body)} were put", "use a store that keeps what it is given"
            )

    def _refused(self, again: Callable[[], None], name: str, body: bytes) -> None:
        try:
            again()
        except AlreadyExists:
            self._expect(name, body)
        else:
            raise Broken("If-None-Match is ignored: a second write of one key was let through", _OVERWRITES)
