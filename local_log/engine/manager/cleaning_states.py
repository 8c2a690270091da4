"""Which partitions are being cleaned, and which must not be (the states of LogCleanerManager).

none         begin            → cleaned
cleaned      end              → none
cleaned      abort_and_pause  → aborted     waits for `end`
aborted      end              → paused (1)
none         abort_and_pause  → paused (1)
paused (n)   abort_and_pause  → paused (n + 1)
paused (n)   resume           → paused (n - 1), none after the first
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from local_log.engine.cleaner import CleaningAborted
from local_log.formats.filenames import TopicPartition

_CLEANED, _ABORTED = 0, -1


class CleaningStates:
    """The states of all partitions, for many threads. A paused partition has the number of pauses as its state."""

    def __init__(self) -> None:
        self._states: dict[TopicPartition, int] = {}
        self._changed = threading.Condition()
        self._is_stopping = False

    def begin(self, partition: TopicPartition) -> bool:
        """The partition is cleaned from now on; False if it already is, or is paused."""
        with self._changed:
            if partition in self._states or self._is_stopping:
                return False
            self._states[partition] = _CLEANED
            return True

    def check(self, partition: TopicPartition) -> None:
        """Raises CleaningAborted if the cleaning of the partition is to end."""
        if self._is_stopping or self._states.get(partition) == _ABORTED:
            raise CleaningAborted(f"{partition}: its cleaning was aborted; the next round begins where this one did")

    def end(self, partition: TopicPartition) -> None:
        """The partition is not cleaned any more."""
        with self._changed:
            if self._states.pop(partition) == _ABORTED:
                self._states[partition] = 1
                self._changed.notify_all()

    def abort_and_pause(self, partition: TopicPartition) -> None:
        """Ends the cleaning of the partition and waits until it has ended. None begins until `resume`."""
        with self._changed:
            state = self._states.get(partition)
            self._states[partition] = 1 if state is None else _ABORTED if state in (_CLEANED, _ABORTED) else state + 1
            self._changed.wait_for(lambda: self._states[partition] > 0)

    def resume(self, partition: TopicPartition) -> None:
        """Undoes one pause."""
        with self._changed:
            self._states[partition] -= 1
            if not self._states[partition]:
                del self._states[partition]

    @contextmanager
    def paused(self, partition: TopicPartition) -> Iterator[None]:
        """Nothing cleans the partition inside."""
        self.abort_and_pause(partition)
        try:
            yield
        finally:
            self.resume(partition)

    def stop(self) -> None:
        """No cleaning begins any more, and those under way end."""
        with self._changed:
            self._is_stopping = True
