"""Copies what brokers have rolled into the archive by Spark, for a log directory on storage that many machines mount.

The worker that runs the task, and every executor, see the log directory at the same path; so they do an archive that is a folder.
Several directories: a DAG each, in a file of yours beside this one:

    from tiering_offload_spark import tiering_offload_spark

    for broker in ("broker-1", "broker-2"):
        globals()[broker] = tiering_offload_spark(f"tiering_offload_spark_{broker}", log_dir=f"/mnt/{broker}", master="yarn")

Run it as often as you like, by hand, too: what is archived is not copied again. A task that is killed, retried, cleared or
doubled leaves one chain. It updates no assets: a sensor looks at the archive itself.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from airflow.sdk import DAG, Param

from tiering.airflow.spark_commands import SparkOffloadOperator


def tiering_offload_spark(  # the parameters are the interface of users' DAG files; most lines state them
    dag_id: str = "tiering_offload_spark",
    *,
    log_dir: str | None = None,
    schedule: str | None = None,
    master: str | None = "local[*]",
    conf: Mapping[str, str] = MappingProxyType({}),
    py_files: Sequence[str] = (),
    queue: str | None = None,
    tiering_conn_id: str | None = "tiering_default",
) -> DAG:
    """A DAG that offloads one log directory; `log_dir`: unless given, that of the connection, or of the configuration.

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
        default_args={"retries": 3, "retry_delay": timedelta(minutes=1), "retry_exponential_backoff": True, **where},
        params={
            "dry_run": Param(False, type="boolean", description="Only show what would be copied."),
            "log_dir": Param(
                log_dir,
                type=["null", "string"],
                description="On worker and executors. Default: that of the connection, otherwise of the configuration.",
            ),
            "topics": Param([], type="array", items={"type": "string"}, description="Only topics that match; globs."),
            "must_exist": Param(
                True, type="boolean", description="Do not create a new archive; set to false for the very first run."
            ),
            "bytes_per_second": Param(None, type=["null", "integer"], minimum=1, description="Limit for all tasks together."),
            "threads": Param(None, type=["null", "integer"], minimum=1, description="Partitions at a time, of each task."),
        },
        tags=["tiering"],
        doc_md=__doc__,
    ) as dag:
        SparkOffloadOperator(
            task_id="offload",
            tiering_conn_id=tiering_conn_id,
            log_dir="{{ params.log_dir }}",
            topics="{{ params.topics }}",
            must_exist="{{ params.must_exist }}",
            bytes_per_second="{{ params.bytes_per_second }}",
            threads="{{ params.threads }}",
            is_dry_run="{{ params.dry_run }}",
            master=master,
            conf=conf,
            py_files=py_files,
        )
    return dag


dag = tiering_offload_spark()
