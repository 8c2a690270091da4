"""Whether what a configuration names on this machine is there and can be read: log.dirs, a folder archive, keys. No network."""

from collections.abc import Iterator
from contextlib import suppress

from local_log.disk import Disk
from local_log.errors import Invalid, NotFound, Unreadable
from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir
from remote.keys import ARCHIVE
from remote.store.folder.store import FolderStore
from remote.transforms.key_rings import open_keys
from tiering.config.assignment import Place, Problem
from tiering.config.config import Config
from tiering.machine import open_backend
from tiering.wiring import shares_a_folder

_LOCAL_KEYS = ("", "file", "env")
"""Schemes of key rings that are on this machine; another one may ask the network."""


def problems(config: Config, disk: Disk) -> Iterator[Problem]:
    """What is missing, is no folder, holds nothing or cannot be read, each with the line or the variable that names it.

    Raises BadAddress for an archive.url that names no store.
    """
    settings = config.settings
    if settings.log_dirs:
        yield from config.without_effect()
    for path in settings.log_dirs:
        reason = _of_own_log_dir(path, disk) if settings.own_log_dirs else _of_log_dir(path, disk)
        yield from _problem(config, "log.dirs", reason)
    if settings.archive_url is not None:
        yield from _problem(config, "archive.url", _of_archive(settings.archive_url, config, disk))
    if settings.archive_keys is not None:
        yield from _problem(config, "archive.keys", _of_keys(settings.archive_keys))


def _problem(config: Config, name: str, reason: str | None) -> Iterator[Problem]:
    if reason is not None:
        yield Problem(config.places.get(name, Place("default")), f"{name}: {reason}")


def _of_log_dir(path: str, disk: Disk) -> str | None:
    try:
        disk.state(path)
        if not disk.is_folder(path):
            return f"{path} is a file; give the folder that is the broker's own log.dirs"
        partitions = LogDir(disk, path).partitions()
        for partition in partitions:
            _refuse_unreadable(f"{path}/{partition}", disk)
    except NotFound:
        return f"{path}: no such folder; give the broker's own log.dirs, and have it mounted on this machine"
    except Unreadable as e:
        return str(e)
    if not partitions:
        return f"{path}: no partition there; a broker's own log.dirs has a folder for each, such as {TopicPartition('orders', 0)}"
    return None


def _of_own_log_dir(path: str, disk: Disk) -> str | None:
    """One that is missing is created when it is first used."""
    with suppress(NotFound):
        disk.state(path)
        return None if disk.is_folder(path) else f"{path} is a file; give a folder that no broker uses"
    return None


def _refuse_unreadable(folder: str, disk: Disk) -> None:
    with suppress(NotFound):  # its topic may be deleted meanwhile
        disk.names(folder)


def _of_archive(url: str, config: Config, disk: Disk) -> str | None:
    store = open_backend(url)
    inside = next((path for path in config.settings.log_dirs if shares_a_folder(LogDir(disk, path), store)), None)
    if inside is not None:
        return f"{store.url} and the log directory {inside} are inside each other, and only the broker may write there"
    if not isinstance(store, FolderStore):
        return None
    none_made = "and archive.must.exist=true makes none; mount it, or offload once with archive.must.exist=false"
    try:
        disk.state(store.root)
        if not disk.is_folder(store.root):
            return f"{store.root} is a file; give a folder, or the address of another store"
        is_archive = ARCHIVE in disk.names(store.root)
    except NotFound:
        return f"{store.root}: no such folder, {none_made}" if config.settings.archive_must_exist else None
    except Unreadable as e:
        return str(e)
    return f"{store.root}: no archive there, {none_made}" if config.settings.archive_must_exist and not is_archive else None


def _of_keys(address: str) -> str | None:
    scheme, separator, _ = address.partition("://")
    if separator and scheme not in _LOCAL_KEYS:
        return None
    try:
        open_keys(address)
    except Invalid as e:
        return str(e)
    return None
