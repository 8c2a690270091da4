"""DAGs of a user's: one offloads another log directory, one starts with every event of a topic, one has a sensor that waits."""

import os
from typing import Any

from airflow.sdk import DAG, Param, task
from tiering_offload import tiering_offload

from tiering.airflow.assets import archived_asset
from tiering.airflow.sensors import ArchivedThroughSensor

by_hand = tiering_offload("by_hand", log_dir=os.environ["OTHER_LOGS"], queue="broker-2", schedule=None)

archived = archived_asset(os.environ["ARCHIVE_URL"], "g-txn")

with DAG("on_every_offload", schedule=[archived]):

    @task
    def told(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        return [event.extra for event in triggering_asset_events[archived]]

    told()

with DAG("when_archived", params={"topics": [], "through": Param(0, type="integer")}, render_template_as_native_obj=True):
    ArchivedThroughSensor(
        task_id="wait", topics="{{ params.topics }}", through="{{ params.through }}", poke_interval=1, deferrable=True
    )
