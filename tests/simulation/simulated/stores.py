"""The object store of a simulation: objects in memory, and the way to it of each actor, on which calls fail as real ones do."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from random import Random  # noqa: TID251  # seeded
from typing import Any, TypeVar

from archive_fakes import MemoryStore

from local_log.errors import AlreadyExists, Invalid, NotFound, Unavailable, Unknown
from remote.store.api import AbandonedUpload, Body, ObjectMeta
from simulated.schedule import CREDENTIALS, HOUR_MS, Actor, Died, Schedule

T = TypeVar("T")

LISTED_AT_ONCE = 4
"""Objects in one answer of a listing: others write and delete between two of them."""
PART_BYTES = 512
LATE_MS_MAX = 6 * HOUR_MS

READ_FAULTS = ("unavailable", "killed before")
AUX = ".aux"
FOLDERS = {"/manifest/pages/": "page", "/manifest/": "manifest", "/segments/": "segment", "/writes/": "record", "/pins/": "pin"}
WRITE_FAULTS = (*READ_FAULTS, "answer lost", "late", "twice", "killed after")


def fate_of(random: Random, kinds: tuple[str, ...], share: float, credentials: float) -> tuple[str, int]:
    """What becomes of a call of which so many fail, and for how long it is late. `kinds` are the ways in which it may fail."""
    if not kinds:
        return "", 0
    if credentials and random.random() < credentials:
        return CREDENTIALS, 0
    if random.random() >= share:
        return "", 0
    kind = random.choice(kinds)
    return kind, random.randrange(LATE_MS_MAX) if kind == "late" else random.randrange(HOUR_MS) if kind == "twice" else 0


def kind_of(key: str) -> str:
    """What kind of object is under a key; what a segment has beside its log is a kind of segment, too."""
    kind = next((kind for folder, kind in FOLDERS.items() if folder in key), "")
    return f"{kind} indexes" if key.endswith(AUX) else kind


class Faults:
    """The calls that are still on their way to the store."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.late: list[tuple[int, str, Callable[[], Any]]] = []

    def land(self, *, all_of_them: bool = False) -> None:
        """Calls that were on their way reach the store; nobody hears what comes of them."""
        due = [one for one in self.late if all_of_them or one[0] <= self.schedule.now]
        for one in due:
            self.late.remove(one)
            self.schedule.tell("store", f"takes in a late {one[1]}")
            with suppress(AlreadyExists, NotFound):
                one[2]()


