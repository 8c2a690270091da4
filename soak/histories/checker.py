"""The anomalies of a history."""

from histories import groups, order, values
from histories.anomalies import Anomaly
from histories.logs import Logs
from histories.operations import History

CHECKS = (
    values.of_offsets, values.lost, values.unseen, values.dirty, values.cyclic,
    order.polls, order.sends, order.ends, order.hanging, groups.commits, groups.consumed,
)  # fmt: skip


def anomalies(history: History) -> list[Anomaly]:
    """All that a correct broker could not have done, for clients that never deleted a record or set a position back."""
    logs = Logs(history)
    return [found for check in CHECKS for found in check(logs)]
