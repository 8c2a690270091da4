"""An archive that grows while it is read: a golden log, cut finer, of which more segments are archived at each step."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from archive_fakes import CountingIds, FixedClock
from golden_logs import broker_logs
from logs_to_archive import cut_finer, offload_all, set_checkpoint

from remote.archive import newest_manifests
from remote.clock import RandomIds
from remote.manifest.model import Manifest
from remote.manifest.store import claim
from remote.manifest.transitions import retained, topic_deleted
from remote.store.open import open_store


class GrowingArchive:
    """The archive at `url` of one golden topic; `bases` are the offsets at which its segments start."""

    def __init__(self, folder: Path, topic: str, segments: int = 12) -> None:
        self.url = str(folder / "archive")
        self.topic = topic
        self._folder = folder
        self._whole = broker_logs(folder / "whole", f"{topic}-0")
        cut_finer(self._whole / f"{topic}-0", segments)
        self.bases = sorted(int(file.stem) for file in (self._whole / f"{topic}-0").glob("*.log"))
        self._step = 0

    def grow(self, segments: int, partition: int = 0, topic_id: str | None = None, without: Iterable[int] = ()) -> int:
        """Archives the segments before the one with this number, as `partition`; gives where the archive ends then.

        Those with numbers in `without` come damaged, so that they are refused.
        """
        self._step += 1
        logs = Path(shutil.copytree(self._whole, self._folder / f"step-{self._step}"))
        own = (logs / f"{self.topic}-0").rename(logs / f"{self.topic}-{partition}")
        for file in own.iterdir():
            if file.stem.isdigit() and int(file.stem) > self.bases[segments]:
                file.unlink()
        for number in without:
            log = own / f"{self.bases[number]:020d}.log"
            log.write_bytes(log.read_bytes()[:-1] + b"?")
        if topic_id is not None:
            (own / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
        for name in ("replication-offset-checkpoint", "log-start-offset-checkpoint"):
            lines = (logs / name).read_text().splitlines()[2:]
            set_checkpoint(logs / name, own.name, next((int(n) for t, _, n in map(str.split, lines) if t == self.topic), 0))
        clock = FixedClock(1_700_000_000_000 + self._step)
        offload_all(logs, open_store(self.url), clock=clock, ids=CountingIds(f"{self._step:04x}"), only=own.name)
        return self.bases[segments]

    def retain(self, start: int, partition: int = 0) -> None:
        """Gives up what lies below `start`, as retention does."""
        self._commit(partition, lambda m, now_ms: retained(m, start, now_ms))

    def delete_topic(self) -> None:
        """Deletes the topic, as `tiering delete-topic` does first."""
        for manifest in newest_manifests(open_store(self.url), self.topic):
            self._commit(manifest.partition, topic_deleted)

    def _commit(self, partition: int, change: Callable[[Manifest, int], Manifest]) -> None:
        self._step += 1
        store, clock = open_store(self.url), FixedClock(1_700_000_000_000 + self._step)
        manifest = newest_manifests(store, self.topic)[partition]
        claim(store, manifest, clock, RandomIds(), "tests").commit(manifest, lambda m: change(m, clock.now_ms()))
