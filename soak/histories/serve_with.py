"""`tiering`, with a store that fails, and broken in one place if `--mutant NAME` comes first.

    python soak/histories/serve_with.py [--mutant NAME] FOLDER serve --own-log-dir …

While FOLDER has a file `store-fails`, no call to the archive is answered; otherwise one in fifty is not.
"""

import faulthandler
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

SOAK = Path(__file__).resolve().parents[1]
os.environ.setdefault("SOAK_FAILS_EVERY", "50")
sys.path[:0] = [str(SOAK.parent), str(SOAK)]

from failing_agent import Failing  # noqa: E402

from histories.mutants import MUTANTS, truncate_at_start  # noqa: E402
from histories.nemesis import STACKS  # noqa: E402
from local_log.errors import Unavailable  # noqa: E402
from remote.store import open as stores  # noqa: E402
from remote.store.api import ObjectStore  # noqa: E402
from tiering.cli import main  # noqa: E402

T = TypeVar("T")


class Outages(Failing):
    """`inner`, which is away while the file `marker` is there."""

    def __init__(self, inner: ObjectStore, marker: Path) -> None:
        super().__init__(inner)
        self._marker = marker

    def _called(self, verb: str, call: Callable[[], T]) -> T:
        if self._marker.exists():
            raise Unavailable(f"{self.url}: nobody answers {verb}")
        return super()._called(verb, call)


def run(words: list[str]) -> None:
    faulthandler.register(STACKS)
    mutant = None
    if words[0] == "--mutant":
        mutant, words = words[1], words[2:]
    marker = Path(words[0]) / "store-fails"
    opened = stores.open_backend
    stores.open_backend = lambda url: Outages(opened(url), marker)  # type: ignore[assignment,return-value]
    if mutant == "truncate-at-start":
        truncate_at_start(tuple(words[at + 1] for at, word in enumerate(words) if word == "--own-log-dir"))
    elif mutant is not None:
        MUTANTS[mutant]()
    sys.argv = ["tiering", *words[1:]]
    main()


if __name__ == "__main__":
    run(sys.argv[1:])
