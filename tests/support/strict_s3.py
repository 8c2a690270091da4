"""A strict S3 server on loopback: versitygw, which Go builds once (a minute and a half) into the user's cache.

What moto lets pass, it refuses: wrong checksums, wrong conditions, ranges and signatures that do not fit.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import quick
from file_lock import alone
from kept import cache
from real_kafka import free_ports, wait_for

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
ACCESS_KEY, SECRET_KEY = "strict", "strict-secret"


def available() -> bool:
    """Whether it has been built before, or there is Go to build it."""
    return _binary().exists() or shutil.which("go") is not None


def _binary() -> Path:
    return cache() / f"versitygw-{VERSION}" / "versitygw"


def _built() -> Path:
    binary = _binary()
    if binary.exists():
        return binary
    with alone(cache() / "versitygw.lock"):  # two at once would take both cores for three minutes
        if binary.exists():
            return binary
        arriving = binary.parent.with_name(f"{binary.parent.name}.{os.getpid()}")
        # What Go needs on the way is ten times as large as what comes of it, and is of use to nobody else here.
        places = {"GOBIN": arriving / "bin", "GOPATH": arriving / "path", "GOCACHE": arriving / "cache"}
        environment = {**os.environ, **{name: str(path) for name, path in places.items()}, "GOFLAGS": "-modcacherw"}
        command = ["go", "install", "-trimpath", "-ldflags=-s -w", f"{MODULE}@{VERSION}"]
        try:
            subprocess.run(command, check=True, capture_output=True, env=environment)
            binary.parent.mkdir(exist_ok=True)
            (arriving / "bin" / binary.name).replace(binary)
        finally:
            shutil.rmtree(arriving, ignore_errors=True)
    return binary


@contextmanager
def serving(folder: Path, port: int | None = None) -> Iterator[str]:
    """The URL of a server that keeps its buckets in `folder`; it ends with the block. Another may take over its `port`."""
    quick.starts_a_server()
    buckets = folder / "buckets"
    buckets.mkdir(parents=True, exist_ok=port is not None)
    port = port or free_ports()[0]
    command = [_built(), "--quiet", "--port", f"127.0.0.1:{port}", "posix", buckets]
    environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    with open(folder / "versitygw.out", "wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        wait_for(port, process, "versitygw")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
