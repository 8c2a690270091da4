"""Expires segments by retention, and deletes those that expired more than a day ago, by Spark: for very many partitions.

What is kept, and what is not, is as in the DAG `tiering_retention`: nothing is guessed, `retention.bytes` is of both tiers
together. The worker and every executor see `log_dir` at the same path. Only the worker reads `metadata_log_dir`.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from airflow.sdk import DAG, Param

from tiering.airflow.spark_commands import SparkExpireOperator


def tiering_retention_spark(  # the parameters are the interface of users' DAG files; most lines state them
    dag_id: str = "tiering_retention_spark",
    *,
    log_dir: str | None = None,
    metadata_log_dir: str | None = None,
    archive_alone: bool = False,
    schedule: str | None = None,
    master: str | None = "local[*]",
    conf: Mapping[str, str] = MappingProxyType({}),
    py_files: Sequence[str] = (),
    queue: str | None = None,
    tiering_conn_id: str | None = "tiering_default",
) -> DAG:
    """A DAG that expires segments of an archive's topics.

    `master`, `conf` and `py_files` are spark-submit's, and without a master the job runs by the worker's own Python; `queue` is
    that of the workers that have it.
    """
    where: dict[str, Any] = {"queue": queue} if queue is not None else {}
    with DAG(
        dag_id,
        schedule=schedule,
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        auto_register=False,  # who calls this in a file of theirs gets that DAG, and not the one below as well
        render_template_as_native_obj=True,
        default_args={"retries": 2, "retry_delay": timedelta(minutes=5), **where},
        params={
            "dry_run": Param(False, type="boolean", description="Only show what would expire."),
            "log_dir": Param(
                log_dir,
                type=["null", "string"],
                description="On worker and executors. Default: that of the connection, otherwise of the configuration.",
            ),
            "topics": Param([], type="array", items={"type": "string"}, description="Only topics that match; globs."),
            "settings": Param([], type="array", items={"type": "string"}, description="[TOPICS:]NAME=VALUE, by Kafka's names."),
            "archive_alone": Param(archive_alone, type="boolean", description="There is no local log."),
        },
        tags=["tiering"],
        doc_md=__doc__,
    ) as dag:
        SparkExpireOperator(
            task_id="expire",
            tiering_conn_id=tiering_conn_id,
            log_dir="{{ params.log_dir }}",
            metadata_log_dir=metadata_log_dir,
            topics="{{ params.topics }}",
            settings="{{ params.settings }}",
            archive_alone="{{ params.archive_alone }}",
            is_dry_run="{{ params.dry_run }}",
            master=master,
            conf=conf,
            py_files=py_files,
        )
    return dag


dag = tiering_retention_spark()
