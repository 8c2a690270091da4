"""Tasks by key, each run once when its time has come."""

from typing import Any

from archive_fakes import FixedClock

from tiering.endpoint.coordinator.timers import Timers


class EmptiedMeanwhile(list[Any]):
    """A list whose last element another thread takes just after this one has looked whether there is any."""

    def __bool__(self) -> bool:
        found = len(self) > 0
        self.clear()
        return found


def test_another_thread_may_ask_what_is_next_while_the_last_task_is_taken() -> None:
    timers = Timers(FixedClock(0), _queue=EmptiedMeanwhile())
    timers.schedule("a", 5, lambda: None)
    assert timers.next_ms in (5, None)


def test_a_task_that_is_scheduled_again_or_cancelled_is_not_run_as_it_was() -> None:
    clock, done = FixedClock(0), list[str]()
    timers = Timers(clock)
    for key, after_ms in (("a", 1), ("a", 3), ("b", 1), ("c", 2)):
        timers.schedule(key, after_ms, lambda said=f"{key}{after_ms}": done.append(said))  # type: ignore[misc]
    timers.cancel("b")
    clock.now = 10
    for task in timers.due():
        task()
    assert (done, timers.next_ms) == (["c2", "a3"], None)
