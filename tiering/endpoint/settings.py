"""The endpoint's settings by the names of Kafka's broker settings: text at the command line, values inside."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import IntEnum
from ipaddress import ip_address
from typing import Any, Final

from local_log.errors import Invalid
from local_log.formats.primitives import INT32_MAX, INT64_MAX

PORT_MAX: Final = 65_535
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9._-]{0,252}[a-z0-9_])?|[0-9a-f:]+:[0-9a-f:]*")


class ConfigType(IntEnum):
    """Kafka's types of settings, as DescribeConfigs tells them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
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


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        digits = text.strip()
        if not _INTEGER.fullmatch(digits) or not least <= int(digits) <= most:
            raise ValueError(f"an integer from {least} to {most}")
        return int(digits)

    return read


def _int(name: str, default: int, least: int, help_text: str) -> Setting:
    return Setting(name, ConfigType.INT, default, _number(least, INT32_MAX), help_text)


def _long(name: str, default: int, least: int, help_text: str) -> Setting:
    return Setting(name, ConfigType.LONG, default, _number(least, INT64_MAX), help_text)


def _names(*known: str) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if not names or set(names) - set(known):
            raise ValueError(f"one or several of {', '.join(known)}, with commas between them")
        return tuple(dict.fromkeys(names))

    return read


def _one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"one of {', '.join(known)}")
        return text

    return read


def _path(text: str) -> str:
    if not text or text.startswith("-----"):
        raise ValueError("the path of a file")
    return text


def _users(text: str) -> str:
    if not all(":" in user for user in text.split(";") if user.strip()):
        raise ValueError("one or several principals such as User:admin, with semicolons between them")
    return text


