"""Deletes what failed copies and lost commits have left behind: objects that no manifest names, when they are old enough.

Where it finds any, it fences a task that is copying into that partition; that task fails as fenced and is retried.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param

from tiering.airflow.operators import SweepOperator


def tiering_sweep(
    dag_id: str = "tiering_sweep", *, schedule: str | None = "@daily", tiering_conn_id: str | None = "tiering_default"
) -> DAG:
    """A DAG that sweeps an archive; any worker can run it."""
    with DAG(
        dag_id,
        schedule=schedule,
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        auto_register=False,  # who calls this in a file of theirs gets that DAG, and not the one below as well
        render_template_as_native_obj=True,
        default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
        params={
            "dry_run": Param(False, type="boolean", description="Only show what would be deleted."),
            "topics": Param([], type="array", items={"type": "string"}, description="Only topics that match; globs."),
            "grace_ms": Param(None, type=["null", "integer"], minimum=0, description="The age at which an object is deleted."),
        },
        tags=["tiering"],
        doc_md=__doc__,
    ) as dag:
        SweepOperator(
            task_id="sweep",
            tiering_conn_id=tiering_conn_id,
            topics="{{ params.topics }}",
            grace_ms="{{ params.grace_ms }}",
            is_dry_run="{{ params.dry_run }}",
        )
    return dag


dag = tiering_sweep()
