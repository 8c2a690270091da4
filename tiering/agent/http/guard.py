"""Checks which requests the agent accepts: the Host must be one of its names; a change needs a loopback address or the token.
Pure.

A web page can make a browser send requests to any address. With a host name that then resolves to this machine (DNS rebinding) it
can read the answer too, so the Host must be known. A browser says in Origin and Sec-Fetch-Site which page has sent a request:
only the agent's own may ask for a change. Through a proxy on this machine every client seems local, so a request with a proxy's
headers needs the token.
"""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_BEARER: Final = "bearer "

Headers = Mapping[str, Sequence[str]]
"""The values of each header, by its name in lower case."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why somebody is not answered: HTTP's status and a line of text."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Guard:
    """`names` are this machine's that it may be asked by, beside the addresses that it listens on; `token` is "" for none."""

    names: frozenset[str] = frozenset()
    token: str = ""
    names_setting: str = "agent.http.names"
    """The setting that adds to the names."""

    def refuses(self, headers: Headers, own_address: str) -> Refusal | None:
        """Why a request is refused that has come in at `own_address`; None for one that may be answered."""
        hosts = headers.get("host", ())
        name = _name_of(hosts[0]) if len(hosts) == 1 else ""
        if name in LOCAL_NAMES or name in self.names or (name and name == own_address.partition("%")[0].lower()):
            return None
        return Refusal(421, f"this is not a name of this host; add it to {self.names_setting}, or use its address")

    def refuses_change(self, headers: Headers, own_address: str, peer: str) -> Refusal | None:
        """The same for a request that changes something."""
        if _is_of_another_site(headers, has_token=bool(self.token)):
            return Refusal(403, "requests from other web sites are rejected")
        if self.token:
            return None if self._knows_token(headers) else Refusal(401, "the token of agent.http.token.file is required")
        if any(name in headers for name in FORWARDED):
            return Refusal(403, "not through a proxy: set agent.http.token.file for the agent and for the command")
        if not (is_loopback(own_address) and is_loopback(peer)):
            return Refusal(403, "only on loopback: set agent.http.token.file for the agent and for the command")
        return None

    def _knows_token(self, headers: Headers) -> bool:
        given = headers.get("authorization", ())
        if len(given) != 1 or not given[0].lower().startswith(_BEARER):
            return False
        return hmac.compare_digest(given[0][len(_BEARER) :].strip().encode(), self.token.encode())


def is_loopback(address: str) -> bool:
    """Whether an IP address is a loopback address."""
    ip = ip_address(address.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_loopback


def _is_of_another_site(headers: Headers, *, has_token: bool) -> bool:
    """Whether a page of another origin has sent a request.

    A proxy may change the Host, so that it is not that of the page's Origin any more; then Sec-Fetch-Site, which scripts cannot
    set, says whether both are the same. That is enough only together with the token, which no other page knows.
    """
    sites, origins, hosts = (headers.get(name, ()) for name in ("sec-fetch-site", "origin", "host"))
    if any(site not in ("none", "same-origin") for site in sites):
        return True
    own = {f"{scheme}://{host}".lower() for scheme in ("http", "https") for host in hosts}
    is_own = all(origin.lower() in own for origin in origins)
    return not (is_own or (has_token and "same-origin" in sites))


def _name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")
