"""Who reads the archive: with a pin or in a hurry, all that a version has, and what must come of it."""

from local_log.engine.memory_records import batch_at
from local_log.errors import Corrupt, LogError, NotFound
from remote.keys import PartitionPath
from remote.manifest import pins
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.pins import Pin
from remote.manifest.store import load_newest
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.store.api import ObjectReader
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.keys import LocalKeyRing
from simulated.archive_tasks import KEYS, Act, Tasks
from simulated.judge import Judge, Reading
from simulated.schedule import MINUTE_MS, Actor

STAY = 0.5
"""The share of readers with a pin that keep it: they read on, and what they have opened stays theirs until it expires."""
RING = LocalKeyRing("simulation", "k0", KEYS)


def decoded(store: ObjectReader) -> DecodedBytes:
    """Segments as they were before they were encrypted."""
    return DecodedBytes(store, RING)


def archived(store: ObjectReader, manifest: Manifest) -> ArchivedLog:
    return ArchivedLog(store, manifest, reading=ReadContext(decoded))


def batches_of(log: ArchivedLog, start: int, end: int) -> dict[int, bytes]:
    """The batches of `[start, end)` by base offset, as a reader gets them; raises AssertionError for one that comes twice."""
    found: dict[int, bytes] = {}
    for chunk in log.chunks(start, end, fail_on_data_loss=False):
        columns = chunk.batches
        for base, last, at, stop in zip(
            columns.base_offset.tolist(),
            columns.last_offset.tolist(),
            columns.positions.tolist(),
            columns.end.tolist(),
            strict=True,
        ):
            if last >= start and base < end:
                assert base not in found, f"the batch at {base} comes twice"
                found[base] = bytes(memoryview(chunk.buffer)[at:stop])
    return found


def reads(tasks: Tasks, path: PartitionPath, *, pinned: bool) -> Act:
    """A reader of all of the newest version."""

    def act(actor: Actor) -> None:
        judge, store, waits, pin = tasks.judge, tasks.store(actor), tasks.waits, None
        if pinned:
            first = load_newest(store, path)
            if first is None or is_empty(first.manifest):
                return
            m = first.manifest
            start, end, lasts_ms = m.log_start_offset, m.end_offset, waits.pin_ms
            pin = pins.create(store, path, "reader", m.version, start, end, lasts_ms, actor, actor)
        begun = tasks.schedule.now
        stored = load_newest(store, path)
        if stored is None or is_empty(stored.manifest):
            return
        m = stored.manifest
        start, end = m.log_start_offset, m.end_offset
        until = begun + waits.delay_ms - MINUTE_MS
        if pin is not None:
            start, end = max(start, pin.start), min(end, pin.end)
            until = judge.obeyed_until(path, pin)
        reading = _reading(judge, m, start, end, actor.name, until, pin)
        judge.readings.append(reading)
        stays = pin is not None and actor.chance(STAY)
        try:
            log = archived(store, m)
            found, aborted = batches_of(log, start, end), log.aborted(start, end)
        except (Corrupt, NotFound) as e:
            if tasks.schedule.now < until:
                raise tasks.schedule.violated(f"{actor.name} of [{start}, {end}): {e!r}") from e
            return
        finally:
            if not actor.is_dead and not stays:
                judge.readings.remove(reading)
        judge.read(path, found, actor.name)
        judge.check_whole(m, found, start, end, actor.name)
        asked = {base: body for base, body in found.items() if batch_at(body, 0).last_offset >= start and base < end}
        judge.check_aborted(path, asked, aborted, actor.name)
        if pin is not None and not stays:
            pins.release(store, path, pin)

    return act


def is_empty(manifest: Manifest) -> bool:
    return manifest.is_deleted or manifest.end_offset <= manifest.log_start_offset


def _reading(judge: Judge, manifest: Manifest, start: int, end: int, who: str, until: int, pin: Pin | None) -> Reading:
    """What the reader may count on, and its pin; nothing if opening the version took so long that this is no longer due to it."""
    if judge.schedule.now >= until:
        return Reading(who, frozenset(), until)
    entries = Entries.of(judge.unwatched, manifest)
    try:
        path = manifest.path
        keys = {path.segment(name) for e in entries.overlapping(start, end) for name in (e.log_name, e.aux_name)}
        keys |= {path.manifest(manifest.version), *(path.page(name) for name in entries.page_names())}
        keys |= {path.pin(pin.id)} if pin is not None else set()
    except LogError as e:
        raise judge.violated(f"{who} of version {manifest.version}: {e!r}") from e
    return Reading(who, frozenset(keys), until)
