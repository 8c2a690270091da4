"""Notes what clients do, from many threads."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from histories.operations import History, Kind, Operation, Outcome


@dataclass
class Recorder:
    """`stopping` tells the clients to end."""

    stopping: threading.Event = field(default_factory=threading.Event)
    counts: Counter[str] = field(default_factory=Counter)
    """What happened besides, such as errors that clients were told."""
    open: dict[int, Callable[[], None]] = field(default_factory=dict)
    """What notes each transaction that has begun, if its client never comes to its end."""
    _operations: list[Operation] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _values: Counter[str] = field(default_factory=Counter)

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def new_value(self, process: str) -> str:
        """One that nobody else sends."""
        with self._lock:
            self._values[process] += 1
            return f"{process}.{self._values[process]}"

    def note(self, process: str, kind: Kind, invoked_ns: int, outcome: Outcome = Outcome.OK, **fields: Any) -> None:
        done = Operation(0, process, kind, outcome, invoked_ns, self.now_ns(), **fields)
        with self._lock:
            self._operations.append(replace(done, index=len(self._operations)))
            self.counts[f"{kind} {outcome}"] += 1
            self.counts["records read"] += len(fields.get("polled", ())) if kind is Kind.POLL else 0

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def history(self) -> History:
        with self._lock:
            return tuple(self._operations)
