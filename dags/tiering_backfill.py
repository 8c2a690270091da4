"""Archived records of an interval to Parquet, each offset once, by Spark.

It waits until the topics are archived through the interval's end, so that no record of it comes late; a partition that gets no
records holds it back, unless `wait_for` names the others. Then the interval is resolved, once: the target keeps the offsets
under this run's name, and whatever is retried or cleared is of the same. Where retention has deleted some of them meanwhile the
run says so and fails; what is in the target already is not asked for again.

By hand: give `topics`, `to`, `from_timestamp` and `to_timestamp`. Every day, in a file of yours beside this one:

    from tiering_backfill import tiering_backfill

    daily = tiering_backfill("orders_daily", topics=["orders"], to="s3://bucket/parquet", schedule="@daily", master="yarn")
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param

from tiering.airflow.sensors import ArchivedThroughSensor
from tiering.airflow.spark_operator import SparkJobOperator

FROM = "{{ params.from_timestamp or data_interval_start.isoformat() }}"
TO = "{{ params.to_timestamp or data_interval_end.isoformat() }}"


def tiering_backfill(  # the parameters are the interface of users' DAG files; most lines state them
    dag_id: str = "tiering_backfill",
    *,
    topics: Sequence[str] = (),
    to: str = "",
    wait_for: Sequence[int] = (),
    schedule: str | None = None,
    catchup: bool = False,
    start_date: datetime = datetime(2026, 1, 1, tzinfo=UTC),
    master: str | None = "local[*]",
    conf: Mapping[str, str] = MappingProxyType({}),
    py_files: Sequence[str] = (),
    queue: str | None = None,
    tiering_conn_id: str | None = "tiering_default",
) -> DAG:
    """A DAG that backfills the intervals of `schedule`, a cron expression; `catchup` from `start_date` on.

    `wait_for`: only these partitions of each topic, because the others get no records; all unless given.
    `master`, `conf` and `py_files` are spark-submit's, and without a master the job runs by the worker's own Python; `queue` is
    that of the workers that have it.
    """
    where: dict[str, Any] = {"queue": queue} if queue is not None else {}
    with DAG(
        dag_id,
        schedule=None if schedule is None else CronDataIntervalTimetable(schedule, timezone="UTC"),
        start_date=start_date,
        catchup=catchup,
        max_active_runs=1,
        auto_register=False,  # who calls this in a file of theirs gets that DAG, and not the one below as well
        render_template_as_native_obj=True,
        default_args={"retries": 2, "retry_delay": timedelta(minutes=5), "tiering_conn_id": tiering_conn_id, **where},
        params={
            "topics": Param(list(topics), type="array", items={"type": "string"}, description="Topics that match; globs."),
            "to": Param(to, type="string", description="The folder for the Parquet files: a path or an fsspec URL."),
            "by": Param("date", enum=["date", "hour", "none"], description="How files are partitioned by time, in UTC."),
            "from_timestamp": Param(
                None, type=["null", "string"], description="ISO 8601. Default: the start of the data interval."
            ),
            "to_timestamp": Param(None, type=["null", "string"], description="ISO 8601. Default: the end of the data interval."),
            "wait_for": Param(
                list(wait_for),
                type="array",
                items={"type": "integer"},
                description="Wait only for these partitions of each topic. Default: all.",
            ),
        },
        tags=["tiering"],
        doc_md=__doc__,
    ) as dag:
        asked = [
            *(("--topic", "{{ params.topics }}"), ("--to", "{{ params.to }}"), ("--by", "{{ params.by }}")),
            *(("--from-timestamp", FROM), ("--to-timestamp", TO), ("--run", "{{ dag.dag_id }}/{{ run_id }}")),
        ]
        wait = ArchivedThroughSensor(
            task_id="wait", topics="{{ params.topics }}", partitions="{{ params.wait_for }}", through=TO, deferrable=True
        )
        resolve = SparkJobOperator(task_id="resolve", job="backfill", arguments=[*asked, "--resolve-only"])
        write = SparkJobOperator(task_id="backfill", job="backfill", arguments=asked, master=master, conf=conf, py_files=py_files)
        wait >> resolve >> write
    return dag


dag = tiering_backfill()
