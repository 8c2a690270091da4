"""The names of an archive's topics, as fast as a shell needs them that completes one: a folder is listed, a store's are kept.

A store is asked by a process of its own, without a terminal, since credentials may want one. Its answer is kept in the user's
cache. The first time the shell waits for it, but not for long; after that it gets what is kept at once, and the store is asked
again behind its back where that is older than a few minutes.
"""

import json
import os
import signal
import sys
from typing import Any, Final

from local_log.errors import LogError
from tiering.machine import CLOCK, local_disk, open_backend, writable_disk

WAIT_S: Final = 2.0
"""How long a shell waits for a store of which nothing is kept."""
ASKING_S_MAX: Final = 20
FRESH_MS: Final = 5 * 60_000
KEPT_MS_MAX: Final = 24 * 3_600_000
TOPICS_MAX: Final = 10_000
_ASK: Final = "import sys; from tiering.command.topic_names import ask; ask(sys.argv[1])"
_WHICH: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_ACCESS_KEY_ID")
"""Variables by which one address names another bucket."""


def archived_topics(url: str) -> set[str]:
    """The topics of the archive at this address, or what is known of them. Raises LogError."""
    if "://" not in url or url.startswith("file://"):
        return _in_folder(url.removeprefix("file://"))
    names, age_ms = _kept(url)
    if names is None or age_ms > FRESH_MS:
        _ask_apart(url, wait_s=0.0 if names is not None else WAIT_S)
    return set(_kept(url)[0] or () if names is None else names)


def ask(url: str) -> None:
    """Lists the topics of a store and keeps their names; the process that does it ends after some seconds whatever happens."""
    from itertools import islice

    from local_log.disk import parent_of, replace_file
    from remote.keys import is_topic

    signal.alarm(ASKING_S_MAX)
    names = list(islice(filter(is_topic, open_backend(url).list_folders("")), TOPICS_MAX))
    file, disk = _file(url), writable_disk()
    disk.make_folder(parent_of(file))
    replace_file(disk, file, json.dumps(names).encode())


def _in_folder(archive: str) -> set[str]:
    """The store of a folder would say the same, and takes as long to load as all else here."""
    from local_log.formats.filenames import is_topic_name

    disk = local_disk()
    return {name for name in disk.names(archive) if is_topic_name(name) and disk.is_folder(f"{archive}/{name}")}


def _ask_apart(url: str, wait_s: float) -> None:
    from subprocess import DEVNULL, Popen, TimeoutExpired

    command = [sys.executable, "-P", "-c", _ASK, url]
    asked = Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)  # noqa: S603  # ours
    try:
        asked.wait(wait_s)
    except TimeoutExpired:
        asked.returncode = 0  # it goes on without this process, which ends now


def _kept(url: str) -> tuple[list[str] | None, int]:
    """The names that are kept, None for none, and how old they are in ms."""
    file, disk = _file(url), local_disk()
    try:
        age_ms = CLOCK.now_ms() - disk.modified_ms(file)
        names: Any = json.loads(disk.read(file))
    except (LogError, ValueError):
        return None, 0
    is_good = 0 <= age_ms <= KEPT_MS_MAX and isinstance(names, list) and all(isinstance(name, str) for name in names)
    return (names, age_ms) if is_good else (None, 0)


def _file(url: str) -> str:
    from zlib import adler32, crc32  # a digest would take longer to load than all else here

    from local_log.user_cache import cache_folders, user_cache

    which = "\n".join((url, *(os.environ.get(name, "") for name in _WHICH))).encode()
    return f"{user_cache() or next(cache_folders())}/topics/{crc32(which):08x}{adler32(which):08x}.json"
