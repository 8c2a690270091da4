"""`tiering rotate-keys`: wraps the data keys of archived segments with the current key."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from local_log.errors import Unavailable
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import archive_option, dry_run_option, keys_option, output_option, tell_unmatched, topics_option
from tiering.command.output import Row, emit, say
from tiering.machine import CLOCK, IDS, RANDOMNESS, open_archive_store

if TYPE_CHECKING:
    from remote import archive
    from remote.keys import PartitionPath
    from remote.manifest.model import Manifest
    from remote.store.api import ObjectStore
    from remote.transforms.keys import KeyRing
    from tiering.keys.rotate import RotationResult


@click.command("rotate-keys")
@archive_option(required=True)
@keys_option(required=True)
@topics_option()
@dry_run_option
@output_option()
@reports_errors
def command(archive_url: str, keys_address: str, topics: tuple[str, ...], dry_run: bool, output: str) -> Exit | None:
    """Wrap the data keys of archived segments with the current key of --keys, which must also have the previous keys.

    Manifests are signed with this key from then on. An archive without signatures needs --allow-plain.

    Only manifests and their pages are read and written. It may be stopped and run again at any time. Keep the previous keys
    until the manifests that refer to them have been swept: readers may still use them.

    \b
    Examples:
      tiering rotate-keys --archive s3://bucket/kafka --keys /etc/tiering/keys.json
    """
    from remote import archive
    from remote.transforms.key_rings import open_keys
    from remote.transforms.keys import check_key_ring
    from tiering.keys import rotate as engine

    keys = open_keys(keys_address)
    check_key_ring(keys, RANDOMNESS)
    store = open_archive_store(archive_url, keys_address, unverified_allowed=dry_run)
    archive.open_archive(store) if dry_run else archive.open_to_write(store, IDS)
    wanted = archive.matching_topics(store, topics)
    tell_unmatched(topics, wanted, store.url)
    results: list[RotationResult] = []

    def work() -> Iterator[Row]:
        for path, manifest in engine.partitions(store, wanted):
            results.append(_rotated(store, path, manifest, keys, dry_run=dry_run))
            if results[-1].error is not None:
                say(f"tiering: {results[-1].error}")
            yield _row(results[-1])
            if isinstance(results[-1].error, Unavailable):
                return  # the other partitions would wait for the same store, or for the same keys

    emit(work(), output)
    errors = [result.error for result in results if result.error is not None]
    return exit_code_of_all(errors, partly=any(result.rewrapped for result in results))


def _rotated(
    store: "ObjectStore",
    path: "PartitionPath",
    manifest: "Manifest | archive.UnreadableManifest",
    keys: "KeyRing",
    *,
    dry_run: bool,
) -> "RotationResult":
    from remote.manifest.model import Manifest
    from tiering.keys import rotate as engine
    from tiering.keys.rotate import RotationResult

    if not isinstance(manifest, Manifest):
        return RotationResult(path, error=manifest)
    planned = engine.plan_rotation(store, manifest, keys.current)
    rotator = engine.Rotator(store, keys, CLOCK, IDS, "rotate-keys")
    return planned if dry_run else rotator.rotate(planned, manifest)


def _row(result: "RotationResult") -> Row:
    return {
        "topic": result.path.topic,
        "partition": result.path.partition,
        "encrypted": result.encrypted,
        "due": result.due,
        "rewrapped": result.rewrapped,
        "signed": result.signed,
        "error": str(result.error) if result.error else None,
    }
