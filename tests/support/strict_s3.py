"""A strict S3 server on loopback: versitygw, which Go builds once (a minute and a quarter) into the user's cache.

What moto lets pass, it refuses: wrong checksums, wrong conditions, ranges and signatures that do not fit.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import quick
from kept import TIMEOUT_SECONDS, cache, made_once
from real_kafka import free_ports, wait_for

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
ACCESS_KEY, SECRET_KEY = "strict", "strict-secret"


def available() -> bool:
    """Whether it has been built before, or there is Go to build it."""
    return _binary().exists() or shutil.which("go") is not None


def _binary() -> Path:
    return cache() / f"versitygw-{VERSION}" / "versitygw"


def built() -> Path:
    """The program, built if it has not been before."""
    return made_once(_binary(), _build, cache() / "go.lock")


def _build(binary: Path) -> None:
    # What Go needs on the way is ten times as large as what comes of it, and is of use to nobody else here.
    with TemporaryDirectory(dir=cache(), prefix="go-", ignore_cleanup_errors=True) as folder:
        places = {"GOBIN": f"{folder}/bin", "GOPATH": f"{folder}/path", "GOCACHE": f"{folder}/cache"}
        # Code that is not optimised is built in three quarters of the time, and serves a test as well.
        command = ["go", "install", "-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w", f"{MODULE}@{VERSION}"]
        environment = {**os.environ, **places, "GOFLAGS": "-modcacherw"}
        subprocess.run(command, check=True, capture_output=True, env=environment, timeout=TIMEOUT_SECONDS)
        Path(folder, "bin", "versitygw").rename(binary)


@contextmanager
def serving(folder: Path, port: int | None = None) -> Iterator[str]:
    """The URL of a server that keeps its buckets in `folder`; it ends with the block. Another may take over its `port`."""
    quick.starts_a_server()
    buckets = folder / "buckets"
    buckets.mkdir(parents=True, exist_ok=port is not None)
    port = port or free_ports()[0]
    command = [built(), "--quiet", "--port", f"127.0.0.1:{port}", "posix", buckets]
    environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    with open(folder / "versitygw.out", "wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        wait_for(port, process, "versitygw")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
