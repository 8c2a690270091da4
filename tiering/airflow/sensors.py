"""Waits until topics are archived through a time."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from local_log.errors import LogError, Unavailable
from tiering.airflow.command_operator import listed_words
from tiering.airflow.hooks import TieringHook
from tiering.airflow.sdk import AirflowFailException, BaseSensorOperator, Context, conf
from tiering.airflow.triggers import ArchivedThroughTrigger, still_behind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ArchivedThroughSensor(BaseSensorOperator):
    """Succeeds when every partition of `topics` has a record in the archive that is as late as `through`.

    Then all offsets of an interval that ends there are archived. A partition without new records delays it, since its active
    segment is not archived, and so does one of which nothing is archived yet; in this case list the `partitions` to wait for.
    `through`: a datetime, ms since 1970, or ISO 8601. With `deferrable` no worker waits.
    """

    template_fields: Sequence[str] = ("tiering_conn_id", "topics", "through", "partitions")

    def __init__(
        self,
        *,
        topics: Sequence[str] | str,
        through: datetime | int | str,
        partitions: Sequence[int] | str = (),
        tiering_conn_id: str | None = TieringHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topics = topics
        self.through = through
        self.partitions = partitions
        self.tiering_conn_id = tiering_conn_id
        self.deferrable = deferrable

    def poke(self, context: Context) -> bool:
        """Looks once. Raises AirflowFailException where waiting makes no sense."""
        trigger = self._trigger()
        try:
            waiting = still_behind(trigger.archive_url, trigger.topics, trigger.through_ms, trigger.partitions)
        except Unavailable as e:
            self.log.warning("%s", e)
            return False
        except LogError as e:
            raise AirflowFailException(str(e)) from e
        if waiting:
            self.log.info("not archived through %d yet: %s", trigger.through_ms, ", ".join(waiting))
        return not waiting

    def execute(self, context: Context) -> Any:
        """Waits here, or has the triggerer wait."""
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            self.defer(trigger=self._trigger(), method_name="execute_complete", timeout=timedelta(seconds=self.timeout))
        return None

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> None:
        """Goes on after the trigger. Raises AirflowFailException where it says that waiting makes no sense."""
        if "error" in event:
            raise AirflowFailException(event["error"])

    def _trigger(self) -> ArchivedThroughTrigger:
        url, partitions = TieringHook(self.tiering_conn_id).archive_url(), [int(p) for p in listed_words(self.partitions)]
        return ArchivedThroughTrigger(url, listed_words(self.topics), ms_of(self.through), partitions, self.poke_interval)


def ms_of(time: datetime | float | str) -> int:
    """Milliseconds since 1970, rounded up. Raises AirflowFailException."""
    if isinstance(time, int):
        return time
    try:
        read = time if isinstance(time, datetime) else datetime.fromisoformat(str(time))
    except ValueError as e:
        raise AirflowFailException(f"through={time!r} is not a time; give a datetime, ms since 1970 or ISO 8601") from e
    if read.tzinfo is None:
        raise AirflowFailException(f"through={time!r} has no time zone; give one, such as 2026-11-21T05:00:00Z")
    return -((_EPOCH - read) // timedelta(milliseconds=1))
