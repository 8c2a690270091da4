"""Types of settings, and how their texts are read (Kafka's ConfigDef). What reads a text raises ValueError: what was expected."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import ip_address
from typing import Any, Final

from local_log.formats.primitives import INT32_MAX, INT64_MAX
from tiering.endpoint.addresses import host_and_port

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9._-]{0,252}[a-z0-9_])?|[0-9a-f:]+:[0-9a-f:]*")


class ConfigType(IntEnum):
    """Kafka's types of settings, as DescribeConfigs tells them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, its type and default, how its text is read, and what it is for.

    Reading raises ValueError, which says what was expected.
    """

    name: str
    type: ConfigType
    default: Any
    read: Callable[[str], Any]
    help: str

    def text(self, value: Any) -> str:
        """A value as it is written in a configuration, "" for none."""
        if isinstance(value, Mapping):
            return ",".join(f"{key}:{one}" for key, one in value.items())
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        return ",".join(value) if isinstance(value, tuple) else str(value)


def number(least: int, most: int) -> Callable[[str], int]:
    """An integer with its bounds, both included."""

    def read(text: str) -> int:
        digits = text.strip()
        if not _INTEGER.fullmatch(digits) or not least <= int(digits) <= most:
            raise ValueError(f"an integer from {least} to {most}")
        return int(digits)

    return read


def int_setting(name: str, default: int, least: int, help_text: str) -> Setting:
    """Of 32 bits, from `least` on."""
    return Setting(name, ConfigType.INT, default, number(least, INT32_MAX), help_text)


def long_setting(name: str, default: int, least: int, help_text: str) -> Setting:
    """Of 64 bits, from `least` on."""
    return Setting(name, ConfigType.LONG, default, number(least, INT64_MAX), help_text)


def names_of(*known: str) -> Callable[[str], tuple[str, ...]]:
    """One or several of these, each once."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if not names or set(names) - set(known):
            raise ValueError(f"one or several of {', '.join(known)}, with commas between them")
        return tuple(dict.fromkeys(names))

    return read


def one_of(*known: str) -> Callable[[str], str]:
    """One of these."""

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"one of {', '.join(known)}")
        return text

    return read


def one_of_in_any_case(*known: str) -> Callable[[str], str]:
    """One of these, in upper or lower case."""
    read = one_of(*known)
    return lambda text: read(text.lower())


def path(text: str) -> str:
    """Of a file: not what is in it."""
    if not text or text.startswith("-----"):
        raise ValueError("the path of a file")
    return text


def principals(text: str) -> str:
    """TYPE:NAME, with semicolons, as it is written."""
    if not all(":" in user for user in text.split(";") if user.strip()):
        raise ValueError("one or several principals such as User:admin, with semicolons between them")
    return text


def address(text: str) -> str:
    """HOST:PORT, as it is written."""
    host_and_port(text)
    return text


def hosts(text: str) -> tuple[str, ...]:
    """Names and addresses, without ports."""
    names = tuple(name.strip().lower() for name in text.split(",") if name.strip())
    if not names or not all(_HOST.fullmatch(name) for name in names):
        raise ValueError("names of hosts, without ports, with commas between them")
    return names


def limits_by_address(text: str) -> Mapping[str, int]:
    """ADDRESS:LIMIT, with commas."""
    found: dict[str, int] = {}
    for one in filter(None, map(str.strip, text.split(","))):
        address, _, limit = one.rpartition(":")
        try:
            found[str(ip_address(address.strip()))] = number(0, INT32_MAX)(limit.strip())
        except ValueError as e:
            raise ValueError("IP addresses with limits, such as 192.0.2.1:100,192.0.2.7:0") from e
    return found


def url(text: str) -> str:
    """Where keys may be."""
    if not text.startswith(("https://", "http://", "file:///")):
        raise ValueError("one of https://HOST/PATH, http://localhost/PATH and file:///PATH")
    return text


def text_of_provider(text: str) -> str:
    """What a token has in one of its claims, or how the claim is called."""
    if not text or text.startswith("-"):
        raise ValueError("one of the texts that the provider writes")
    return text
