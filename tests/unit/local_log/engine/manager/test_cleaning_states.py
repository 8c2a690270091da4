"""Which partitions are being cleaned or paused."""

import threading

import pytest
from managed import ORDERS, PAYMENTS

from local_log.engine.cleaner import CleaningAborted
from local_log.engine.manager.cleaning_states import CleaningStates


def test_one_cleaning_of_a_partition_at_a_time() -> None:
    states = CleaningStates()
    assert [states.begin(ORDERS), states.begin(ORDERS), states.begin(PAYMENTS)] == [True, False, True]
    states.check(ORDERS)
    states.end(ORDERS)
    assert states.begin(ORDERS)


def test_a_paused_partition_is_not_cleaned_before_every_pause_is_undone() -> None:
    states = CleaningStates()
    states.abort_and_pause(ORDERS)
    states.abort_and_pause(ORDERS)
    states.resume(ORDERS)
    assert not states.begin(ORDERS)
    states.resume(ORDERS)
    assert states.begin(ORDERS)


def test_an_abort_waits_until_the_cleaning_has_ended() -> None:
    states = CleaningStates()
    states.begin(ORDERS)
    aborting = threading.Thread(target=states.abort_and_pause, args=(ORDERS,))
    aborting.start()
    while True:
        try:
            states.check(ORDERS)
        except CleaningAborted:
            break
    assert aborting.is_alive()
    states.end(ORDERS)
    aborting.join(10)
    assert not aborting.is_alive()
    assert not states.begin(ORDERS)
    states.resume(ORDERS)
    assert states.begin(ORDERS)


def test_after_a_stop_nothing_begins_and_what_goes_on_ends() -> None:
    states = CleaningStates()
    states.begin(ORDERS)
    states.stop()
    assert not states.begin(PAYMENTS)
    with pytest.raises(CleaningAborted, match="orders-0"):
        states.check(ORDERS)
