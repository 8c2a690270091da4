"""Copies what brokers have rolled into the archive: plan, then a task a partition, then word of how far topics are archived.

Tasks read a log directory, so they run on its host, by a worker there that serves a queue of its own
(`airflow celery worker --queues broker-1`). One host: have this file say `tiering_offload(queue="broker-1")`. Several: a DAG
each, in a file of yours beside this one:

    from tiering_offload import tiering_offload

    for host in ("broker-1", "broker-2"):
        globals()[host] = tiering_offload(f"tiering_offload_{host}", queue=host, log_dir="/var/lib/kafka/data")

Run it as often as you like, by hand, too: what is archived is not copied again. A task that is killed, retried, cleared or
doubled leaves one chain.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param

from tiering.airflow.operators import ArchivedThroughOperator, OffloadOperator, OffloadPlanOperator


def tiering_offload(  # most lines state the parameters of the DAG
    dag_id: str = "tiering_offload",
    *,
    log_dir: str | None = None,
    queue: str | None = None,
    pool: str = "tiering",
    schedule: str | None = "*/15 * * * *",
    tiering_conn_id: str | None = "tiering_default",
) -> DAG:
    """A DAG that offloads one log directory; `log_dir`: unless given, that of the connection, or of the host's configuration.

    `pool` bounds how many partitions are copied at a time over all hosts: `airflow pools set tiering 8 "copies at a time"`.
    """
    shared: dict[str, Any] = {"tiering_conn_id": tiering_conn_id}
    shared |= {name: f"{{{{ params.{name} }}}}" for name in ("log_dir", "must_exist", "bytes_per_second")}
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
                description="On the worker. Default: that of the connection, otherwise of the configuration.",
            ),
            "topics": Param([], type="array", items={"type": "string"}, description="Only topics that match; globs."),
            "must_exist": Param(
                True, type="boolean", description="Do not create a new archive; set to false for the very first run."
            ),
            "bytes_per_second": Param(None, type=["null", "integer"], minimum=1, description="Limit for each task."),
        },
        tags=["tiering"],
        doc_md=__doc__,
    ) as dag:
        plan = OffloadPlanOperator(task_id="plan", topics="{{ params.topics }}", is_dry_run="{{ params.dry_run }}", **shared)
        copied = OffloadOperator.partial(
            task_id="offload", pool=pool, map_index_template="{{ task.partitions[0] }}", **shared
        ).expand(partitions=plan.output)
        archived_through = ArchivedThroughOperator(
            task_id="tell", tiering_conn_id=tiering_conn_id, partitions=plan.output, trigger_rule="none_failed"
        )
        copied >> archived_through
    return dag


dag = tiering_offload()