class JudgedStore(MemoryStore):
    """The objects. `puts` and `deletes` are asked before each change; they raise Violation."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock)
        self.url = "simulated://store"
        self.puts: Callable[[str, bytes], None] = lambda key, body: None
        self.deletes: Callable[[str], None] = lambda key: None
        self._keys: list[str] = []
        """In order, as they are listed: they are of ASCII characters."""

    def first_from(self, key: str) -> str | None:
        """The first key that is this one or comes after it."""
        at = bisect_left(self._keys, key)
        return self._keys[at] if at < len(self._keys) else None

    def keys_below(self, prefix: str, start_after: str = "", limit: int | None = None) -> Sequence[str]:
        """The keys that begin so, in order."""
        at = bisect_right(self._keys, start_after) if start_after >= prefix else bisect_left(self._keys, prefix)
        end = bisect_left(self._keys, f"{prefix}\x7f", at)  # no key has this character
        return self._keys[at : end if limit is None else min(end, at + limit)]

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        keys = self.keys_below(prefix, start_after, limit)
        return iter([ObjectMeta(key, len(self.objects[key]), None, self.modified[key]) for key in keys])

    def list_folders(self, prefix: str) -> Iterator[str]:
        found: list[str] = []
        key = self.first_from(prefix)
        while key is not None and key.startswith(prefix):
            name, slash, _ = key[len(prefix) :].partition("/")
            found += [name] if slash else []
            key = self.first_from(f"{prefix}{name}0" if slash else f"{key}\0")  # 0 comes after the slash
        return iter(found)

    def _create(self, key: str, body: bytes) -> None:
        if key in self.objects:
            raise AlreadyExists(key)
        self.puts(key, body)
        super()._create(key, body)
        insort(self._keys, key)

    def delete(self, key: str) -> None:
        if key in self.objects:
            self.deletes(key)
            del self._keys[bisect_left(self._keys, key)]
        super().delete(key)


class StoreOf:
    """The store as one actor reaches it. Each call lets others run first, and may fail in one of the ways of `WRITE_FAULTS`."""

    def __init__(self, actor: Actor, inner: JudgedStore, faults: Faults) -> None:
        self.actor, self.inner, self.faults, self.url = actor, inner, faults, inner.url
        self.schedule = actor.schedule

    def call(self, verb: str, key: str, act: Callable[[], T], kinds: tuple[str, ...] = READ_FAULTS) -> T:
        """What becomes of a call."""
        actor, schedule = self.actor, self.schedule
        fate = actor.pause(kinds, f"{'write' if kinds is WRITE_FAULTS else 'read'} {kind_of(key)}")
        if fate == CREDENTIALS:
            schedule.faults[fate] += 1
            actor.refused_until = schedule.now + HOUR_MS
        if schedule.now < actor.refused_until and not schedule.is_calm:
            raise Invalid(f"{self.url}: the credentials have expired; renew them")
        if fate:
            return self._fails(verb, key, act, fate)
        if schedule.story is not None:
            schedule.tell(actor.name, f"{verb} {key}")
        return act()

    def _fails(self, verb: str, key: str, act: Callable[[], T], kind: str) -> T:
        actor, schedule = self.actor, self.schedule
        schedule.faults[f"{verb}: {kind}"] += 1
        schedule.tell(actor.name, f"{verb} {key}: {kind}")
        unanswered = Unavailable if verb == "delete" else Unknown
        if kind == "unavailable":
            raise Unavailable(f"{self.url}: {verb} {key}")
        if kind == "killed before":
            raise actor.die()
        if kind == "late":
            self.faults.late.append((schedule.now + actor.fate_ms, f"{verb} {key}", act))
            raise unanswered(f"{self.url}: no answer to {verb} {key}")
        if kind == "twice":
            answer = act()
            self.faults.late.append((schedule.now + actor.fate_ms, f"second {verb} {key}", act))
            return answer
        with suppress(AlreadyExists):
            act()
        if kind == "killed after":
            raise actor.die()
        raise unanswered(f"{self.url}: the answer to {verb} {key} was lost")

    # ObjectStore

    def get(self, key: str) -> bytes:
        return self.call("get", key, lambda: self.inner.get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        return self.call("get_range", key, lambda: self.inner.get_range(key, start, end))

    def head(self, key: str) -> ObjectMeta:
        return self.call("head", key, lambda: self.inner.head(key))

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        left = limit
        while left is None or left > 0:
            count = LISTED_AT_ONCE if left is None else min(left, LISTED_AT_ONCE)
            page = self.call("list", prefix, lambda n=count, at=start_after: [*self.inner.list(prefix, limit=n, start_after=at)])
            yield from page
            if len(page) < count:
                return
            start_after = page[-1].key
            left = None if left is None else left - len(page)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return iter(self.call("list_folders", prefix, lambda: [*self.inner.list_folders(prefix)]))

    def put_if_absent(self, key: str, body: Body) -> None:
        sent = bytes(body)
        self.call("put_if_absent", key, lambda: self.inner.put_if_absent(key, sent), WRITE_FAULTS)

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        sent = b"".join(bytes(part) for part in parts)  # what lands late is what was sent
        try:
            self.call("upload", key, lambda: self.inner.upload(key, [sent], size=size, crc32c=crc32c), WRITE_FAULTS)
        except (Died, Unavailable):
            upload = AbandonedUpload(key, self.actor.new_id(), self.schedule.now)
            if len(sent) > PART_BYTES and key not in self.inner.objects:
                self.inner.uploads.append(upload)
            raise

    def delete(self, key: str) -> None:
        self.call("delete", key, lambda: self.inner.delete(key), WRITE_FAULTS)

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        return iter(self.call("abandoned_uploads", prefix, lambda: [*self.inner.abandoned_uploads(prefix, before_ms)]))

    def abort_upload(self, upload: AbandonedUpload) -> None:
        self.call("abort_upload", upload.key, lambda: self.inner.abort_upload(upload))


class Unwatched:
    """The objects, read past all gates."""

    def __init__(self, inner: MemoryStore) -> None:
        self.inner, self.url = inner, inner.url

    def get(self, key: str) -> bytes:
        body = self.inner.objects.get(key)
        if body is None:
            raise NotFound(f"{self.url}: no object {key}")
        return body

    def get_range(self, key: str, start: int, end: int) -> bytes:
        return self.get(key)[start:end]

    def head(self, key: str) -> ObjectMeta:
        return self.inner.head(key)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        return self.inner.list(prefix, limit=limit, start_after=start_after)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self.inner.list_folders(prefix)
