"""Which requests are being answered, and which have to wait, so that those that take long do not hold up others.

A request takes its turn among those that are answered now. It gives the turn back when it takes long, as with a store that hangs,
or asks an archive, which has turns of its own. When many of one kind take long, the next ones that need a thread wait for these.
"""

from collections import Counter, deque
from collections.abc import Container
from dataclasses import dataclass, field

from tiering.endpoint.network.actions import Id
from tiering.endpoint.network.config import SocketServerConfig


@dataclass(slots=True)
class Turns:
    """Of all connections, also of those that are closed while somebody is busy with their request."""

    config: SocketServerConfig
    _handled: dict[Id, bytes] = field(default_factory=dict)
    """Those whose requests are being answered now, by kind; not those whose fetches wait."""
    _before: set[Id] = field(default_factory=set)
    """Those of `_handled` that were so already when `look` was last called."""
    _long: dict[Id, bytes] = field(default_factory=dict)
    """Those that take long, by kind, and are no longer in `_handled`."""
    _stuck: Counter[bytes] = field(default_factory=Counter)
    """How many of `_long` are of a kind."""
    _for_thread: dict[bytes, deque[Id]] = field(default_factory=dict)
    """Those whose kind is stuck, by kind: they wait until others of it are answered."""
    _for_archive: deque[Id] = field(default_factory=deque)
    """Those that wait for their turn to ask the archive."""
    _at_archive: set[Id] = field(default_factory=set)
    """Those that ask it now, and are not in `_handled`."""

    @property
    def has_thread(self) -> bool:
        """Whether one more may begin."""
        return len(self._handled) < self.config.request_threads

    def begin(self, connection: Id, kind: bytes) -> None:
        """A request of a kind, which is the key of its API, is being answered now."""
        self._handled[connection] = kind

    def end(self, connection: Id) -> None:
        """Nobody is busy with its request any more."""
        self._handled.pop(connection, None)
        self._before.discard(connection)
        self._at_archive.discard(connection)
        kind = self._long.pop(connection, None)
        if kind is not None:
            self._stuck[kind] -= 1

    def look(self) -> None:
        """To be called at intervals: what takes longer than one of them holds up others no more."""
        for connection in self._before:
            if len(self._long) < self.config.long_max:
                kind = self._long[connection] = self._handled.pop(connection)
                self._stuck[kind] += 1
        self._before = set(self._handled)

    def wait_for_archive(self, connection: Id) -> None:
        """The request needs the archive."""
        self.end(connection)
        self._for_archive.append(connection)

    def next_for_archive(self, are_open: Container[Id]) -> Id | None:
        """The request that may ask the archive now, None if there is none; `are_open` has the connections that are."""
        while self._for_archive and len(self._at_archive) < self.config.archive_threads:
            connection = self._for_archive.popleft()
            if connection in are_open:
                self._at_archive.add(connection)
                return connection
        return None

    def wait_for_thread(self, connection: Id) -> bool:
        """The request needs a thread: whether it has to wait for others of its kind."""
        kind = self._handled[connection]
        if not self._is_stuck(kind):
            return False
        self.end(connection)
        self._for_thread.setdefault(kind, deque()).append(connection)
        return True

    def next_for_thread(self, are_open: Container[Id]) -> Id | None:
        """The request that waited for a thread and may have one now, None if there is none."""
        for kind in [kind for kind in self._for_thread if not self._is_stuck(kind)]:
            waiting = self._for_thread[kind]
            while waiting and self.has_thread:
                connection = waiting.popleft()
                if connection in are_open:
                    self._handled[connection] = kind
                    return connection
            if not waiting:
                del self._for_thread[kind]
        return None

    def _is_stuck(self, kind: bytes) -> bool:
        return self._stuck[kind] >= self.config.archive_threads
