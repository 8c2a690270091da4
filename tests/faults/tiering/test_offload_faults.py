"""An offload with a fault at every call of the store, another writer after it, and the same offload again.

After each of these: every version follows the one before it, what a manifest names is there, what could be read can be read, and
at the end all that is due is archived, each offset once. What is left over no manifest names. Pages are as small as they get, so
that writing them falls into each run.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import pytest
from archive_fakes import (
    AppliesLate,
    CountingIds,
    Crash,
    Door,
    FixedClock,
    LosesAnswer,
    MemoryStore,
    verbs,
)
from crc32c import crc32c
from golden_logs import broker_logs
from logs_to_archive import cut_finer, local_logs, path_of
from made_manifests import assert_sound_chain
from one_offload import due_ranges
from store_faults import FAULTS, Fault

from local_log.errors import AlreadyExists, Fenced, Unavailable, Unknown
from local_log.log_reader import LogReader
from remote import keys as object_keys
from remote.clock import Ids
from remote.keys import PartitionPath
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest, never_archived
from remote.manifest.store import ManifestWriter, claim, load_newest
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from tiering.offload import copy as offload_room
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan
from tiering.sweep import collect as sweep

pytestmark = pytest.mark.usefixtures("pages_decoded_once")

PARTITION = "g-compacted-txn-0"
LIMITS = Limits(inline_max=1, page_entries=1, fan_out=1, deleting_max=4)
SEGMENTS = 3
"""That are due; what follows is not replicated yet."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> LogReader:
    folder = broker_logs(tmp_path_factory.mktemp("faults"), PARTITION)
    cut_finer(folder / PARTITION, 5)
    log = local_logs(folder)[PARTITION]
    replicated = log.segments[SEGMENTS].base_offset
    return LogReader(log.disk, log.folder, log.partition, log.segments, 0, replicated)


def due(log: LogReader) -> list[tuple[int, int]]:
    return due_ranges(log)[:SEGMENTS]


def run(store: ObjectStore, log: LogReader, ids: Ids, source: str) -> list[Done]:
    """Plans and offloads one log; an error of the plan is a result, as the command has it."""
    try:
        due = plan(log, store)
    except (Unavailable, Unknown) as e:
        return [Done(None, error=e)]
    return list(offload(due, OffloadRun(store, FixedClock(), ids, source, lambda _: None, limits=LIMITS)))


@cache
def calls_of_a_quiet_run(log: LogReader) -> tuple[str, ...]:
    door = Door(MemoryStore())
    assert [d.error for d in run(door, log, CountingIds(), "a") if d.error] == []
    return tuple(verbs(door.calls))


# what must hold


def named_objects(store: ObjectStore, manifest: Manifest) -> dict[str, tuple[int, int]]:
    """Keys of what a manifest names, with size and CRC-32C (of pages -1, since reading them has checked it)."""
    entries, path = Entries.of(store, manifest), manifest.path
    found = {path.segment(o.name): (o.size, o.crc32c) for e in entries for o in (e.stored_log, e.stored_aux)}
    return found | {path.page(name): (-1, -1) for name in entries.page_names()}


def readable(store: ObjectStore, path: PartitionPath) -> dict[int, bytes]:
    """The bytes of every batch that the archive gives, by base offset."""
    newest = load_newest(store, path)
    if newest is None:
        return {}
    archived = ArchivedLog(store, newest.manifest)
    found: dict[int, bytes] = {}
    for chunk in archived.chunks(newest.manifest.log_start_offset, newest.manifest.end_offset):
        b = chunk.batches
        for base, start, end in zip(b.base_offset.tolist(), b.positions.tolist(), b.end.tolist(), strict=True):
            assert base not in found, "each offset once"
            found[base] = bytes(memoryview(chunk.buffer)[start:end])
    return found


