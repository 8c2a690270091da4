"""A user's own file in the folder of DAGs: a DAG for each host, backfills, offload and retention by Spark, a restore."""

from datetime import UTC, datetime

from airflow.sdk import DAG
from tiering_backfill import tiering_backfill
from tiering_offload import tiering_offload
from tiering_offload_spark import tiering_offload_spark
from tiering_retention_spark import tiering_retention_spark

from tiering.airflow.operators import RestoreOperator

for host in ("broker-1", "broker-2"):
    globals()[host] = tiering_offload(f"tiering_offload_{host}", queue=host, log_dir=f"/var/lib/kafka/{host}")

daily = tiering_backfill(
    "daily", topics=["made"], schedule="@daily", master="local[1]", start_date=datetime(1970, 1, 1, tzinfo=UTC)
)

small = tiering_backfill("small", topics=["made"], schedule="@daily", master=None, start_date=datetime(1970, 1, 1, tzinfo=UTC))

many_logs = tiering_offload_spark("many_logs", master=None)
many = tiering_retention_spark("many", master=None)

with DAG("restore_by_hand", params={"to": "", "topics": ["*"]}, render_template_as_native_obj=True):
    RestoreOperator(task_id="restore", to="{{ params.to }}", topics="{{ params.topics }}")
