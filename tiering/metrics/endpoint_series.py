"""Every metric of the endpoint, and the MBean of a broker that it corresponds to. Names follow the rules of `series`.

A histogram of Kafka has a value a quantile, of the last 1,024 requests.
"""

from typing import Final

from tiering.metrics.series import FETCH_BYTES, FETCH_ERRORS, FETCH_REQUESTS, Series

QUANTILES: Final = (0.5, 0.95, 0.99, 0.999)

_REQUESTS: Final = "kafka.network:type=RequestMetrics,name="
_TOPICS: Final = "kafka.server:type=BrokerTopicMetrics,name="
_SESSIONS: Final = "kafka.server:type=FetchSessionCache,name="
_GROUPS: Final = "kafka.coordinator.group:type=GroupMetadataManager,name=Num"
_ALL_GROUPS: Final = "kafka.server:type=group-coordinator-metrics,name="


def _of(bean: str, text: str, *labels: str) -> Series:
    domain, _, rest = bean.partition(":type=")
    kind, _, name = rest.partition(",name=")
    counter = "_total" if name.endswith("PerSec") else ""
    words = f"{domain.replace('.', '_')}_{kind}_{name.removesuffix('PerSec')}{counter}".lower().replace("-", "_")
    beans = [label for label in labels if label != "quantile"]
    return Series(words, text, labels, bean + "".join(f",{label}=…" for label in beans))


REQUESTS: Final = _of(f"{_REQUESTS}RequestsPerSec", "Requests that were answered.", "request", "version")
ERRORS: Final = _of(
    f"{_REQUESTS}ErrorsPerSec",
    "Errors in answers: of a partition, a group or whatever else was asked for. What went well is not counted as `NONE`.",
    "request",
    "error",
)
TOTAL_TIME: Final = _of(
    f"{_REQUESTS}TotalTimeMs",
    "Ms from a request to the end of its answer, with the time that a fetch waits.",
    "request",
    "quantile",
)
SEND_TIME: Final = _of(f"{_REQUESTS}ResponseSendTimeMs", "Ms that sending an answer took.", "request", "quantile")
REQUEST_BYTES: Final = _of(f"{_REQUESTS}RequestBytes", "Bytes of a request.", "request", "quantile")

BYTES_IN: Final = _of(f"{_TOPICS}BytesInPerSec", "Bytes of batches that were appended for producers.", "topic")
MESSAGES_IN: Final = _of(f"{_TOPICS}MessagesInPerSec", "Records that were appended for producers.", "topic")
PRODUCES: Final = _of(f"{_TOPICS}TotalProduceRequestsPerSec", "Appends to a partition that producers asked for.", "topic")
FAILED_PRODUCES: Final = _of(
    f"{_TOPICS}FailedProduceRequestsPerSec", "Those that failed, but for batches that are too large or damaged.", "topic"
)
BYTES_OUT: Final = _of(f"{_TOPICS}BytesOutPerSec", "Bytes of batches that clients were sent.", "topic")
FETCHES: Final = _of(f"{_TOPICS}TotalFetchRequestsPerSec", "Fetches of a partition.", "topic")
FAILED_FETCHES: Final = _of(
    f"{_TOPICS}FailedFetchRequestsPerSec", "Those that failed because of a store, a disk or a damaged batch.", "topic"
)

SESSIONS: Final = _of(f"{_SESSIONS}NumIncrementalFetchSessions", "Fetch sessions.")
SESSION_PARTITIONS: Final = _of(f"{_SESSIONS}NumIncrementalFetchPartitionsCached", "Partitions of all fetch sessions.")
SESSION_EVICTIONS: Final = _of(f"{_SESSIONS}IncrementalFetchSessionEvictionsPerSec", "Fetch sessions that made room for others.")

GROUPS: Final = _of(f"{_ALL_GROUPS}group-count", "Groups by their protocol: classic or consumer (KIP-848).", "protocol")
CONSUMER_GROUPS: Final = _of(f"{_ALL_GROUPS}consumer-group-count", "Groups of the consumer protocol by their state.", "state")
CLASSIC_GROUPS: Final = _of(f"{_GROUPS}Groups", "Groups of the classic protocol.")
CLASSIC_BY_STATE: Final = {
    state: _of(f"{_GROUPS}Groups{state}", f"Those that are in the state {state}.")
    for state in ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
}
GROUP_OFFSETS: Final = _of(f"{_GROUPS}Offsets", "Offsets that groups have committed, and that have not expired.")

CONNECTIONS: Final = Series(
    "kafka_server_socket_server_metrics_connection_count",
    "Connections that are open.",
    (),
    "kafka.server:type=socket-server-metrics,name=connection-count",
)

DENIED: Final = Series(
    "kafka_tiering_endpoint_denied_operations_total",
    "Operations that a client asked for and may not do.",
    ("operation", "resource"),
)
CONNECTIONS_MAX: Final = Series("kafka_tiering_endpoint_connections_max", "How many connections may be open.")
MEMORY: Final = Series("kafka_tiering_endpoint_memory_bytes", "Memory of the requests and answers under way.")
MEMORY_MAX: Final = Series("kafka_tiering_endpoint_memory_max_bytes", "The memory above which no further request is begun.")
START_TIME: Final = Series("kafka_tiering_endpoint_start_time_seconds", "When the endpoint started.")

OF_ENDPOINT: Final = (
    REQUESTS, ERRORS, DENIED, TOTAL_TIME, SEND_TIME, REQUEST_BYTES, BYTES_OUT, FETCHES, FAILED_FETCHES,
    BYTES_IN, MESSAGES_IN, PRODUCES, FAILED_PRODUCES,
    SESSIONS, SESSION_PARTITIONS, SESSION_EVICTIONS, CONNECTIONS, CONNECTIONS_MAX, MEMORY, MEMORY_MAX, START_TIME,
    GROUPS, CONSUMER_GROUPS, CLASSIC_GROUPS, *CLASSIC_BY_STATE.values(), GROUP_OFFSETS,
    FETCH_BYTES, FETCH_REQUESTS, FETCH_ERRORS,
)  # fmt: skip

TRANSACTIONS: Final = Series("kafka_tiering_transactions", "Transactional ids by the state of their transaction.", ("state",))
USABLE_BYTES: Final = Series(
    "kafka_tiering_log_dir_usable_bytes", "Free bytes of the volume of a log directory of its own.", ("logdirectory",)
)
MIN_FREE_BYTES: Final = Series(
    "kafka_tiering_log_dir_min_free_bytes", "With less free than this, producers are refused: `storage.min.free.bytes`."
)
OF_OWN_LOGS: Final = (TRANSACTIONS, USABLE_BYTES, MIN_FREE_BYTES)
"""What there is besides, together with `series.ALL`, where the endpoint has log directories of its own."""
