"""A whole offload beside what anybody would do instead, in one run on the same files: copy them, or upload them with boto3.

A log directory of four partitions, each with one segment that is due. An offload checks every batch, verifies every object and
commits a manifest for each; a copy is synced, file by file, since ours is. As many partitions at a time as by default.
"""

import os
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import stores as uploads  # beside this file
import strict_s3
import transforms  # beside this file
from logs_to_archive import local_logs

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, offset_file
from remote.archive import create_archive, newest_manifests
from remote.clock import RandomIds, SystemClock
from remote.store.api import ObjectStore
from remote.store.open import open_store
from tiering.config.shared import THREADS
from tiering.offload.run import OffloadLogs

PARTITIONS = 4
SEGMENT_BYTES = 128 << 20
_numbers = count(1)


def run(out: Path, rounds: int) -> None:
    """Prints MB/s of each, and how ours stand to the others'."""
    files, size = make_logs(out / "logs")
    print(f"Offloading {PARTITIONS} partitions with {size / 1e6:.0f} MB due, {THREADS} at a time")

    def to_folder() -> float:
        folder = out / f"archive-{next(_numbers)}"
        taken = offloaded(out / "logs", open_store(str(folder)))
        shutil.rmtree(folder)
        return taken

    uploads.compare("a folder", "plain copy, synced", rounds, to_folder, lambda: copied(files, out / "copy"), size)
    for name, serving in (("moto", uploads.moto), ("versitygw", strict_s3.serving)):
        if name == "versitygw" and not strict_s3.available():
            print("  versitygw is built by Go, which is not here")
            continue
        with serving(out / name) as url:
            client = uploads.client_of(url)

            def to_server() -> float:
                prefix = f"archive-{next(_numbers)}"
                store = open_store(f"s3://bench/{prefix}")
                taken = offloaded(out / "logs", store)
                for meta in list(store.list("")):
                    store.delete(meta.key)
                return taken

            def by_boto3(client: Any = client) -> float:
                return uploaded(client, files)

            uploads.compare(name, "boto3's upload_file", rounds, to_server, by_boto3, size)
            client.close()
    shutil.rmtree(out)


def make_logs(folder: Path) -> tuple[list[Path], int]:
    """A log directory; gives the files that are due, and the bytes of their logs."""
    size = transforms.make_log(folder, SEGMENT_BYTES)
    first = folder / f"{transforms.TOPIC}-0"
    for number in range(1, PARTITIONS):
        shutil.copytree(first, folder / f"{transforms.TOPIC}-{number}")
    checkpoint = folder / HIGH_WATERMARK_CHECKPOINT
    end = checkpoint.read_text().split()[-1]
    lines = "".join(f"{transforms.TOPIC} {number} {end}\n" for number in range(PARTITIONS))
    checkpoint.write_text(f"0\n{PARTITIONS}\n{lines}")
    due = sorted(folder.glob(f"*/{offset_file(0, '')}*"))
    os.sync()  # what is still to be written of the logs would be in everybody's way
    return due, size * PARTITIONS


def offloaded(log_dir: Path, store: ObjectStore) -> float:
    """Seconds that an offload of the whole directory takes."""
    clock, ids = SystemClock(), RandomIds()
    create_archive(store, clock, ids)
    offload = OffloadLogs(store, clock, ids, "bench", lambda _: None)
    errors = []

    def act() -> None:
        errors.extend(done.error for _, done in offload.run(local_logs(log_dir).values(), THREADS) if done.error)

    taken = uploads.seconds(act)
    if errors:
        raise errors[0]
    if len(newest_manifests(store, transforms.TOPIC)) != PARTITIONS:
        raise AssertionError("not all partitions were archived")
    return taken


def copied(files: list[Path], target: Path) -> float:
    """Seconds that a copy takes until it is on disk."""

    def act() -> None:
        for file in files:
            copy = target / file.parent.name / file.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            for path in (copy, copy.parent):
                uploads.synced(path)

    taken = uploads.seconds(act)
    shutil.rmtree(target)
    return taken


def uploaded(client: Any, files: list[Path]) -> float:
    """Seconds that boto3 takes, with its own threads for large files."""
    keys = [f"boto3/{file.parent.name}/{file.name}" for file in files]
    taken = uploads.seconds(lambda: [client.upload_file(str(f), "bench", key) for f, key in zip(files, keys, strict=True)])
    for key in keys:
        client.delete_object(Bucket="bench", Key=key)
    return taken
