"""Notes what clients do, from many threads.

Without a lock: librdkafka's handles are freed while an exception is on its way, too, and tell then what was not delivered. A lock
that is taken in such a call is never released, since Python takes the exception for one of taking it.
"""

import itertools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from histories.operations import History, Kind, Operation, Outcome


@dataclass
class Recorder:
    """`stopping` tells the clients to end."""

    stopping: threading.Event = field(default_factory=threading.Event)
    open: dict[int, Callable[[], None]] = field(default_factory=dict)
    """What notes each transaction that has begun, if its client never comes to its end."""
    _operations: list[Operation] = field(default_factory=list)
    _counted: list[str] = field(default_factory=list)
    _values: dict[str, Iterator[int]] = field(default_factory=lambda: defaultdict(lambda: itertools.count(1)))

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def new_value(self, process: str) -> str:
        """One that nobody else sends. Only one thread asks for those of a process."""
        return f"{process}.{next(self._values[process])}"

    def note(self, process: str, kind: Kind, invoked_ns: int, outcome: Outcome = Outcome.OK, **fields: Any) -> None:
        self._operations.append(Operation(0, process, kind, outcome, invoked_ns, self.now_ns(), **fields))

    def count(self, what: str) -> None:
        self._counted.append(what)

    @property
    def counts(self) -> Counter[str]:
        """What happened besides, such as errors that clients were told; operations by kind and outcome; and records read."""
        done = tuple(self._operations)
        polled = sum(len(one.polled) for one in done if one.kind is Kind.POLL)
        told = Counter(f"{one.kind} {one.outcome}" for one in done)
        return told + Counter(tuple(self._counted)) + Counter({"records read": polled})

    def history(self) -> History:
        return tuple(replace(one, index=index) for index, one in enumerate(tuple(self._operations)))
