"""Checks the manifest chain of a partition: every version is readable, names its parent's hash, and is a valid successor."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from local_log.errors import Corrupt, Invalid, Newer
from local_log.ranges import uncovered
from remote.keys import PartitionPath
from remote.manifest import invariants
from remote.manifest.chain import BrokenChain, walk_chain
from remote.manifest.gaps import COMPACTED, Gap, emptied_ranges
from remote.manifest.model import Manifest, missing_ranges
from remote.scrub.finding import Finding, Kind
from remote.store.api import ObjectReader


def check_chain(store: ObjectReader, path: PartitionPath, versions: Sequence[int]) -> Iterator[Manifest | Finding]:
    """The readable versions, newest first, and the findings about them. Makes one request for each version.

    `versions` are all listed versions in descending order. A sweep deletes the oldest first, so a chain may start at any version
    but has no gap.
    """
    after: Manifest | None = None
    broken: Finding | None = None
    at = versions[0]

    def noted() -> Iterator[int]:
        nonlocal at
        for number in versions:
            at = number
            yield number

    for found in walk_chain(store, path, noted()):
        if isinstance(found, BrokenChain):
            after = None
            if broken is not None:
                yield broken
            broken = Finding(Kind.broken_chain, found.file, found.problem)
        elif isinstance(found, Manifest):
            if broken is not None:
                yield broken
            yield found
            if after is not None:
                yield from _check_step(found, after)
            after, broken = found, None
        else:
            finding = _unreadable(found, path.manifest(at))
            if broken is not None and broken.key != finding.key:
                yield broken  # otherwise the damage explains the different hash, and one finding is enough
            yield finding
            after = broken = None
    if broken is not None:
        yield broken


def _unreadable(error: Corrupt | Newer, key: str) -> Finding:
    if isinstance(error, Corrupt):
        return Finding(Kind.corrupt_manifest, key, error.problem, error.position)
    return Finding(Kind.corrupt_manifest, key, str(error))


def _check_step(before: Manifest, after: Manifest) -> Iterator[Finding]:
    # CoverageCheck looks for gaps among the entries, also in pages; here the recorded gaps count as right.
    emptied = emptied_ranges(after.gaps)
    gaps = tuple(Gap(a, b, "", 0, "" if uncovered(emptied, a, b) else COMPACTED) for a, b in missing_ranges(after))
    try:
        invariants.check(before, replace(after, gaps=gaps))
    except Invalid as e:
        yield Finding(Kind.broken_invariant, after.path.manifest(after.version), str(e))
