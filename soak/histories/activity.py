"""Whether a history has enough for its checks to say anything: a client that did nothing shows no anomaly."""

from collections import Counter
from collections.abc import Iterable

from histories.operations import History, Kind, Outcome

LEAST_A_MINUTE = {
    (Kind.SEND, Outcome.OK): 500, (Kind.TXN, Outcome.OK): 8, (Kind.TXN, Outcome.FAIL): 4, (Kind.POLL, Outcome.OK): 100,
    (Kind.COMMIT, Outcome.OK): 40, (Kind.COMMITTED, Outcome.OK): 10, (Kind.END_OFFSETS, Outcome.OK): 20,
}  # fmt: skip
"""A small part of what a minute has on two cores, even where others use them, too."""


def too_little(history: History, processes: Iterable[str], seconds: float) -> list[str]:
    """What a round of so many seconds had to have. A process may add to its name, after a dot."""
    done = Counter(one.process.partition(".")[0] for one in history if one.outcome is Outcome.OK)
    told = Counter((one.kind, one.outcome) for one in history)
    wrong = [f"client {process} has done nothing" for process in processes if not done[process]]
    for kind, least in LEAST_A_MINUTE.items():
        if told[kind] * 60 < least * seconds:
            wrong.append(f"only {told[kind]} operations are {' '.join(kind)}, of {least} a minute")
    return wrong
