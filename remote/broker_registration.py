"""A broker's registration in the archive: where clients reach it. See `remote.keys` for its place, which tells its heartbeat."""

from dataclasses import dataclass

from local_log.errors import Corrupt
from remote.manifest.numbers import whole
from remote.manifest.stamped_json import MAJOR, MINOR, read_stamped, stamped

PORT_MAX = 65_535
_REMEDY = "delete it, a broker that is alive writes another one"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The advertised address of a broker."""

    host: str
    port: int


def encode(registration: BrokerRegistration) -> bytes:
    """The body of the object."""
    fields = {"format": {"major": MAJOR, "minor": MINOR}, "host": registration.host, "port": registration.port}
    return stamped(fields)


def decode(body: bytes, key: str) -> BrokerRegistration:
    """The registration stored under `key`. Raises Corrupt, Newer."""
    value = read_stamped(body, key)
    try:
        host, port = value["host"], whole(value["port"], "port")
    except (KeyError, TypeError, ValueError) as e:
        raise Corrupt(f"no broker's registration: {e}; {_REMEDY}", file=key) from e
    if not isinstance(host, str) or not host or not 0 < port <= PORT_MAX:
        raise Corrupt(f"{host!r}:{port} is no broker's address; {_REMEDY}", file=key)
    return BrokerRegistration(host, port)
