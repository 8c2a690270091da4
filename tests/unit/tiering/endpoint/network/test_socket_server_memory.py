"""How much memory requests and answers take together, and who has to wait or go where it is full."""

from numbered_connections import LIMITS, frame, server

from tiering.endpoint.network.actions import Close
from tiering.endpoint.network.send import Send


def test_requests_of_clients_that_have_not_authenticated_give_way_first():
    at = server("a", queued_bytes_max=500)
    at.accepted(1, "b", 0, authenticates=True)
    assert at.received(1, frame(b"x" * 200)[:100], 0) == []
    assert [action.connection for action in at.received(0, frame(b"x" * 900)[:450], 0)] == [1]
    assert len(at) == 1


def test_no_request_begins_while_the_answers_fill_the_memory():
    at = server("a", "b")
    at.received(0, frame(b"big"), 0)
    at.received(1, frame(b"next"), 0)
    at.take_request()
    send = at.answered(0, (b"x" * 6000,))
    assert send is not None
    assert at.take_request() is None
    send.advance(send.left)
    at.sent(0, 0)
    assert at.take_request() == (1, b"next")


def test_answers_exceed_the_memory_by_what_the_threads_are_busy_with():
    at = server(*("a" * 100), request_threads=3)
    for number in range(100):
        at.received(number, frame(b"r"), 0)
    taken = [found[0] for found in iter(at.take_request, None)]
    while taken:
        at.answered(taken.pop(), (b"x" * 2000,))
        taken += [found[0] for found in iter(at.take_request, None)]
    assert 5000 <= at.memory_used <= 5000 + 3 * 2000 + 100


def test_a_client_that_does_not_read_is_closed_when_others_need_the_memory():
    at = server(*"abcd", idle_ms_max=1000, stalled_ms_max=30)
    for number, size in ((0, 100), (2, 3000), (1, 4500)):
        at.received(number, frame(b"r"), 0)
        at.take_request()
        at.answered(number, (b"x" * size,))
    assert at.tick(500) == []  # nobody waits for the memory
    at.received(3, frame(b"r"), 500)
    at.progressed(1, 500)
    at.received(2, b"ahead", 510)  # sending is not reading
    assert at.take_request() is None
    actions = at.tick(520)
    assert [action.connection for action in actions] == [2]
    assert "takes nothing of its answer for 30 ms" in actions[0].reason
    assert at.take_request() == (3, b"r")
    at.answered(3, (b"x" * 3000,))
    assert at.tick(600) == []  # nobody waits again
    assert len(at) == 3


def test_fetches_that_waited_are_answered_one_by_one_while_answers_fill_the_memory():
    at = server(*"abcd")
    for number in range(4):
        at.received(number, frame(b"r"), 0)
        at.take_request()
        at.waits(number)
    for number in range(4):
        at.ask_again(number)
    assert at.take_again() == 0
    at.answered(0, (b"x" * (LIMITS.queued_bytes_max + 1),))
    assert at.take_again() is None
    at.closed(1)
    at.sent(0, 0)
    assert at.take_again() == 2


def test_bytes_of_files_do_not_count_as_memory():
    from local_log.file_range import FileRange

    send = Send([b"head", FileRange(OpenNothing(), 100, 1 << 30, None, None), b"tail"])
    assert (send.left, send.buffered) == ((1 << 30) + 8, 8)


def test_what_clients_send_ahead_while_they_are_answered_is_bounded_together():
    at = server(*["192.0.2.1"] * 8, queued_bytes_max=300, request_threads=8)
    for number in range(8):
        at.received(number, frame(b"?"), 0)
        assert at.take_request() is not None
    actions = [action for number in range(8) for action in at.received(number, b"\0" * 60, 0)]
    assert at.memory_used <= 300 + 8
    assert sum(isinstance(action, Close) for action in actions) == 3
    assert at.memory_used == sum(len(one.receive) + 1 for one in at._connections.values())


def test_half_requests_of_many_connections_are_bounded_together():
    at = server(*"abcdefg", receive_ms_max=1000)
    for number in range(7):
        at.received(number, frame(b"x" * 1000)[: 700 + number], 0)
    actions = at.received(3, b"x" * 290, 0)
    assert [action.connection for action in actions if isinstance(action, Close)] == [3]
    assert at.memory_used <= LIMITS.queued_bytes_max


class OpenNothing:
    def fileno(self) -> int:
        raise AssertionError("nothing is read here")


def test_no_archive_is_asked_while_too_much_memory_is_in_use():
    at = server("a", "b", queued_bytes_max=10)
    for number in range(2):
        at.received(number, frame(b"%d" % number), 0)
        assert at.take_request() is not None
    at.asks_archive(0)
    send = at.answered(1, (b"x" * 10,))
    assert at.take_for_archive() is None
    assert send is not None
    send.advance(send.left)
    at.sent(1, 0)
    assert at.take_for_archive() == 0


def test_a_request_holds_what_it_may_be_parsed_into_and_then_its_answer():
    at = server("a", "b", queued_bytes_max=100, parsed_ratio=20)
    at.received(0, frame(b"four"), 0)
    at.received(1, frame(b"1234567"), 0)
    assert at.take_request() == (0, b"four")
    assert at.memory_used == 84 + len(frame(b"1234567"))
    assert at.take_request() == (1, b"1234567")
    assert at.memory_used == 84 + 107, "never more than all of the memory"
    at.answered(0, (b"an answer",))
    assert at.memory_used == 9 + 107
    at.closed(1)
    at.sent(0, 0)
    assert at.memory_used == 0


def test_requests_that_wait_hold_half_of_the_memory_at_most_and_need_no_room_to_be_asked_again():
    at = server("a", "b", "c", queued_bytes_max=100, parsed_ratio=20)
    for number in range(3):
        at.received(number, frame(b"asks"), 0)
    assert at.take_request() == (0, b"asks")
    assert at.waits(0, 50)
    assert at.take_request() == (1, b"asks")
    assert not at.waits(1, 51)
    assert at.take_request() is None
    at.ask_again(1)
    assert at.take_again() == 1
    assert at.waits(1, 50) is False
    at.closed(0)
    at.ask_again(1)
    assert at.take_again() == 1
    assert at.answered(1, ())
    assert at.memory_used == len(frame(b"asks"))
    assert at.take_request() == (2, b"asks")
    at.closed(2)
    assert not at.waits(2, 50)
    assert at.memory_used == 0
