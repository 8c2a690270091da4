"""Proves that an archive is what its manifests say. An anomaly fails the run for good: look at its log and the runbook.

Every week all manifests, objects' sizes and offsets; with `deep` every batch, too, of a `sample` of segments if they are many.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Param

from tiering.airflow.operators import ScrubOperator


def tiering_scrub(
    dag_id: str = "tiering_scrub", *, schedule: str | None = "@weekly", tiering_conn_id: str | None = "tiering_default"
) -> DAG:
    """A DAG that scrubs an archive; any worker can run it."""
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
            "topics": Param([], type="array", items={"type": "string"}, description="Only topics that match; globs."),
            "deep": Param(False, type="boolean", description="Read all segments."),
            "sample": Param(
                None, type=["null", "number"], minimum=0, maximum=1, description="Only this fraction of the segments."
            ),
            "requests_max": Param(None, type=["null", "integer"], minimum=1, description="Limit of store requests."),
        },
        tags=["tiering"],
        doc_md=__doc__,
    ) as dag:
        ScrubOperator(
            task_id="scrub",
            tiering_conn_id=tiering_conn_id,
            topics="{{ params.topics }}",
            deep="{{ params.deep }}",
            sample="{{ params.sample }}",
            requests_max="{{ params.requests_max }}",
        )
    return dag


dag = tiering_scrub()
