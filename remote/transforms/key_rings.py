"""Opens the `KeyRing` that an address names. The only module that reads keys from outside the process.

/etc/tiering/keys.json          a file, also as file:///etc/tiering/keys.json; `keys.read_key_ring` describes its content
env://TIERING_KEY_RING          the same JSON in an environment variable
aws-kms://alias/archive         AWS KMS, whose keys never leave it: the id, alias or ARN of the key for new data keys
NAME://…                        a plugin: an installed package registers, under the entry point group
                                `kafka_tiering.key_rings`, a function from the address to a KeyRing

A reader with keys rejects segments that are not encrypted and manifests that are not signed, unless the address ends in
?plain=allowed.
"""

import os
import stat
from collections.abc import Callable

from local_log.errors import BadAddress, Invalid, listed
from remote.transforms.keys import KeyRing, read_key_ring

PLUGINS = "kafka_tiering.key_rings"
PLAIN_ALLOWED = "?plain=allowed"
KEY_FILE_BYTES_MAX = 1 << 20
_OTHERS_MAY = stat.S_IRWXO | stat.S_IWGRP


def allowing_plain(address: str) -> str:
    """The same address, which then also accepts segments that are not encrypted and manifests that are not signed."""
    return f"{address.removesuffix(PLAIN_ALLOWED)}{PLAIN_ALLOWED}"


def allows_plain(address: str) -> bool:
    """Whether the address accepts what is not encrypted or not signed."""
    return address.endswith(PLAIN_ALLOWED)


def revision_of(address: str) -> str:
    """A text that changes when the key file at `address` does. It is empty for every other address."""
    scheme, separator, rest = address.removesuffix(PLAIN_ALLOWED).partition("://")
    if separator and scheme != "file":
        return ""
    try:
        found = os.stat(rest if separator else scheme)
    except OSError:
        return ""  # opening it says what is wrong
    return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def open_keys(address: str) -> KeyRing:
    """The key ring at `address`. Raises BadAddress, and Invalid for a missing file, one that others can read, or no key ring."""
    address = address.removesuffix(PLAIN_ALLOWED)
    scheme, separator, rest = address.partition("://")
    if not separator:
        return _from_file(address)
    if scheme == "file":
        if not rest.startswith("/"):
            raise BadAddress(f"{address!r} names a host, not a file; give file:/// and an absolute path")
        return _from_file(rest)
    if scheme == "env":
        return _from_environment(rest)
    if scheme == "aws-kms":
        from remote.transforms.aws_kms import AwsKms

        return AwsKms(rest)
    return _from_plugin(scheme, address)


def _from_file(path: str) -> KeyRing:
    """Reads a key file. Its mode must deny writing to all but its owner, and reading to all but owner and group."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            body = file.read(KEY_FILE_BYTES_MAX + 1)
    except OSError as e:
        raise Invalid(f"key file {path!r} cannot be read: {e.strerror}; give the path of one that can") from e
    if mode & _OTHERS_MAY:
        raise Invalid(
            f"key file {path!r} has mode {stat.S_IMODE(mode):04o}, so other users can read or change it: run chmod 600 on it"
        )
    if len(body) > KEY_FILE_BYTES_MAX:
        raise Invalid(f"key file {path!r} has more than {KEY_FILE_BYTES_MAX} bytes; give one that is a key ring")
    return read_key_ring(body, f"key file {path!r}")


def _from_environment(name: str) -> KeyRing:
    text = os.environ.get(name)
    if not text:
        raise Invalid(f"the environment has no {name}; set it to the JSON of a key ring, or give a key file")
    return read_key_ring(text, f"the environment's {name}")


def _from_plugin(scheme: str, address: str) -> KeyRing:
    from importlib.metadata import entry_points  # brings a third of what a start without it loads of the standard library

    known = {point.name: point for point in entry_points(group=PLUGINS)}
    if scheme not in known:
        others = listed(["a file", "env", "aws-kms", *sorted(known)])
        raise BadAddress(f"{address!r} is not the address of a key ring; there are: {others}")
    opened: Callable[[str], KeyRing] = known[scheme].load()
    return opened(address)
