"""Expires segments by retention, and deletes those that expired more than a day ago unless a reader's pin covers them.

Nothing is guessed: what is to be kept stands in the configuration, or in the Param `settings`, such as `retention.ms=604800000`
or `orders*:retention.ms=-1`. A topic that its brokers compact, as their metadata in `log_dir` or `metadata_log_dir` says, is
expires only by a setting that names it, such as `state:retention.ms=604800000`. `retention.bytes` is of both tiers together:
give `queue` and `log_dir` of the broker's host, or `archive_alone` where there is no local log any more.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param

from tiering.airflow.operators import ExpireOperator


def tiering_retention(  # most lines state the parameters of the DAG
    dag_id: str = "tiering_retention",
    *,
    log_dir: str | None = None,
    metadata_log_dir: str | None = None,
    archive_alone: bool = False,
    queue: str | None = None,
    schedule: str | None = "@hourly",
    tiering_conn_id: str | None = "tiering_default",
) -> DAG:
    """A DAG that expires segments of an archive's topics. Its parameters are the interface of users' DAG files."""
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
                description="On the worker. Default: that of the connection, otherwise of the configuration.",
            ),
            "topics": Param([], type="array", items={"type": "string"}, description="Only topics that match; globs."),
            "settings": Param([], type="array", items={"type": "string"}, description="[TOPICS:]NAME=VALUE, by Kafka's names."),
            "archive_alone": Param(archive_alone, type="boolean", description="There is no local log."),
        },
        tags=["tiering"],
        doc_md=__doc__,
    ) as dag:
        ExpireOperator(
            task_id="retain",  # as it has been called in every history of runs
            tiering_conn_id=tiering_conn_id,
            log_dir="{{ params.log_dir }}",
            metadata_log_dir=metadata_log_dir,
            topics="{{ params.topics }}",
            settings="{{ params.settings }}",
            archive_alone="{{ params.archive_alone }}",
            is_dry_run="{{ params.dry_run }}",
        )
    return dag


dag = tiering_retention()
