""".kafka_cleanshutdown: which broker closed the logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_log.formats.clean_shutdown import read_broker_epoch, write_clean_shutdown


def test_the_file_is_what_a_broker_writes() -> None:
    assert write_clean_shutdown(12) == b'{"version":0,"brokerEpoch":12}'


@given(epoch=st.integers(-1, 2**63 - 1))
def test_the_epoch_is_read_as_it_was_written(epoch: int) -> None:
    assert read_broker_epoch(write_clean_shutdown(epoch)) == epoch


def test_fields_of_a_newer_kafka_are_left_alone() -> None:
    assert read_broker_epoch(b'{"version":1,"brokerEpoch":10,"unknown":123}') == 10


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"10", b"[]", b'{"brokerEpoch":null}', b'{"brokerEpoch":true}', b'{"brokerEpoch":1e99}', b"\xff", b"[" * 9999],
)
def test_a_file_that_does_not_say_the_epoch_is_one_without_it(data: bytes) -> None:
    assert read_broker_epoch(data) is None
