"""The manifests of a partition as a chain: each readable, each naming the hash of the one before it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from local_log.errors import Corrupt
from remote.errors import Invalid, NotFound
from remote.manifest import invariants
from remote.manifest.model import Gap, missing_ranges
from remote.manifest.store import Stored, load_version
from remote.object_keys import PartitionPath
from remote.object_store import ObjectReader
from remote.scrub.finding import Finding, Kind


def read_version(store: ObjectReader, path: PartitionPath, number: int) -> Stored | Finding:
    """One version, or why it cannot be read. Raises Unavailable."""
    key = path.manifest(number)
    try:
        return load_version(store, path, number)
    except NotFound:
        return Finding(Kind.missing_object, key, "it was listed, and is not there")
    except Corrupt as e:
        return Finding(Kind.corrupt_manifest, key, e.problem, e.position)
    except Invalid as e:
        return Finding(Kind.corrupt_manifest, key, str(e))


def check_chain(
    store: ObjectReader, path: PartitionPath, newest: Stored | Finding, versions: Sequence[int]
) -> Iterator[Stored | Finding]:
    """The versions below the newest that can be read, and what is wrong with the chain. Costs a request a version but the newest.

    `versions` are all that were listed, falling. A sweep takes the oldest first, so a chain may begin anywhere, but has no hole.
    """
    after, last = newest, versions[0]
    for number in versions[1:]:
        before = read_version(store, path, number)
        yield before
        if number != last - 1:
            yield Finding(
                Kind.broken_chain, path.manifest(last), f"it follows version {number}, and what was between is not there"
            )
        elif isinstance(before, Stored) and isinstance(after, Stored):
            yield from _check_step(path, before, after)
        after, last = before, number
    if last == 1 and isinstance(after, Stored) and after.manifest.parent_sha256:
        yield Finding(Kind.broken_chain, path.manifest(1), "version 1 names a parent")


def _check_step(path: PartitionPath, before: Stored, after: Stored) -> Iterator[Finding]:
    key = path.manifest(after.manifest.version)
    named = after.manifest.parent_sha256
    if named != before.sha256:
        problem = f"it names a parent with SHA-256 {named or 'none'}, and version {before.manifest.version} has {before.sha256}"
        yield Finding(Kind.broken_chain, key, problem)
        return
    # Holes are looked for among the entries themselves, in pages too: here the ledger counts as right.
    gaps = tuple(Gap(start, end, "", 0) for start, end in missing_ranges(after.manifest))
    try:
        invariants.check(before.manifest, replace(after.manifest, gaps=gaps))
    except Invalid as e:
        yield Finding(Kind.broken_invariant, key, str(e))
