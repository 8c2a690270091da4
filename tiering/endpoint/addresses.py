"""HOST:PORT as text, and what a host is: this machine alone, or every address of it."""

from ipaddress import ip_address
from typing import Final

PORT_MAX: Final = 65_535


def host_and_port(text: str) -> tuple[str, int]:
    """Of HOST:PORT, where an IPv6 address may be in brackets. Raises ValueError, which says what was expected."""
    host, _, port = text.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise ValueError("an address HOST:PORT, where port 0 takes a free one")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_every_address(host: str) -> bool:
    """Whether it stands for all addresses of this machine, to which nobody can connect."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
