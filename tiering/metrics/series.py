"""Every metric, and the Kafka MBean that it corresponds to (RemoteStorageMetrics, BrokerTopicMetrics, Log, LogCleaner).

Names follow the JMX exporter's rules for Kafka (`lowercaseOutputName`, PerSec meters as `_total`), so existing dashboards and
alerts for Kafka's tiered storage work. A metric without an MBean is named `kafka_tiering_…`. Where the MBean has a topic, the
metric has the label `topic`; its sum over topics is Kafka's MBean without a topic.
"""

from dataclasses import dataclass
from typing import Final

_BEAN: Final = "kafka.server:type=BrokerTopicMetrics,name="
_KAFKA: Final = "kafka_server_brokertopicmetrics_"
_OURS: Final = "kafka_tiering_"


@dataclass(frozen=True, slots=True)
class Series:
    """A metric: a counter, whose name ends in _total, or a gauge. `bean` is "" if Kafka has no MBean for it."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    bean: str = ""

    @property
    def is_counter(self) -> bool:
        """Whether the value only grows, from 0 at the start of the process."""
        return self.name.endswith("_total")


def _kafka(bean: str, text: str, *labels: str) -> Series:
    name = bean.removesuffix("PerSec").lower() + ("_total" if bean.endswith("PerSec") else "")
    return Series(_KAFKA + name, text, labels, f"{_BEAN}{bean}{''.join(f',{label}=…' for label in labels)}")


def _cleaner(bean: str, text: str, *labels: str) -> Series:
    kind, _, name = bean.partition(".")
    full = f"kafka.log:type={kind},name={name}{''.join(f',{label}=…' for label in labels)}"
    return Series(f"kafka_log_{kind}_{name}".lower().replace("-", "_"), text, labels, full)


def _log(name: str, text: str) -> Series:
    bean = f"kafka.log:type=Log,name={name},topic=…,partition=…"
    return Series(f"kafka_log_log_{name.lower()}", text, ("topic", "partition"), bean)


def _own(name: str, text: str, *labels: str) -> Series:
    return Series(_OURS + name, text, labels)


COPY_BYTES: Final = _kafka("RemoteCopyBytesPerSec", "Bytes of the log files of archived segments.", "topic")
COPY_REQUESTS: Final = _kafka("RemoteCopyRequestsPerSec", "Attempts to copy a segment.", "topic")
COPY_ERRORS: Final = _kafka("RemoteCopyErrorsPerSec", "Failed copies and failed plans for copies.", "topic")
FETCH_BYTES: Final = _kafka("RemoteFetchBytesPerSec", "Bytes read from the store, manifests included.")
FETCH_REQUESTS: Final = _kafka("RemoteFetchRequestsPerSec", "Reads from the store.")
FETCH_ERRORS: Final = _kafka("RemoteFetchErrorsPerSec", "Failed reads from the store; most are retried.")
DELETE_REQUESTS: Final = _kafka(
    "RemoteDeleteRequestsPerSec", "Objects and segments that retention or the sweep tried to delete.", "topic"
)
DELETE_ERRORS: Final = _kafka("RemoteDeleteErrorsPerSec", "Failed runs of retention and of the sweep.", "topic")
COPY_LAG_BYTES: Final = _kafka("RemoteCopyLagBytes", "Bytes of inactive segments that are not archived yet.", "topic")
COPY_LAG_SEGMENTS: Final = _kafka("RemoteCopyLagSegments", "Inactive segments that are not archived yet.", "topic")
DELETE_LAG_BYTES: Final = _kafka("RemoteDeleteLagBytes", "Bytes that have expired and are still stored.", "topic")
DELETE_LAG_SEGMENTS: Final = _kafka("RemoteDeleteLagSegments", "Segments that have expired and are still stored.", "topic")
METADATA_COUNT: Final = _kafka("RemoteLogMetadataCount", "Segments in the manifests.", "topic")
SIZE_BYTES: Final = _kafka("RemoteLogSizeBytes", "Bytes of the log files of these segments.", "topic")

COPY_LAG_SECONDS: Final = _own(
    "copy_lag_seconds", "How long the oldest inactive segment has been waiting to be archived.", "topic"
)
UNPROTECTED_BYTES: Final = _own(
    "unprotected_bytes", "Bytes of the local log that are not archived, the active segment included.", "topic", "partition"
)
UNPROTECTED_RECORDS: Final = _own(
    "unprotected_records", "Offsets that are not archived, up to the high watermark.", "topic", "partition"
)
UNPROTECTED_SECONDS: Final = _own("unprotected_seconds", "Age of the oldest record that is not archived.", "topic", "partition")
UNPROTECTED_DELETED: Final = _own(
    "unprotected_deletion_timestamp_seconds",
    "When the broker deletes the oldest record that is not archived, if known.",
    "topic",
    "partition",
)
LOCAL_RETENTION: Final = _own("local_retention_seconds", "The retention time of the topic on its brokers, if known.", "topic")
LOST: Final = _own(
    "lost_offsets_total",
    "Offsets that were lost before they were archived, without those that were acknowledged.",
    "topic",
    "partition",
)
WAITING: Final = _own("waiting_segments", "Inactive segments that are not yet below the last stable offset.", "topic")
REPLACED: Final = _own(
    "replaced_segments_total", "Segments that were archived again because the log cleaner had compacted them.", "topic"
)
COPIED_TIME: Final = _own("copy_last_success_timestamp_seconds", "When a segment was last archived.", "topic")
PARTITIONS: Final = _own("partitions", "Partitions in the log directories of the agent.", "topic")
FAILING: Final = _own("partitions_failing", "Partitions with a current error.", "topic")
SUCCESS_TIME: Final = _own("last_success_timestamp_seconds", "When a partition was last checked or archived without an error.")
LOOP_TIME: Final = _own("agent_loop_timestamp_seconds", "When the agent's main loop last ran.")
START_TIME: Final = _own("agent_start_time_seconds", "When the agent started.")
PAUSED: Final = _own("agent_paused", "1 while the agent is paused.")
SCRUBS: Final = _own("agent_scrubs", "1 if the agent has to scrub: agent.tasks contains scrub.")
RUNNING: Final = _own("agent_jobs_running", "Jobs that are running.")
QUEUED: Final = _own("agent_jobs_waiting", "Jobs that are due and wait for a free thread.")
STORE_FAILING: Final = _own("store_failing", "1 while the store fails or does not respond.")
STORE_FAILING_SINCE: Final = _own("store_failing_since_timestamp_seconds", "Since when the store fails; absent while it works.")
SWEEP_TIME: Final = _own("sweep_last_timestamp_seconds", "When the last complete sweep started.")
SCRUB_TIME: Final = _own("scrub_last_timestamp_seconds", "When the last complete scrub ended.")
SCRUB_ANOMALIES: Final = _own("scrub_anomalies", "Anomalies of the last scrub, at most 100 per topic.")
SCRUB_FAILED: Final = _own("scrub_failed_topics", "Topics that the last scrub could not finish.")
SCRUB_UNREADABLE: Final = _own(
    "scrub_unreadable_segments",
    "Segments that the last scrub could not read for want of a key or of rights, at most 100 per topic.",
)
STORE_REQUESTS: Final = _own("store_requests_total", "Requests to the store.", "verb")
STORE_FAILURES: Final = _own("store_failures_total", "Failed requests to the store; most are retried.", "verb")
STORE_BYTES: Final = _own("store_bytes_total", "Bytes of objects that requests transferred.", "verb")
STORE_SECONDS: Final = _own("store_seconds_total", "Seconds spent waiting for the store.", "verb")

OFFLINE_DIRS: Final = _own("local_tier_offline_log_dirs", "Log directories of our own whose disk has failed.")
LOG_START: Final = _own("log_start_offset", "First offset of a log of our own, over both tiers.", "topic", "partition")
LOG_END: Final = _own("log_end_offset", "Offset after the last record of a log of our own.", "topic", "partition")
LOCAL_LOG_START: Final = _own(
    "local_log_start_offset", "First offset of a log of our own that is still on the disk.", "topic", "partition"
)
LOG_SIZE: Final = _log("Size", "Bytes of the log files of a log of our own that are on the disk.")
LOG_SEGMENTS: Final = _log("NumLogSegments", "Segments of a log of our own that are on the disk.")
UNFLUSHED: Final = _own(
    "unflushed_records", "Offsets of a log of our own that are not synced to the disk yet.", "topic", "partition"
)
TIER_MISSING: Final = _own("local_tier_missing_partitions", "Partitions of our own topics without a log in any log directory.")
TIER_PROBLEMS: Final = _own("local_tier_problems_total", "Errors of background tasks on log directories of our own.")
TIER_TICK: Final = _own("local_tier_tick_timestamp_seconds", "When the background tasks of log directories of our own last ran.")

CLEANER_RECOPY: Final = _cleaner(
    "LogCleaner.cleaner-recopy-percent", "Bytes that the log cleaner's last rounds kept, in percent of what they read."
)
CLEANER_TIME: Final = _cleaner("LogCleaner.max-clean-time-secs", "Seconds of the log cleaner's last round, the longest one.")
CLEANER_BUFFER: Final = _cleaner(
    "LogCleaner.max-buffer-utilization-percent", "How full the last round's map of keys was, the fullest of its threads."
)
CLEANER_DELAY: Final = _cleaner(
    "LogCleaner.max-compaction-delay-secs", "Seconds by which a log's cleaning is late by max.compaction.lag.ms, the latest log."
)
CLEANER_DEAD: Final = _cleaner("LogCleaner.DeadThreadCount", "Threads of the log cleaner that ended with an exception.")
UNCLEANABLE: Final = _cleaner(
    "LogCleanerManager.uncleanable-partitions-count",
    "Partitions that the log cleaner leaves alone after an error, until a restart.",
    "logdirectory",
)
UNCLEANABLE_BYTES: Final = _cleaner(
    "LogCleanerManager.uncleanable-bytes", "Bytes of these partitions that would be due to be cleaned.", "logdirectory"
)
CLEANER_DIRTY: Final = _cleaner("LogCleanerManager.max-dirty-percent", "The dirty part of the dirtiest log, in percent.")
CLEANER_IDLE: Final = _cleaner(
    "LogCleanerManager.time-since-last-run-ms", "Milliseconds since the log cleaner last looked for something to clean."
)

ALL: Final = (
    COPY_BYTES, COPY_REQUESTS, COPY_ERRORS, FETCH_BYTES, FETCH_REQUESTS, FETCH_ERRORS, DELETE_REQUESTS, DELETE_ERRORS,
    COPY_LAG_BYTES, COPY_LAG_SEGMENTS, DELETE_LAG_BYTES, DELETE_LAG_SEGMENTS, METADATA_COUNT, SIZE_BYTES,
    COPY_LAG_SECONDS,
    UNPROTECTED_BYTES, UNPROTECTED_RECORDS, UNPROTECTED_SECONDS, UNPROTECTED_DELETED, LOCAL_RETENTION, LOST,
    WAITING, REPLACED, COPIED_TIME, PARTITIONS, FAILING, SUCCESS_TIME, LOOP_TIME, START_TIME, PAUSED, SCRUBS, RUNNING, QUEUED,
    STORE_FAILING, STORE_FAILING_SINCE, SWEEP_TIME, SCRUB_TIME, SCRUB_ANOMALIES, SCRUB_FAILED, SCRUB_UNREADABLE,
    STORE_REQUESTS, STORE_FAILURES, STORE_BYTES, STORE_SECONDS,
    OFFLINE_DIRS, LOG_START, LOG_END, LOCAL_LOG_START, LOG_SIZE, LOG_SEGMENTS, UNFLUSHED, TIER_MISSING, TIER_PROBLEMS, TIER_TICK,
    CLEANER_RECOPY, CLEANER_TIME, CLEANER_BUFFER, CLEANER_DELAY, CLEANER_DEAD,
    UNCLEANABLE, UNCLEANABLE_BYTES, CLEANER_DIRTY, CLEANER_IDLE,
)  # fmt: skip

PROCESS_SERIES: Final = (
    "process_cpu_seconds_total", "process_open_fds", "process_max_fds", "process_resident_memory_bytes",
    "process_virtual_memory_bytes", "process_start_time_seconds",
)  # fmt: skip
"""What Prometheus' own client tells of any process, where the system has /proc."""

NOT_EXPORTED: Final = {
    "RemoteLogSizeComputationTime": "the manifest contains the size, so nothing is computed",
    "BuildRemoteLogAuxStateRequestsPerSec": "no follower builds its state from the archive",
    "BuildRemoteLogAuxStateErrorsPerSec": "no follower builds its state from the archive",
    "RemoteLogManagerTasksAvgIdlePercent": "the running and the waiting jobs are counted instead",
    "RemoteLogReaderTaskQueueSize": "the agent serves no fetches",
    "RemoteLogReaderAvgIdlePercent": "the agent serves no fetches",
}
"""Beans of RemoteStorageMetrics that no series stands for, and why."""


def row(series: Series) -> dict[str, str]:
    """A row of the table of all metrics."""
    return {
        "series": series.name,
        "type": "counter" if series.is_counter else "gauge",
        "labels": ", ".join(series.labels),
        "kafka": series.bean,
        "what": series.help,
    }
