"""What a host is: this machine alone, or every address of it."""

from ipaddress import ip_address


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
