"""Producer ids are each given once, whatever happens to the process and its disks."""

import pytest
from transactions_kept import MemoryFiles

from local_log.errors import Corrupt, Newer, Unreadable
from local_log.formats.filenames import PRODUCER_IDS
from tiering.endpoint.transactions.producer_id_manager import BLOCK, GIVEN_MAX, LEFT_OUT, ProducerIdManager


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def test_ids_are_given_in_order_and_a_block_is_kept_before_any_of_it_is_given(files: MemoryFiles) -> None:
    ids = ProducerIdManager.of(files, ())
    assert [ids.next_id() for _ in range(BLOCK)] == list(range(BLOCK))
    assert files.next_id == b'{"format": 1, "next_producer_id": 1000}\n'
    assert ids.next_id() == BLOCK
    assert files.next_id == b'{"format": 1, "next_producer_id": 2000}\n'


def test_a_restart_begins_a_new_block(files: MemoryFiles) -> None:
    ProducerIdManager.of(files, ()).next_id()
    assert ProducerIdManager.of(files, ()).next_id() == BLOCK


def test_no_id_is_given_that_cannot_be_kept_and_then_the_same_one_is(files: MemoryFiles) -> None:
    ids = ProducerIdManager.of(files, ())
    files.is_broken = True
    with pytest.raises(Unreadable):
        ids.next_id()
    files.is_broken = False
    assert ids.next_id() == 0


def test_ids_begin_after_the_block_of_those_that_logs_and_transactions_have(files: MemoryFiles) -> None:
    assert ProducerIdManager.of(files, (7, 4321)).next_id() == 5000
    assert ProducerIdManager.of(files, (7,)).next_id() == 6000


def test_ids_that_a_client_has_made_up_do_not_use_up_all_that_there_are(files: MemoryFiles) -> None:
    ids = ProducerIdManager.of(files, (7, (1 << 63) - 1, GIVEN_MAX + 1))
    assert ids.next_id() == BLOCK
    assert ProducerIdManager.of(files, (GIVEN_MAX,)).next_id() < 1 << 63


def test_while_a_directory_is_offline_which_may_know_of_later_ids_many_are_left_out(files: MemoryFiles) -> None:
    files.offline = ("/b",)
    assert ProducerIdManager.of(files, ()).next_id() == LEFT_OUT


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 1}', b'{"format": 1, "next_producer_id": "x"}'])
def test_a_damaged_file_says_what_to_do(files: MemoryFiles, data: bytes) -> None:
    files.files[PRODUCER_IDS] = data
    with pytest.raises(Corrupt, match="delete it: ids then begin after those that logs and transactions have"):
        ProducerIdManager.of(files, ())


def test_a_file_of_a_newer_version_is_not_read(files: MemoryFiles) -> None:
    files.files[PRODUCER_IDS] = b'{"format": 2}'
    with pytest.raises(Newer, match="has format 2"):
        ProducerIdManager.of(files, ())