def assert_holds(store: MemoryStore, path: PartitionPath, before: dict[int, bytes]) -> dict[int, bytes]:
    """The invariants of whatever is committed; gives what can be read, which is no less than `before`."""
    if load_newest(store, path) is None:
        assert before == {}
        return {}
    newest = assert_sound_chain(store, path)
    for key, (size, crc) in named_objects(store, newest).items():
        body = store.objects[key]
        assert size < 0 or (len(body), crc32c(body)) == (size, crc), key
    assert newest.gaps == ()
    now = readable(store, path)
    assert before.items() <= now.items()
    return now


def assert_whole(store: MemoryStore, log: LogReader) -> None:
    """All that is due is archived, once, and reads as it lies in the log."""
    path = path_of(log)
    newest = assert_sound_chain(store, path)
    ranges = [(e.base_offset, e.end_offset) for e in Entries.of(store, newest)]
    assert ranges == due(log)
    assert newest.segment_count == newest.version == len(ranges), "one commit a segment, and none for nothing"
    assert b"".join(readable(store, path).values()) == b"".join((s.read(".log") or b"") for s in log.segments[: len(ranges)])


def leftovers(store: MemoryStore, path: PartitionPath) -> set[str]:
    """Keys of segments and pages that the newest version does not name."""
    newest = load_newest(store, path)
    named = named_objects(store, newest.manifest).keys() if newest else set()
    return {k for k in store.objects if k.startswith((path.segments, path.pages))} - named


def swept(store: MemoryStore, path: PartitionPath, ids: Ids) -> None:
    """A month later, what nobody names is deleted."""
    clock = FixedClock(FixedClock().now_ms() + 30 * 86_400_000)
    garbage = sweep.plan(store, path, clock.now_ms(), 86_400_000)
    assert set(sweep.sweep(garbage, store, clock, ids, clock.now_ms())) == set(garbage.all)


# the faults

BETWEEN = ["an offload", "an offload that claims"]


@dataclass
class Story:
    """One life of a partition: a first offload with a fault, another writer, perhaps, and the first one again.

    `told` are the stores that first offloads have left in other lives, with nothing under way: what follows is known of these.
    """

    log: LogReader
    between: str = "an offload"
    lands: str = "before the second"
    same_ids: bool = False
    told: set[frozenset[tuple[str, bytes]]] = field(default_factory=set)
    store: MemoryStore = field(default_factory=MemoryStore)

    def ids(self, prefix: str) -> CountingIds:
        return CountingIds("" if self.same_ids else prefix)

    def live(self, fault: Fault, number: int) -> None:
        path, seen = path_of(self.log), dict[int, bytes]()
        door = fault(self.store, number)
        with suppress(Crash):
            run(door, self.log, self.ids("a"), "a")
        if not (isinstance(door, AppliesLate) and door.late) and self._is_told():
            return
        seen = assert_holds(self.store, path, seen)
        if self.lands == "at once":
            self._land(door)
        if "claims" in self.between:
            first = never_archived(path.topic, path.topic_id, path.partition, self.log.log_start_offset)
            claim(self.store, first, FixedClock(), self.ids("c"), "b", LIMITS)
        if self.between != "nobody":
            assert [d.error for d in run(self.store, self.log, self.ids("b"), "a") if d.error] == []
            seen = assert_holds(self.store, path, seen)
        if self.lands == "before the second":
            self._land(door)
            seen = assert_holds(self.store, path, seen)
        results = run(self.store, self.log, self.ids("d"), "a")
        assert [d.error for d in results if d.error] == []
        seen = assert_holds(self.store, path, seen)
        self._land(door)
        assert_holds(self.store, path, seen)
        self._ends_well()

    def _is_told(self) -> bool:
        left, before = frozenset(self.store.objects.items()), len(self.told)
        self.told.add(left)
        return len(self.told) == before

    def _land(self, door: Door) -> None:
        if isinstance(door, AppliesLate):
            door.land()

    def _ends_well(self) -> None:
        """Nothing is left to do, and nothing is lost with what no manifest names."""
        path = path_of(self.log)
        if "claims" not in self.between:
            assert_whole(self.store, self.log)
        self.store.calls.clear()
        again = run(self.store, self.log, self.ids("e"), "a")
        assert [d.error for d in again if d.error] == []
        assert verbs(self.store.calls) == ["list", "get"]
        seen = readable(self.store, path)
        swept(self.store, path, self.ids("f"))
        assert leftovers(self.store, path) == set()
        assert readable(self.store, path) == seen


