"""Time travel: the manifest of a partition as it was at a version or a time, as long as that version is stored.

A version lists the segments of its time. If retention has deleted one since, reading it raises an error that names it.

A write over many partitions is visible from the time of its decision, not from the time when a partition's manifest has resolved
it: at any time it is visible in all partitions or in none.
"""

from bisect import bisect_right
from contextlib import suppress

from local_log.errors import NotFound
from remote.manifest.chain import stored_versions
from remote.manifest.model import Manifest
from remote.manifest.store import load_version
from remote.manifest.write_record import as_decided
from remote.manifest.writes import resolved, was_never_there
from remote.store.api import ObjectStore
from spark_jobs.errors import OptionError
from spark_jobs.source.options import ReadOptions


def time_travel(store: ObjectStore, newest: Manifest, options: ReadOptions, *, are_many: bool) -> Manifest | None:
    """The manifest that the options ask for; None where the partition came later than the time asked for.

    `are_many` says whether other partitions are read, too. Raises NotFound for a version that is not stored, or a time of which
    no version is left; OptionError where no version is named for the partition.
    """
    if options.as_of_version is not None:
        return _at_version(store, newest, _version_of(newest, options, are_many))
    if options.as_of_timestamp is not None:
        return _at_time(store, newest, options.as_of_timestamp)
    return newest


def _version_of(newest: Manifest, options: ReadOptions, are_many: bool) -> int:
    asked, name = options.as_of_version, f"{newest.topic}-{newest.partition}"
    if isinstance(asked, int):
        if are_many:
            raise OptionError(
                f"asOfVersion {asked} is one version, and several partitions are read, each of which counts its own; name one "
                f'for each, as in {{"{newest.topic}":{{"{newest.partition}":{asked}}}}}, or use asOfTimestamp'
            )
        return asked
    version = (asked or {}).get(newest.topic, {}).get(newest.partition)
    if version is None:
        raise OptionError(
            f"asOfVersion names no version for {name}; one for every partition is needed, the newest is {newest.version}"
        )
    return version


def _at_version(store: ObjectStore, newest: Manifest, version: int) -> Manifest:
    if version == newest.version:
        return newest
    stored = sorted(v.version for v in stored_versions(store, newest.path))
    if version in stored:
        with suppress(NotFound):  # swept meanwhile
            return load_version(store, newest.path, version).manifest
    raise NotFound(
        f"asOfVersion {version}: {newest.topic}-{newest.partition} has versions {stored[0]} to {stored[-1]}, what was "
        "before has been swept"
    )


def _at_time(store: ObjectStore, newest: Manifest, time_ms: int) -> Manifest | None:
    """The last version that was committed by then, with the write that was pending there if it was decided on by then."""
    if newest.committed_at_ms <= time_ms:
        return newest
    versions, path = sorted(v.version for v in stored_versions(store, newest.path)), newest.path
    at = bisect_right(versions, time_ms, key=lambda version: load_version(store, path, version).manifest.committed_at_ms)
    if at:
        then = _as_of_then(store, load_version(store, path, versions[at - 1]).manifest, time_ms)
        return None if was_never_there(then) else then
    if versions[0] > 1:
        raise NotFound(
            f"asOfTimestamp {time_ms}: the oldest stored version of {newest.topic}-{newest.partition} is {versions[0]}, of a "
            "later time; older versions have been swept"
        )
    return None


def _as_of_then(store: ObjectStore, manifest: Manifest, time_ms: int) -> Manifest:
    decided = as_decided(store, manifest)
    return decided if decided.committed_at_ms <= time_ms else resolved(manifest, None)
