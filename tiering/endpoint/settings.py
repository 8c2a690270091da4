"""The endpoint's settings by the names of Kafka's broker settings: text at the command line, values inside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from local_log.errors import Invalid
from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.config_def import (
    ConfigType,
    Setting,
    address,
    hosts,
    int_setting,
    limits_by_address,
    long_setting,
    names_of,
    one_of,
    path,
    principals,
    text_of_provider,
    url,
)
from tiering.endpoint.consumer_group_settings import CONSUMER_GROUP_SETTINGS

SOCKET_REQUEST_MAX_BYTES: Final = int_setting(
    "socket.request.max.bytes", 100 << 20, 1, "The largest request; the connection of a larger one is closed."
)
SOCKET_SEND_BUFFER_BYTES: Final = int_setting(
    "socket.send.buffer.bytes",
    512 << 10,
    -1,
    "The send buffer of a connection, which Linux doubles, so that an answer of 1 MiB is handed over by one call; -1 leaves it "
    "to the system.",
)
QUEUED_MAX_REQUEST_BYTES: Final = long_setting(
    "queued.max.request.bytes",
    256 << 20,
    1,
    "Memory of the requests and answers under way: above it no further request is begun. Requests that are arriving may take as "
    "much again.",
)
CONNECTIONS_MAX_IDLE: Final = long_setting(
    "connections.max.idle.ms", 600_000, 1, "After so long without a byte in either direction a connection is closed."
)
MAX_CONNECTIONS: Final = int_setting("max.connections", 10_000, 0, "Connections in all; further ones are closed at once.")
MAX_CONNECTIONS_PER_IP: Final = int_setting("max.connections.per.ip", 10_000, 0, "Connections from one IP address.")
MAX_CONNECTIONS_PER_IP_OVERRIDES: Final = Setting(
    "max.connections.per.ip.overrides",
    ConfigType.STRING,
    {},
    limits_by_address,
    "Other limits for some IP addresses, such as `192.0.2.1:100,192.0.2.7:0`.",
)
NUM_IO_THREADS: Final = int_setting("num.io.threads", 4, 1, "So many requests are answered at a time.")
REMOTE_LOG_READER_THREADS: Final = int_setting(
    "remote.log.reader.threads",
    10,
    1,
    "So many more are answered at a time that read from an archive, and as many that take longer than a tenth of a second, as "
    "they do when a store is slow: they hold up no others.",
)
FETCH_MAX_BYTES: Final = int_setting(
    "fetch.max.bytes", 55 << 20, 1024, "The most bytes of batches in an answer to a fetch, but for a larger first batch."
)
FETCH_SESSION_SLOTS: Final = int_setting(
    "max.incremental.fetch.session.cache.slots", 1000, 0, "Fetch sessions; other consumers name all their partitions each time."
)
CHUNK_CACHE_SIZE: Final = long_setting(
    "fetch.chunk.cache.size",
    256 << 20,
    0,
    "Bytes of archived segments that are kept in memory for all consumers, with what is requested ahead of them; files of a "
    "folder are read without it. Not a setting of Kafka.",
)
MAX_REQUEST_PARTITIONS: Final = int_setting(
    "max.request.partition.size.limit", 2000, 1, "The most partitions on a page of DescribeTopicPartitions."
)
GROUP_MIN_SESSION_TIMEOUT: Final = int_setting("group.min.session.timeout.ms", 6_000, 0, "The shortest session of a member.")
GROUP_MAX_SESSION_TIMEOUT: Final = int_setting("group.max.session.timeout.ms", 1_800_000, 0, "The longest session of a member.")
GROUP_INITIAL_REBALANCE_DELAY: Final = int_setting(
    "group.initial.rebalance.delay.ms", 3_000, 0, "How long the first rebalance of an empty group waits for more members."
)
GROUP_MAX_SIZE: Final = int_setting("group.max.size", INT32_MAX, 1, "Members of a group.")
ENDPOINT_GROUPS_MAX_BYTES: Final = long_setting(
    "endpoint.groups.max.bytes",
    128 << 20,
    1,
    "Memory of all groups, their members and offsets, about: beyond it none is taken; not a setting of Kafka.",
)
OFFSET_METADATA_MAX: Final = int_setting(
    "offset.metadata.max.bytes", 4096, 0, "The longest text that is committed with an offset."
)
OFFSETS_RETENTION: Final = int_setting(
    "offsets.retention.minutes",
    7 * 24 * 60,
    1,
    "Offsets are forgotten so long after their commit, or after members left.",
)
OFFSETS_RETENTION_CHECK: Final = long_setting(
    "offsets.retention.check.interval.ms", 600_000, 1, "How often offsets are looked for that are to be forgotten."
)
OFFSETS_TOPIC_PARTITIONS: Final = int_setting(
    "offsets.topic.num.partitions", 50, 1, "Partitions of `__consumer_offsets`, when it is made; not changed later."
)
OFFSETS_TOPIC_SEGMENT: Final = int_setting(
    "offsets.topic.segment.bytes", 100 << 20, 1 << 20, "The size of its segments, when it is made; not changed later."
)
WRITE_CACHING: Final = Setting(
    "write.caching",
    ConfigType.BOOLEAN,
    True,
    lambda text: one_of("true", "false")(text) == "true",
    "Whether producers with `acks=all`, and consumers that commit, are answered before what they write is synced to the disk, as "
    "by a broker. With `false` it is synced first, that of many requests at a time. Redpanda's name, not a setting of Kafka.",
)
STORAGE_MIN_FREE_BYTES: Final = long_setting(
    "storage.min.free.bytes",
    128 << 20,
    0,
    "With less room than this on its volume a log directory takes no more records, and with less than half of it nothing else "
    "either; it is still read. Redpanda's name, not a setting of Kafka.",
)
NUM_PARTITIONS: Final = int_setting(
    "num.partitions", 1, 1, "Partitions of a new topic, where it is created without their number."
)
TRANSACTIONAL_ID_EXPIRATION: Final = int_setting(
    "transactional.id.expiration.ms", 604_800_000, 1, "A transactional id that nobody uses is forgotten after this time."
)
TRANSACTION_STATE_PARTITIONS: Final = int_setting(
    "transaction.state.log.num.partitions", 50, 1, "Partitions of `__transaction_state`, when it is made; not changed later."
)
TRANSACTION_STATE_SEGMENT: Final = int_setting(
    "transaction.state.log.segment.bytes", 100 << 20, 1 << 20, "The size of its segments, when it is made; not changed later."
)
TRANSACTION_ABORT_INTERVAL: Final = int_setting(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10_000,
    1,
    "How often transactions are looked for that are open for longer than their producers asked for: they are aborted.",
)
TRANSACTION_REMOVE_INTERVAL: Final = int_setting(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
    1,
    "How often transactional ids are looked for that are to be forgotten.",
)
ENDPOINT_TRANSACTIONS_MAX_BYTES: Final = long_setting(
    "endpoint.transactions.max.bytes",
    64 << 20,
    1,
    "Memory of all transactional ids and the partitions of their transactions, about: beyond it none is taken (40,000 ids by "
    "default); not a setting of Kafka.",
)
NODE_ID: Final = int_setting("node.id", 1, 0, "The id of this broker; endpoints that share an archive need different ones.")
AUTO_CREATE_TOPICS: Final = Setting(
    "auto.create.topics.enable",
    ConfigType.BOOLEAN,
    True,
    lambda text: one_of("true", "false")(text) == "true",
    "Whether a topic is created in a log directory of its own when a client first asks for it.",
)

HTTP_ADDRESS: Final = Setting(
    "endpoint.http.address",
    ConfigType.STRING,
    None,
    address,
    "HOST:PORT of a page for browsers, /metrics, /healthz and /readyz, for example `127.0.0.1:9328`; not a setting of Kafka.",
)
HTTP_NAMES: Final = Setting(
    "endpoint.http.names",
    ConfigType.LIST,
    (),
    hosts,
    "Further names of this host that HTTP requests may use; not a setting of Kafka.",
)

SASL_MECHANISMS: Final = Setting(
    "sasl.enabled.mechanisms",
    ConfigType.LIST,
    ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    names_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    "How clients may authenticate. `PLAIN` has the same users as `SCRAM`; it sends the password itself, as `OAUTHBEARER` does "
    "the token, and so needs TLS or `--insecure` off the loopback address.",
)
MAX_REAUTHENTICATION: Final = long_setting(
    "connections.max.reauth.ms",
    0,
    0,
    "After so long a client must authenticate anew (KIP-368), so that a deleted user is locked out; 0: never.",
)
FAILED_AUTHENTICATION_DELAY: Final = int_setting(
    "connection.failed.authentication.delay.ms", 100, 0, "So long later a client is told that it failed to authenticate."
)
SASL_RECEIVE_SIZE: Final = int_setting(
    "sasl.server.max.receive.size", 512 << 10, 1, "The largest request of a client that has not authenticated."
)

OAUTH_KEYS: Final = Setting(
    "sasl.oauthbearer.jwks.endpoint.url",
    ConfigType.STRING,
    None,
    url,
    "Where the identity provider's keys are (JWKS): `https://…`, or `file:///…`. `OAUTHBEARER` needs it.",
)
OAUTH_REFRESH: Final = long_setting(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000, 1, "How often the keys are fetched; also when one is new."
)
OAUTH_ISSUER: Final = Setting(
    "sasl.oauthbearer.expected.issuer", ConfigType.STRING, None, text_of_provider, "What a token's `iss` must be."
)
OAUTH_AUDIENCE: Final = Setting(
    "sasl.oauthbearer.expected.audience",
    ConfigType.LIST,
    None,
    lambda text: tuple(text_of_provider(one.strip()) for one in text.split(",")),
    "One of these must be a token's `aud`, or among them.",
)
OAUTH_NAME: Final = Setting(
    "sasl.oauthbearer.sub.claim.name",
    ConfigType.STRING,
    "sub",
    text_of_provider,
    "The claim of a token that says who the client is.",
)
OAUTH_SKEW: Final = int_setting(
    "sasl.oauthbearer.clock.skew.seconds", 30, 0, "How far the provider's clock may differ, in seconds."
)
SUPER_USERS: Final = Setting(
    "super.users",
    ConfigType.STRING,
    None,
    principals,
    "Principals that may do everything, for example `User:admin;User:CN=ops`.",
)
ALLOW_EVERYONE: Final = Setting(
    "allow.everyone.if.no.acl.found",
    ConfigType.BOOLEAN,
    False,
    lambda text: one_of("true", "false")(text) == "true",
    "Whether everybody may do everything to a resource that no ACL is for.",
)

_PEM: Final = "`PEM`, and no other."

SSL_CLIENT_AUTH: Final = Setting(
    "ssl.client.auth",
    ConfigType.STRING,
    "none",
    one_of("none", "requested", "required"),
    "`requested` or `required`: whether clients are asked for a certificate, and need one.",
)
SSL_PROTOCOLS: Final = Setting(
    "ssl.enabled.protocols", ConfigType.LIST, ("TLSv1.2", "TLSv1.3"), names_of("TLSv1.2", "TLSv1.3"), "The versions of TLS."
)
SSL_KEY: Final = Setting(
    "ssl.keystore.key.location",
    ConfigType.STRING,
    None,
    path,
    "The private key, if it is in a file of its own; not a setting of Kafka.",
)
SSL_KEYSTORE: Final = Setting(
    "ssl.keystore.location", ConfigType.STRING, None, path, "The PEM file with the certificate chain and the private key."
)
SSL_KEYSTORE_TYPE: Final = Setting("ssl.keystore.type", ConfigType.STRING, "PEM", one_of("PEM"), _PEM)
SSL_MAPPING: Final = Setting(
    "ssl.principal.mapping.rules",
    ConfigType.STRING,
    "DEFAULT",
    str,
    "Rules that make a name of a certificate's subject, for example `RULE:^CN=([^,]*).*$/$1/L,DEFAULT`.",
)
SSL_TRUSTSTORE: Final = Setting(
    "ssl.truststore.location", ConfigType.STRING, None, path, "A PEM file with the authorities of clients' certificates."
)
SSL_TRUSTSTORE_TYPE: Final = Setting("ssl.truststore.type", ConfigType.STRING, "PEM", one_of("PEM"), _PEM)

_ALL: Final = (
    SOCKET_REQUEST_MAX_BYTES,
    QUEUED_MAX_REQUEST_BYTES,
    SOCKET_SEND_BUFFER_BYTES,
    CONNECTIONS_MAX_IDLE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    NUM_IO_THREADS,
    REMOTE_LOG_READER_THREADS,
    FETCH_MAX_BYTES,
    FETCH_SESSION_SLOTS,
    CHUNK_CACHE_SIZE,
    MAX_REQUEST_PARTITIONS,
    GROUP_MIN_SESSION_TIMEOUT,
    GROUP_MAX_SESSION_TIMEOUT,
    GROUP_INITIAL_REBALANCE_DELAY,
    GROUP_MAX_SIZE,
    *CONSUMER_GROUP_SETTINGS,
    ENDPOINT_GROUPS_MAX_BYTES,
    OFFSET_METADATA_MAX,
    OFFSETS_RETENTION,
    OFFSETS_RETENTION_CHECK,
    OFFSETS_TOPIC_PARTITIONS,
    OFFSETS_TOPIC_SEGMENT,
    NUM_PARTITIONS,
    WRITE_CACHING,
    STORAGE_MIN_FREE_BYTES,
    TRANSACTIONAL_ID_EXPIRATION,
    TRANSACTION_STATE_PARTITIONS,
    TRANSACTION_STATE_SEGMENT,
    TRANSACTION_ABORT_INTERVAL,
    TRANSACTION_REMOVE_INTERVAL,
    ENDPOINT_TRANSACTIONS_MAX_BYTES,
    NODE_ID,
    AUTO_CREATE_TOPICS,
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