def stories(log: LogReader) -> Iterator[int]:
    yield from range(1, len(calls_of_a_quiet_run(log)) + 1)


@pytest.mark.parametrize("between", [*BETWEEN, "nobody"])
def test_a_fault_at_any_call_costs_nothing_that_the_next_run_does_not_bring(log: LogReader, between: str) -> None:
    told = set[frozenset[tuple[str, bytes]]]()
    for fault, number in product(["killed after"] if between == "nobody" else FAULTS, stories(log)):
        Story(log, between, told=told).live(FAULTS[fault], number)
    assert len(told) > 10


@pytest.mark.parametrize("lands", ["at once", "at the end"])
def test_a_call_that_lands_late_does_no_harm_whenever_it_does(log: LogReader, lands: str) -> None:
    for number in stories(log):
        Story(log, "an offload", lands).live(FAULTS["times out, lands later"], number)


def test_the_runs_write_pages_and_every_verb_is_hit(log: LogReader) -> None:
    calls = calls_of_a_quiet_run(log)
    assert {"list", "list_folders", "get", "upload", "head", "put_if_absent"} == set(calls)
    store = MemoryStore()
    run(store, log, CountingIds(), "a")
    newest = load_newest(store, path_of(log))
    assert newest is not None
    assert {ref.level for ref in newest.manifest.pages} >= {0, 1}
    assert len(due(log)) == SEGMENTS
    swept(store, path_of(log), CountingIds("f"))
    assert leftovers(store, path_of(log)) == set()


def test_a_lost_answer_to_every_put_costs_nothing(log: LogReader) -> None:
    store = MemoryStore()
    results = run(LosesAnswer(store, lambda verb, key: verb == "put_if_absent"), log, CountingIds(), "a")
    assert [d.error for d in results if d.error] == []
    assert_whole(store, log)


# claim


