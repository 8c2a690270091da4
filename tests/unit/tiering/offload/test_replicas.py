"""Several replicas' directories, which have rolled at other offsets, archive into one partition: each offset is read once.

one      |------|------|------|------|···            ··· the active segment
other    |---------|----|---|-----------|··
archive  whatever of these came first, and of the rest what has an offset that was missing
"""

import random  # noqa: TID251  # seeded
import threading
from itertools import permutations
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, RunsBetween, verbs
from golden_logs import broker_logs
from logs_to_archive import all_records, copy_of, cut_finer, drop_segments_below, for_applications, local_logs, path_of, table_of
from made_manifests import assert_sound_chain

from local_log.errors import Conflict
from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT
from local_log.formats.visible_records import record_batches
from local_log.log_reader import LogReader
from remote.manifest.entries import Entries
from remote.manifest.model import Limits
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan

EPOCHS, TXN = "g-epochs-0", "g-txn-0"
CUTS = (4, 7, 11)
LIMITS = Limits(inline_max=3, page_entries=2, fan_out=2)


@pytest.fixture(scope="module", params=[EPOCHS, TXN])
def replicas(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[int, LogReader]:
    """Logs of the same records, cut into different numbers of segments."""
    found = {}
    for segments in CUTS:
        folder = broker_logs(tmp_path_factory.mktemp(f"replica-{segments}"), request.param)
        cut_finer(folder / request.param, segments)
        found[segments] = local_logs(folder)[request.param]
    return found


def run(store: ObjectStore, log: LogReader, name: str) -> list[Done]:
    prefix = f"{int(name):x}".rjust(2, "f")
    due = plan(log, store)
    run = OffloadRun(store, FixedClock(), CountingIds(prefix), f"replica-{name}", lambda _: None, limits=LIMITS)
    return list(offload(due, run))


def end_of(log: LogReader) -> int:
    """Where its last segment ends that is due."""
    return max(s.next_base_offset for s in log.segments if s.next_base_offset and s.next_base_offset <= log.last_stable_offset)


def assert_reads_as(store: MemoryStore, log: LogReader, end: int) -> None:
    """The archive holds `[start, end)`, and gives each record once, committed ones only where that is asked for."""
    manifest = assert_sound_chain(store, path_of(log))
    assert (manifest.end_offset, manifest.gaps) == (end, ())
    for entry in Entries.of(store, manifest):
        for stored in (entry.stored_log, entry.stored_aux):
            assert len(store.objects[log_path(log, stored.name)]) == stored.size
    archived = ArchivedLog(store, manifest)
    wanted = for_applications(all_records(log), archived.log_start_offset, end)
    for start in (archived.log_start_offset, end // 3, end - 1):
        part = wanted.filter(wanted["offset"].to_numpy() >= start) if start else wanted
        chunks = archived.chunks(start, end)
        assert table_of(record_batches(chunks, start, end), wanted).equals(part.combine_chunks())
    ours = {(t.producer_id, t.first_offset, t.last_offset) for t in archived.aborted(0, end)}
    assert ours == {(t.producer_id, t.first_offset, t.last_offset) for t in log.aborted(0, end)}


def log_path(log: LogReader, name: str) -> str:
    return path_of(log).segment(name)


def copied(results: list[Done]) -> list[tuple[int, int]]:
    assert [d.error for d in results if d.error] == []
    return [(d.entry.base_offset, d.entry.end_offset) for d in results if d.entry]


@pytest.mark.parametrize("order", list(permutations(CUTS)), ids=str)
@pytest.mark.slow
def test_replicas_archive_into_one_partition_in_any_order(replicas: dict[int, LogReader], order: tuple[int, ...]) -> None:
    store, archived_to = MemoryStore(), 0
    for number in order:
        for base, end in copied(run(store, replicas[number], str(number))):
            assert end > archived_to, "nothing is archived twice"
            assert base <= archived_to
            archived_to = end
    assert archived_to == max(map(end_of, replicas.values()))
    assert_reads_as(store, replicas[order[0]], archived_to)
    for number in order:
        store.calls.clear()
        assert copied(run(store, replicas[number], str(number))) == []
        assert "upload" not in verbs(store.calls)
    manifest = assert_sound_chain(store, path_of(replicas[order[0]]))
    assert set(manifest.local_log_start_offsets) <= {f"replica-{n}" for n in order}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.slow
def test_replicas_archive_in_turns_that_chance_has_given_them(replicas: dict[int, LogReader], seed: int) -> None:
    """Another replica's whole offload falls between two calls of the store of this one's."""
    r = random.Random(seed)
    one, two, three = r.sample(CUTS, 3)
    store = MemoryStore()
    at_calls = {r.randrange(1, 40): two, r.randrange(1, 40): three}
    actions = {at: lambda number=number: copied(run(store, replicas[number], str(number))) for at, number in at_calls.items()}
    copied(run(RunsBetween(store, actions), replicas[one], str(one)))
    assert_reads_as(store, replicas[one], assert_sound_chain(store, path_of(replicas[one])).end_offset)
    for number in CUTS:
        copied(run(store, replicas[number], str(number)))
    assert_reads_as(store, replicas[one], max(map(end_of, replicas.values())))


def test_replicas_archive_at_the_same_time(replicas: dict[int, LogReader]) -> None:
    store = MemoryStore()
    results: dict[int, list[Done]] = {}
    threads = [threading.Thread(target=lambda n=number: results.update({n: run(store, replicas[n], str(n))})) for number in CUTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.keys() == set(CUTS)
    for found in results.values():
        copied(found)
    assert_reads_as(store, replicas[CUTS[0]], max(map(end_of, replicas.values())))


def test_a_replica_that_starts_later_adds_what_is_new(tmp_path: Path, replicas: dict[int, LogReader]) -> None:
    one, other = replicas[CUTS[0]], replicas[CUTS[2]]
    folder = copy_of(Path(other.folder).parent, tmp_path / "later")
    name = str(other.partition)
    start = other.segments[3].base_offset
    drop_segments_below(folder, name, start)
    later = local_logs(folder)[name]
    store = MemoryStore()
    copied(run(store, one, "1"))
    before = assert_sound_chain(store, path_of(one)).end_offset
    assert all(end > before for _, end in copied(run(store, later, "2")))
    assert_reads_as(store, one, max(end_of(one), end_of(later)))


# another history


def with_epochs(folder: Path, partition: str, *epochs: tuple[int, int]) -> LogReader:
    lines = ["0", str(len(epochs)), *(f"{epoch} {start}" for epoch, start in epochs), ""]
    (folder / partition / LEADER_EPOCH_CHECKPOINT).write_text("\n".join(lines))
    return local_logs(folder)[partition]


@pytest.mark.parametrize(
    "epochs",
    [
        pytest.param([(0, 0), (2, 700), (3, 1_200), (4, 1_400)], id="an epoch that the archive does not know"),
        pytest.param([(0, 0), (2, 650), (4, 1_400)], id="an epoch that starts elsewhere"),
        pytest.param([(0, 0), (4, 1_400)], id="an epoch less"),
        pytest.param([(0, 0), (2, 700), (4, 1_300)], id="a later epoch that starts elsewhere"),
        pytest.param([(0, 0), (2, 700), (5, 1_400)], id="another epoch from there on, after a truncation"),
    ],
)
def test_a_replica_whose_history_is_another_one_is_refused_by_its_epochs(tmp_path: Path, epochs: list[tuple[int, int]]) -> None:
    """It has been truncated, or was never told to: what it has below the high watermark is not what was archived."""
    one = broker_logs(tmp_path / "one", EPOCHS)
    cut_finer(one / EPOCHS, 6)
    other = broker_logs(tmp_path / "other", EPOCHS)
    cut_finer(other / EPOCHS, 5)
    store = MemoryStore()
    copied(run(store, local_logs(one)[EPOCHS], "1"))
    before = dict(store.objects)
    for folder in (one, other):  # the partition goes on, so that there is something to archive
        log = local_logs(folder)[EPOCHS]
        for suffix in (".log", ".index", ".timeindex"):
            (folder / EPOCHS / f"{log.log_end_offset:020d}{suffix}").touch()
    results = run(store, with_epochs(other, EPOCHS, *epochs), "2")
    (error,) = [d.error for d in results if d.error]
    assert isinstance(error, Conflict)
    assert "2 from 700" in str(error)
    for epoch, start in epochs:
        assert f"{epoch} from {start}" in str(error)
    assert store.objects == before
    assert copied(run(store, local_logs(one)[EPOCHS], "1")) != []
