"""What a downstream DAG waits for: a topic, as it is archived. An event says how far.

    from tiering.airflow.assets import archived_asset

    @dag(schedule=[archived_asset("s3://bucket/prefix", "orders")])

The event's `extra`: `topic`, `offsets` (by partition, the one after the last that is archived), `through_ms` (all partitions have
a record as late as this, ms since 1970; -1 if nothing of one of them is archived yet) and `through_ms_by_partition`.
"""

from urllib.parse import quote

from tiering.airflow.provider_info import CONNECTION_TYPE
from tiering.airflow.sdk import Asset


def archived_asset(archive_url: str, topic: str) -> Asset:
    """The asset of an archived topic. Asks nothing of anybody: the address is to be written as the connection has it."""
    scheme, separator, rest = archive_url.partition("://")
    place = f"{scheme}/{rest}" if separator else f"file/{archive_url}"
    parts = [quote(part, safe="@:=") for part in place.split("/") if part]
    return Asset(f"{CONNECTION_TYPE}://{'/'.join([*parts, topic])}")