def _host_and_port(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise ValueError("an address HOST:PORT, where port 0 takes a free one")
    return text


def _hosts(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().lower() for name in text.split(",") if name.strip())
    if not names or not all(_HOST.fullmatch(name) for name in names):
        raise ValueError("names of hosts, without ports, with commas between them")
    return names


def _limits_by_address(text: str) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for one in filter(None, map(str.strip, text.split(","))):
        address, _, limit = one.rpartition(":")
        try:
            found[str(ip_address(address.strip()))] = _number(0, INT32_MAX)(limit.strip())
        except ValueError as e:
            raise ValueError("IP addresses with limits, such as 192.0.2.1:100,192.0.2.7:0") from e
    return found


SOCKET_REQUEST_MAX_BYTES: Final = _int(
    "socket.request.max.bytes", 100 << 20, 1, "The largest request; the connection of a larger one is closed."
)
QUEUED_MAX_REQUEST_BYTES: Final = _long(
    "queued.max.request.bytes",
    256 << 20,
    1,
    "Memory of the requests and answers under way: above it no further request is begun. Requests that are arriving may take as "
    "much again.",
)
CONNECTIONS_MAX_IDLE: Final = _long(
    "connections.max.idle.ms", 600_000, 1, "After so long without a byte in either direction a connection is closed."
)
MAX_CONNECTIONS: Final = _int("max.connections", 10_000, 0, "Connections in all; further ones are closed at once.")
MAX_CONNECTIONS_PER_IP: Final = _int("max.connections.per.ip", 10_000, 0, "Connections from one IP address.")
MAX_CONNECTIONS_PER_IP_OVERRIDES: Final = Setting(
    "max.connections.per.ip.overrides",
    ConfigType.STRING,
    {},
    _limits_by_address,
    "Other limits for some IP addresses, such as `192.0.2.1:100,192.0.2.7:0`.",
)
NUM_IO_THREADS: Final = _int("num.io.threads", 4, 1, "So many requests are answered at a time.")
FETCH_MAX_BYTES: Final = _int(
    "fetch.max.bytes", 55 << 20, 1024, "The most bytes of batches in an answer to a fetch, but for a larger first batch."
)
FETCH_SESSION_SLOTS: Final = _int(
    "max.incremental.fetch.session.cache.slots", 1000, 0, "Fetch sessions; other consumers name all their partitions each time."
)
MAX_REQUEST_PARTITIONS: Final = _int(
    "max.request.partition.size.limit", 2000, 1, "The most partitions on a page of DescribeTopicPartitions."
)
GROUP_MIN_SESSION_TIMEOUT: Final = _int("group.min.session.timeout.ms", 6_000, 0, "The shortest session of a member.")
GROUP_MAX_SESSION_TIMEOUT: Final = _int("group.max.session.timeout.ms", 1_800_000, 0, "The longest session of a member.")
GROUP_INITIAL_REBALANCE_DELAY: Final = _int(
    "group.initial.rebalance.delay.ms", 3_000, 0, "How long the first rebalance of an empty group waits for more members."
)
GROUP_MAX_SIZE: Final = _int("group.max.size", INT32_MAX, 1, "Members of a group.")
OFFSET_METADATA_MAX: Final = _int("offset.metadata.max.bytes", 4096, 0, "The longest text that is committed with an offset.")
OFFSETS_RETENTION: Final = _int(
    "offsets.retention.minutes",
    7 * 24 * 60,
    1,
    "Offsets are forgotten so long after their commit, or after members left.",
)
OFFSETS_RETENTION_CHECK: Final = _long(
    "offsets.retention.check.interval.ms", 600_000, 1, "How often offsets are looked for that are to be forgotten."
)
OFFSETS_TOPIC_PARTITIONS: Final = _int(
    "offsets.topic.num.partitions", 50, 1, "Partitions of `__consumer_offsets`, when it is made; not changed later."
)
OFFSETS_TOPIC_SEGMENT: Final = _int(
    "offsets.topic.segment.bytes", 100 << 20, 1 << 20, "The size of its segments, when it is made; not changed later."
)
NODE_ID: Final = _int("node.id", 1, 0, "The id of this broker; endpoints that share an archive need different ones.")

HTTP_ADDRESS: Final = Setting(
    "endpoint.http.address",
    ConfigType.STRING,
    None,
    _host_and_port,
    "HOST:PORT of /metrics, /healthz and /readyz, for example `127.0.0.1:9328`; not a setting of Kafka.",
)
HTTP_NAMES: Final = Setting(
    "endpoint.http.names",
    ConfigType.LIST,
    (),
    _hosts,
    "Further names of this host that HTTP requests may use; not a setting of Kafka.",
)

SASL_MECHANISMS: Final = Setting(
    "sasl.enabled.mechanisms",
    ConfigType.LIST,
    ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    _names("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    "How clients may authenticate. `PLAIN` has the same users as `SCRAM`; it sends the password itself, as `OAUTHBEARER` does "
    "the token, and so needs TLS or `--insecure` off the loopback address.",
)
MAX_REAUTHENTICATION: Final = _long(
    "connections.max.reauth.ms",
    0,
    0,
    "After so long a client must authenticate anew (KIP-368), so that a deleted user is locked out; 0: never.",
)
FAILED_AUTHENTICATION_DELAY: Final = _int(
    "connection.failed.authentication.delay.ms", 100, 0, "So long later a client is told that it failed to authenticate."
)
SASL_RECEIVE_SIZE: Final = _int(
    "sasl.server.max.receive.size", 512 << 10, 1, "The largest request of a client that has not authenticated."
)


def _urls(text: str) -> str:
    if not text.startswith(("https://", "http://", "file:///")):
        raise ValueError("one of https://HOST/PATH, http://localhost/PATH and file:///PATH")
    return text


def _text(text: str) -> str:
    if not text or text.startswith("-"):
        raise ValueError("one of the texts that the provider writes")
    return text


OAUTH_KEYS: Final = Setting(
    "sasl.oauthbearer.jwks.endpoint.url",
    ConfigType.STRING,
    None,
    _urls,
    "Where the identity provider's keys are (JWKS): `https://…`, or `file:///…`. `OAUTHBEARER` needs it.",
)
OAUTH_REFRESH: Final = _long(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000, 1, "How often the keys are fetched; also when one is new."
)
OAUTH_ISSUER: Final = Setting("sasl.oauthbearer.expected.issuer", ConfigType.STRING, None, _text, "What a token's `iss` must be.")
OAUTH_AUDIENCE: Final = Setting(
    "sasl.oauthbearer.expected.audience",
    ConfigType.LIST,
    None,
    lambda text: tuple(_text(one.strip()) for one in text.split(",")),
    "One of these must be a token's `aud`, or among them.",
)
OAUTH_NAME: Final = Setting(
    "sasl.oauthbearer.sub.claim.name", ConfigType.STRING, "sub", _text, "The claim of a token that says who the client is."
)
OAUTH_SKEW: Final = _int("sasl.oauthbearer.clock.skew.seconds", 30, 0, "How far the provider's clock may differ, in seconds.")
SUPER_USERS: Final = Setting(
    "super.users",
    ConfigType.STRING,
    None,
    _users,
    "Principals that may do everything, for example `User:admin;User:CN=ops`.",
)
ALLOW_EVERYONE: Final = Setting(
    "allow.everyone.if.no.acl.found",
    ConfigType.BOOLEAN,
    False,
    lambda text: _one_of("true", "false")(text) == "true",
    "Whether everybody may do everything to a resource that no ACL is for.",
)

_PEM: Final = "`PEM`, and no other."

SSL_CLIENT_AUTH: Final = Setting(
    "ssl.client.auth",
    ConfigType.STRING,
    "none",
    _one_of("none", "requested", "required"),
    "`requested` or `required`: whether clients are asked for a certificate, and need one.",
)
SSL_PROTOCOLS: Final = Setting(
    "ssl.enabled.protocols", ConfigType.LIST, ("TLSv1.2", "TLSv1.3"), _names("TLSv1.2", "TLSv1.3"), "The versions of TLS."
)
SSL_KEY: Final = Setting(
    "ssl.keystore.key.location",
    ConfigType.STRING,
    None,
    _path,
    "The private key, if it is in a file of its own; not a setting of Kafka.",
)
SSL_KEYSTORE: Final = Setting(
    "ssl.keystore.location", ConfigType.STRING, None, _path, "The PEM file with the certificate chain and the private key."
)
SSL_KEYSTORE_TYPE: Final = Setting("ssl.keystore.type", ConfigType.STRING, "PEM", _one_of("PEM"), _PEM)
SSL_MAPPING: Final = Setting(
    "ssl.principal.mapping.rules",
    ConfigType.STRING,
    "DEFAULT",
    str,
    "Rules that make a name of a certificate's subject, for example `RULE:^CN=([^,]*).*$/$1/L,DEFAULT`.",
)
SSL_TRUSTSTORE: Final = Setting(
    "ssl.truststore.location", ConfigType.STRING, None, _path, "A PEM file with the authorities of clients' certificates."
)
SSL_TRUSTSTORE_TYPE: Final = Setting("ssl.truststore.type", ConfigType.STRING, "PEM", _one_of("PEM"), _PEM)

_ALL: Final = (
    SOCKET_REQUEST_MAX_BYTES,
    QUEUED_MAX_REQUEST_BYTES,
    CONNECTIONS_MAX_IDLE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    NUM_IO_THREADS,
    FETCH_MAX_BYTES,
    FETCH_SESSION_SLOTS,
    MAX_REQUEST_PARTITIONS,
    GROUP_MIN_SESSION_TIMEOUT,
    GROUP_MAX_SESSION_TIMEOUT,
    GROUP_INITIAL_REBALANCE_DELAY,
    GROUP_MAX_SIZE,
    OFFSET_METADATA_MAX,
    OFFSETS_RETENTION,
    OFFSETS_RETENTION_CHECK,
    OFFSETS_TOPIC_PARTITIONS,
    OFFSETS_TOPIC_SEGMENT,
    NODE_ID,
    HTTP_ADDRESS,
    HTTP_NAMES,
    SASL_MECHANISMS,
    MAX_REAUTHENTICATION,
    FAILED_AUTHENTICATION_DELAY,
    SASL_RECEIVE_SIZE,
    OAUTH_KEYS,
    OAUTH_REFRESH,
    OAUTH_ISSUER,
    OAUTH_AUDIENCE,
    OAUTH_NAME,
    OAUTH_SKEW,
    SUPER_USERS,
    ALLOW_EVERYONE,
    SSL_CLIENT_AUTH,
    SSL_PROTOCOLS,
    SSL_KEY,
    SSL_KEYSTORE,
    SSL_KEYSTORE_TYPE,
    SSL_MAPPING,
    SSL_TRUSTSTORE,
    SSL_TRUSTSTORE_TYPE,
)
SETTINGS: Final[Mapping[str, Setting]] = {one.name: one for one in _ALL}


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set; all else has its default."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, setting: Setting) -> Any:
        return self.given.get(setting.name, setting.default)


DEFAULTS: Final = Settings()


def read_settings(assignments: Iterable[str], configured: Mapping[str, Any] | None = None) -> Settings:
    """From texts NAME=VALUE, of which the last of a name counts, and before them what is configured. Raises Invalid."""
    given = dict(configured or {})
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        setting = SETTINGS.get(name.strip())
        if setting is None or not equals:
            near = get_close_matches(name, SETTINGS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SETTINGS)}"
            raise Invalid(f"{name!r} is no setting of the endpoint; {hint}")
        try:
            given[setting.name] = setting.read(text.strip())
        except ValueError as e:
            raise Invalid(f"{setting.name}: expected {e}") from e
    return Settings(given)