def claims(store: ObjectStore, log: LogReader, prefix: str) -> ManifestWriter:
    path = path_of(log)
    first = never_archived(path.topic, path.topic_id, path.partition, log.log_start_offset)
    return claim(store, first, FixedClock(), CountingIds(prefix), prefix, LIMITS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_claim_with_a_fault_at_any_call_takes_effect_once_or_not_at_all(log: LogReader, fault: str) -> None:
    quiet = Door(MemoryStore())
    claims(quiet, log, "a")
    for number in range(1, len(quiet.calls) + 1):
        store = MemoryStore()
        door = FAULTS[fault](store, number)
        writer = None
        with suppress(Crash, Unavailable, Unknown):
            writer = claims(door, log, "a")
        before = load_newest(store, path_of(log))
        if writer is not None:
            assert before is not None
            assert before.manifest.writer_epoch == writer.writer_epoch == 1, number
        if isinstance(door, AppliesLate):
            door.land()
        second = claims(store, log, "b")
        newest = assert_sound_chain(store, path_of(log))
        assert newest.writer_epoch == second.writer_epoch == newest.version <= 2
        if writer is not None:
            with pytest.raises(Fenced):
                writer.commit(newest, lambda m: m)


@pytest.mark.parametrize("number", range(1, 25, 3))
def test_a_writer_that_is_claimed_away_in_its_midst_stops_and_commits_nothing_more(log: LogReader, number: int) -> None:
    store = MemoryStore()
    taken: list[int] = []

    class ClaimsBefore(Door):
        def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
            if len(self.calls) == number:
                claims(store, log, "b")
                taken.append(assert_sound_chain(store, path_of(log)).version)
            return call()

    results = run(ClaimsBefore(store), log, CountingIds("a"), "a")
    newest = assert_sound_chain(store, path_of(log))
    errors = [d.error for d in results if d.error]
    if number > 2 and newest.segment_count < SEGMENTS:  # else its plan has seen the claim, or it was done
        assert [type(e) for e in errors] == [Fenced]
        assert newest.version == taken[0]
    assert newest.writer_epoch == 1
    assert [d.error for d in run(store, log, CountingIds("d"), "a") if d.error] == []
    assert [(e.base_offset, e.end_offset) for e in Entries.of(store, newest)] == due(log)[: newest.segment_count]


# the same checks see what would be wrong


def survives(log: LogReader, fault: str, **story: Any) -> bool:
    """Whether no check has found anything at any call."""
    try:
        for number in stories(log):
            Story(log, **story).live(FAULTS[fault], number)
    except (AssertionError, KeyError, AlreadyExists):
        return False
    return True


def test_the_mutant_that_commits_before_the_data_is_there_is_caught(log: LogReader, monkeypatch: pytest.MonkeyPatch) -> None:
    sound_copy, sound_commit = offload_room.copy_segment, ManifestWriter.commit_on
    waiting: list[Callable[[], None]] = []

    class PutsOff(Door):
        """Says that an object is there before it is."""

        def upload(self, key: str, parts: Any, *, size: int, crc32c: int) -> None:
            waiting.append(lambda: self.inner.upload(key, parts, size=size, crc32c=crc32c))

    def copy(store: ObjectStore, *args: Any, **options: Any) -> Any:
        waiting.clear()  # what a killed process has put off is lost
        monkeypatch.setattr("remote.segment.upload.verify", lambda *_: None)
        return sound_copy(PutsOff(store), *args, **options)

    def commit(writer: ManifestWriter, *args: Any) -> Any:
        committed = sound_commit(writer, *args)
        while waiting:
            waiting.pop(0)()
        return committed

    monkeypatch.setattr(offload_room, "copy_segment", copy)
    monkeypatch.setattr(ManifestWriter, "commit_on", commit)
    assert not survives(log, "killed before")


def test_the_mutant_that_takes_unknown_for_failed_and_cleans_up_is_caught(
    log: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_commit, sound_copy = ManifestWriter.commit_on, offload_room.copy_segment
    copied: list[str] = []

    def copy(store: ObjectStore, path: PartitionPath, *args: Any, **options: Any) -> Any:
        entry = sound_copy(store, path, *args, **options)
        copied[:] = [path.segment(entry.log_name), path.segment(entry.aux_name)]
        return entry

    def commit(writer: ManifestWriter, *args: Any) -> Any:
        try:
            return sound_commit(writer, *args)
        except Unknown:
            for key in copied:
                writer.store.delete(key)
            raise

    monkeypatch.setattr(offload_room, "copy_segment", copy)
    monkeypatch.setattr(ManifestWriter, "commit_on", commit)
    assert not survives(log, "takes effect, answer lost")


def test_the_mutant_that_takes_its_own_412_for_lost_is_caught(log: LogReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote.manifest.store._has_put_id", lambda *_: False)
    with pytest.raises((AssertionError, Fenced)):
        test_a_claim_with_a_fault_at_any_call_takes_effect_once_or_not_at_all(log, "takes effect, answer lost")


def test_the_mutant_whose_keys_have_no_id_of_their_own_is_caught(log: LogReader, monkeypatch: pytest.MonkeyPatch) -> None:
    sound_name = object_keys.segment_name

    def name(base_offset: int, epoch: int, segment_id: str, suffix: str) -> str:
        return sound_name(base_offset, epoch, "0" * 32, suffix)

    monkeypatch.setattr(object_keys, "segment_name", name)
    assert not survives(log, "killed before")


def test_the_mutant_whose_attempts_share_their_ids_is_caught(log: LogReader) -> None:
    assert not survives(log, "killed after", same_ids=True)
