"""The network between clients and an endpoint: connections that break before or after a request had its effect.

A request of a connection that has broken may reach the endpoint minutes later, when its client has asked again over another one.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, Protocol

from asked_endpoint import response_of

from simulated.schedule import MINUTE_MS, Actor, Schedule
from tiering.endpoint.protocol.api_keys import Api
from tiering.endpoint.protocol.requests import RequestHeader, write_request

CORRELATION_ID = 99
"""Of all requests: a connection has one at a time."""
REQUEST_FAULTS = ("unavailable", "killed before", "answer lost", "late", "killed after")
"""What may become of a request: it is lost, its client dies, its answer is lost, it arrives when nobody waits for it any more."""
LATE_MS_MAX = 5 * MINUTE_MS
ANSWER_MS_MAX = 2 * MINUTE_MS
"""So long a client waits for an answer, as long as a rebalance may take."""


SAID = ("error_code", "producer_epoch", "committed", "partition_index", "committed_offset")
"""What a story tells of messages in any case."""


class NoAnswer(Exception):  # it is no error: the client asks again
    """The connection has broken. Whether the request had its effect, nobody knows."""


class Gone(BaseException):
    """The process that answers has ended."""


class Asked(NamedTuple):
    """A request as it was sent."""

    api: Api
    version: int
    message: Any

    @property
    def frame(self) -> bytes:
        """With its size in front."""
        return write_request(RequestHeader(self.api, self.version, CORRELATION_ID, "client"), self.message)


class Process(Protocol):
    """The endpoint of the moment. `answer` gives a whole frame; it raises NoAnswer if the connection is closed, and Gone."""

    def connect(self) -> int: ...

    def answer(self, actor: Actor, number: int, asked: Asked) -> bytes: ...

    def disconnect(self, number: int) -> None: ...

    def take_late(self, asked: Asked) -> None: ...


class _Late(NamedTuple):
    due_ms: int
    process: Process
    asked: Asked


class Network:
    """The requests that are still on their way."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._late: list[_Late] = []

    def land(self, process: Process, *, all_of_them: bool = False) -> None:
        """What is due reaches the process, if it is the one that the connection led to."""
        if not self._late:
            return
        due = [one for one in self._late if all_of_them or one.due_ms <= self.schedule.now]
        for one in due:
            self._late.remove(one)
            if one.process is process:
                self.schedule.tell("network", f"a late {one.asked.api.name} arrives")
                process.take_late(one.asked)

    def delay(self, process: Process, asked: Asked, ms: int) -> None:
        self._late.append(_Late(self.schedule.now + ms % LATE_MS_MAX, process, asked))


@dataclass(eq=False)
class Connection:
    """A client's way to the endpoint, which connects anew whenever it has to. `to` gives the process of the moment."""

    actor: Actor
    network: Network
    to: Callable[[], Process]
    _process: Process | None = None
    _number: int = 0

    def ask(self, api: Api, version: int, message: Any, *, may_be_late: bool = True, until_ms: int | None = None) -> Any:
        """The response. Raises NoAnswer, and sends nothing after `until_ms`."""
        actor, asked = self.actor, Asked(api, version, message)
        fate = actor.pause(REQUEST_FAULTS if may_be_late else tuple(f for f in REQUEST_FAULTS if f != "late"))
        if until_ms is not None and actor.schedule.now > until_ms:
            raise NoAnswer  # its machine has slept
        if fate in REQUEST_FAULTS:
            actor.schedule.faults[f"network: {fate}"] += 1
        if actor.schedule.story is not None:
            actor.schedule.tell(actor.name, f"asks {api.name}{f', {fate}' if fate else ''}: {_brief(message)}")
        if fate == "killed before":
            raise actor.die()
        process = self.to()
        if process is not self._process:
            self._process, self._number = process, process.connect()
        if fate in ("unavailable", "late"):
            if fate == "late":
                self.network.delay(process, asked, actor.fate_ms)
            self._breaks()
            raise NoAnswer
        try:
            found = process.answer(actor, self._number, asked)
        except (Gone, NoAnswer):
            self._breaks()
            raise NoAnswer from None
        if fate == "killed after":
            self._breaks()
            raise actor.die()
        if fate == "answer lost":
            self._breaks()
            raise NoAnswer
        response = response_of(api, version, found)
        if actor.schedule.story is not None:
            actor.schedule.tell(actor.name, f"is told {_brief(response)}")
        return response

    def _breaks(self) -> None:
        if self._process is not None:
            self._process.disconnect(self._number)
        self._process = None


def _brief(message: Any) -> str:
    """What a message says, without what is empty or usual."""
    if isinstance(message, tuple):
        return f"[{', '.join(map(_brief, message))}]"
    if isinstance(message, bytes | memoryview):
        return f"{len(message)} bytes"
    if not is_dataclass(message):
        return str(message)
    said = ((field.name, getattr(message, field.name)) for field in fields(message))
    told = (f"{name}={_brief(value)}" for name, value in said if value not in (None, "", -1, (), 0) or name in SAID)
    return f"({', '.join(told)})"
