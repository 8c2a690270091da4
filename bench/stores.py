"""Uploading a segment beside what anybody would use instead, in one run on the same file: a plain copy, and boto3's upload_file.

Every contestant makes a durable object: a copy is synced, since ours is. The servers run in processes of their own.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import real_kafka
import strict_s3

from local_log.formats.checksum import crc32c
from local_log.os_disk import OsDisk
from remote.segment.upload import PART_BYTES
from remote.store.api import ObjectStore
from remote.store.open import open_store

FILE_BYTES = 128 << 20
_numbers = count(1)


def run(out: Path, rounds: int) -> None:
    """Prints MB/s of each, and how ours stand to the others'."""
    out.mkdir(parents=True)
    source = out / "segment"
    with open(source, "wb") as file:
        for _ in range(FILE_BYTES >> 20):
            file.write(os.urandom(1 << 20))
    checksum = crc32c(source.read_bytes())
    print(f"Uploading a segment of {FILE_BYTES / 1e6:.0f} MB")
    folder = open_store(str(out / "archive"))
    compare(
        "a folder", "plain copy, synced", rounds, lambda: ours(folder, source, checksum), lambda: copied(source, out / "copy")
    )
    for name, serving in (("moto", moto), ("versitygw", strict_s3.serving)):
        if name == "versitygw" and not strict_s3.available():
            print("  versitygw is built by Go, which is not here")
            continue
        with serving(out / name) as url:
            on_server(name, url, source, checksum, rounds)
    shutil.rmtree(out)


def on_server(name: str, url: str, source: Path, checksum: int, rounds: int) -> None:
    """Ours and boto3's own against one S3 server."""
    client = client_of(url)
    store = open_store("s3://bench/archive")

    def by_boto3() -> float:
        key = f"boto3/{next(_numbers)}"
        taken = seconds(lambda: client.upload_file(str(source), "bench", key))
        client.delete_object(Bucket="bench", Key=key)
        return taken

    compare(name, "boto3's upload_file", rounds, lambda: ours(store, source, checksum), by_boto3)
    client.close()


def client_of(url: str) -> Any:
    """boto3's client for a server, which from now on is everybody's here, and a bucket `bench` on it."""
    os.environ |= {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": strict_s3.ACCESS_KEY, "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ |= {"AWS_SECRET_ACCESS_KEY": strict_s3.SECRET_KEY, "AWS_EC2_METADATA_DISABLED": "true"}
    import boto3.session

    client = boto3.session.Session().client("s3")
    client.create_bucket(Bucket="bench")
    return client


def compare(
    where: str, what: str, rounds: int, by_us: Callable[[], float], by_them: Callable[[], float], size: int = FILE_BYTES
) -> None:
    """Lets them take turns over so many bytes; the best of each counts, and the ratio of their speeds."""
    best_us, best_them = (min(times) for times in zip(*((by_us(), by_them()) for _ in range(rounds + 2)), strict=True))
    us, them = (size / 1e6 / best for best in (best_us, best_them))
    print(f"  {f'to {where}':16} ours {us:7.0f} MB/s   {what} {them:7.0f} MB/s   {us / them:6.2f}")


def ours(store: ObjectStore, source: Path, checksum: int) -> float:
    """Seconds that an upload takes, read from the file as an offload does."""
    disk, path, key = OsDisk(), str(source), f"segments/{next(_numbers)}"
    parts = (disk.read(path, start, min(FILE_BYTES, start + PART_BYTES)) for start in range(0, FILE_BYTES, PART_BYTES))
    taken = seconds(lambda: store.upload(key, parts, size=FILE_BYTES, crc32c=checksum))
    if store.head(key).size != FILE_BYTES:
        raise AssertionError(f"{key} is not what was sent")
    store.delete(key)
    return taken


def copied(source: Path, target: Path) -> float:
    """Seconds that a copy takes until it is on disk."""

    def copy() -> None:
        shutil.copyfile(source, target)
        for path in (target, target.parent):
            synced(path)

    taken = seconds(copy)
    target.unlink()
    return taken


def synced(path: Path) -> None:
    """A file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def seconds(act: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


@contextmanager
def moto(folder: Path) -> Iterator[str]:
    """The URL of moto's server, in a process of its own."""
    folder.mkdir()
    port, _ = real_kafka.free_ports()
    with open(folder / "moto.out", "wb") as out:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        real_kafka.wait_for(port, process, "moto")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
