"""A writer that holds the manifest it has committed last, and builds the next version on it without loading it again.

What a commit lists after its put says whether that version is the newest. So one commit after the other costs a put and a
listing. Where another writer comes in between, the next put finds its key taken: then, and only then, the newest is loaded.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from remote.manifest.model import Manifest
from remote.manifest.store import ManifestWriter, Stored, load_newest, newest_version

HELD_MS_MAX: Final = 60_000
"""A version that was the newest longer ago than this is asked for before anything is uploaded on the strength of it."""


@dataclass(slots=True)
class HeldManifest:
    """The newest version of a partition as its writer knows it; `first` is the version 0 that a chain starts from.

    Other writers may have gone on: what is decided by it is decided again by the commit.
    """

    writer: ManifestWriter
    first: Manifest
    known: Stored
    _asked_ms: int = field(init=False)
    _newest: int = field(init=False)

    def __post_init__(self) -> None:
        self._newest = self.known.manifest.version
        self._asked_ms = self.writer.clock.now_ms()

    @property
    def manifest(self) -> Manifest:
        """The version that is held."""
        return self.known.manifest

    def refresh(self) -> Manifest:
        """The newest version: the held one, or a newer one, which is looked for if the last listing is older than HELD_MS_MAX.

        Costs no request if a commit has just listed the versions and found none newer. Raises Unavailable, Corrupt, Newer.
        """
        age_ms = self.writer.clock.now_ms() - self._asked_ms
        if not 0 <= age_ms <= HELD_MS_MAX:
            self._newest = newest_version(self.writer.store, self.writer.path)
        if self._newest != self.known.manifest.version:
            self._hold(load_newest(self.writer.store, self.writer.path) or Stored(self.first, ""))
        return self.manifest

    def commit(self, change: Callable[[Manifest], Manifest]) -> Manifest:
        """As `ManifestWriter.commit`."""
        committed = self.writer.commit_on(self.known, self.first, change)
        if committed.stored is not self.known:
            self._hold(committed.stored, committed.newest)
        return self.manifest

    def _hold(self, stored: Stored, newest: int = 0) -> None:
        self.known, self._newest = stored, newest or stored.manifest.version
        self._asked_ms = self.writer.clock.now_ms()
