import pytest
from numbered_connections import answer, frame, server

from tiering.endpoint.network.actions import Close, Pause, Resume
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.socket_server import SocketServer


def test_a_request_is_there_when_its_last_byte_is():
    at = server("a")
    for byte in frame(b"one")[:-1]:
        assert at.received(0, bytes([byte]), 0) == []
        assert at.take_request() is None
    at.received(0, b"e", 0)
    assert at.take_request() == (0, b"one")


def test_a_whole_request_is_answered_at_once_if_nothing_else_comes_first():
    at = server("a", "b", queued_bytes_max=100)
    for data in (frame(b"one")[:-1], frame(b"one") + b"\0", b"", b"\0\0\0"):
        assert at.at_once(0, data) is None
    assert at.at_once(0, frame(b"one")) == b"one"
    at.answered_at_once(0, 7)
    at.received(0, frame(b"two")[:5], 7)
    assert at.at_once(0, frame(b"two")[5:]) is None, "a part came before"
    assert at.at_once(1, frame(b"three")) == b"three"
    at.received(0, frame(b"two")[5:], 7)
    assert at.at_once(1, frame(b"three")) is None, "another has its turn"
    assert answer(at) == (0, b"two", [])
    at.begin_at_once(1, 5, 7)
    assert at.at_once(1, frame(b"four")) is None, "its answer is to be sent first"
    send = at.answered(1, (bytes(100),))
    assert at.at_once(0, frame(b"five")) is None, "there is no memory"
    assert send is not None
    send.advance(send.left)
    at.sent(1, 8)
    assert at.at_once(0, frame(b"five")) == b"five"
    assert at.memory_used == 0


def test_pipelined_requests_are_answered_one_after_the_other():
    at = server("a")
    at.received(0, frame(b"one") + frame(b"two") + frame(b"three")[:5], 0)
    assert at.take_request() == (0, b"one")
    assert at.take_request() is None
    at.answered(0, (b"1",))
    assert at.take_request() is None
    at.sent(0, 0)
    assert answer(at)[1] == b"two"
    assert at.take_request() is None
    at.received(0, frame(b"three")[5:], 0)
    assert answer(at)[1] == b"three"


def test_connections_take_turns_however_many_requests_one_has_sent():
    at = server("a", "b")
    at.received(0, frame(b"1") * 3, 0)
    at.received(1, frame(b"2"), 0)
    assert [answer(at)[0] for _ in range(4)] == [0, 1, 0, 0]


def test_a_connection_that_sends_ahead_is_not_read_until_its_turn_is_over():
    at = server("a", ahead_bytes_max=60)
    at.received(0, frame(b"one"), 0)
    assert at.received(0, frame(b"x" * 40), 0) == []
    assert at.received(0, frame(b"y" * 40), 0) == [Pause(0)]
    assert at.received(0, b"", 0) == []
    assert answer(at)[2] == []
    assert answer(at)[2] == []
    assert answer(at)[2] == [Resume(0)]


@pytest.mark.parametrize("size", [-1, 1001, 0x16030102, 0x47455420])
def test_a_frame_that_is_too_large_closes_the_connection_before_its_bytes_come(size):
    at = server("a")
    actions = at.received(0, size.to_bytes(4, "big", signed=size < 0), 0)
    assert [type(action) for action in actions] == [Close]
    assert "where 1000 are allowed: raise socket.request.max.bytes" in actions[0].reason
    assert len(at) == at.memory_used == 0


def test_further_connections_are_refused_in_all_and_of_one_address():
    at = server("a", "a", "b", connections_max=3, connections_per_ip_max=2)
    assert "max.connections allows" in at.accepted(3, "c", 0)[0].reason
    at.closed(2)
    assert "from a, as many as max.connections.per.ip allows" in at.accepted(4, "a", 0)[0].reason
    assert at.accepted(5, "b", 0) == []


def test_some_addresses_have_other_limits() -> None:
    core = SocketServer(SocketServerConfig(connections_per_ip_max=1, connections_per_ip_overrides={"b": 2, "c": 0}))
    closed = [ip for number, ip in enumerate("aabbbc") if core.accepted(number, ip, 0)]
    assert closed == ["a", "b", "c"]
    assert core.accepted(9, "c", 0) == [
        Close(9, "there are 0 connections from c, as many as max.connections.per.ip.overrides allows")
    ]


def test_what_is_idle_is_closed_and_what_is_being_answered_is_not():
    at = server("a", "b", "c")
    at.received(1, frame(b"slow"), 0)
    at.take_request()
    at.received(2, b"", 50)
    assert at.tick(99) == []
    assert [action.connection for action in at.tick(100)] == [0]
    assert [action.connection for action in at.tick(150)] == [2]
    assert at.answered(1, (b"late",)) is not None
    at.progressed(1, 200)
    assert at.tick(299) == []
    assert [action.connection for action in at.tick(300)] == [1]


def test_a_request_that_arrives_a_byte_at_a_time_is_closed():
    at = server("a")
    for now in range(29):
        at.received(0, b"\0", now) if now < 3 else at.received(0, b"\1" if now == 3 else b"", now)
        assert at.tick(now) == []
    assert "takes longer than 30 ms" in at.tick(30)[0].reason


def test_a_client_that_has_not_authenticated_has_little_room_and_little_time():
    at = server(unauthenticated_bytes_max=100, authentication_ms_max=20)
    for number in range(3):
        at.accepted(number, "a", 0, authenticates=True)
    assert "of 101 bytes, where 100 are allowed" in at.received(0, frame(b"x" * 101)[:4], 0)[0].reason
    at.authenticated(1)
    assert at.received(1, frame(b"x" * 101), 0) == []
    assert at.take_request() == (1, b"x" * 101)
    assert at.tick(19) == []
    at.received(2, frame(b"x"), 19)
    assert [(action.connection, action.reason) for action in at.tick(20)] == [
        (2, "the client has not authenticated within 20 ms")
    ]


def test_no_more_requests_begin_than_there_are_threads_and_waiting_fetches_have_none():
    at = server(*"abcde", request_threads=2)
    for number in range(5):
        at.received(number, frame(b"r"), 0)
    assert at.take_request() == (0, b"r")
    assert at.take_request() == (1, b"r")
    assert at.take_request() is None
    at.waits(0)
    assert at.take_request() == (2, b"r")
    at.ask_again(0)
    assert at.take_again() is None
    at.refuse(1, "no answer")
    assert at.take_again() == 0
    assert at.take_request() is None
    at.answered(0, (b"!",))
    at.refuse(1, "no answer")
    assert at.take_request() == (3, b"r")
    at.closed(2)
    assert at.take_request() is None  # its thread is still busy
    assert at.answered(2, (b"!",)) is None
    assert at.take_request() == (4, b"r")


def test_draining_answers_what_has_been_asked_and_closes_the_rest():
    at = server("a", "b", "c")
    at.received(1, frame(b"one"), 0)
    at.received(2, frame(b"two"), 0)
    at.take_request()
    assert [action.connection for action in at.drain()] == [0]
    assert "about to stop" in at.accepted(9, "a", 0)[0].reason
    assert at.answered(1, (b"!",)) is not None
    assert [type(action) for action in at.sent(1, 0)] == [Close]
    assert [type(action) for action in answer(at)[2]] == [Close]
    assert len(at) == 0


def test_a_connection_that_is_gone_gets_no_answer_and_holds_nothing():
    at = server("a", "b")
    at.received(0, frame(b"one"), 0)
    at.received(1, frame(b"two"), 0)
    at.take_request()
    at.closed(0)
    at.closed(1)
    assert at.answered(0, (b"x",)) is None
    assert at.take_request() is None
    assert at.memory_used == 0


def test_requests_that_ask_the_archive_have_turns_of_their_own():
    at = server(*"abcdef", request_threads=1, archive_threads=2)
    for number in range(6):
        at.received(number, frame(b"%d" % number), 0)
    for number in range(4):
        assert at.take_request() == (number, b"%d" % number)
        assert at.take_request() is None
        at.asks_archive(number)
    assert [at.take_for_archive() for _ in range(3)] == [0, 1, None]
    assert answer(at)[0] == 4
    at.closed(2)
    assert at.answered(0, (b"!",))
    assert [at.take_for_archive() for _ in range(2)] == [3, None]
    at.refuse(1, "it failed")
    assert at.take_for_archive() is None
    assert answer(at)[0] == 5


def test_further_requests_of_a_kind_that_takes_long_wait_for_those_before_them():
    at = server(*"abcdefg", request_threads=2, archive_threads=2)
    slow, fast = b"\0\2", b"\0\3"
    for number in range(6):
        at.received(number, frame(slow if number != 4 else fast), 0)
    assert [at.take_request()[0] for _ in range(2)] == [0, 1]
    assert at.asks_thread(0)
    assert at.asks_thread(1)
    at.look()
    at.look()
    for number in (2, 3, 4, 5):
        assert at.take_request()[0] == number
        assert at.asks_thread(number) == (number == 4)
    assert at.take_for_thread() is None
    at.closed(2)
    assert at.answered(1, (b"!",))
    assert [at.take_for_thread() for _ in range(2)] == [3, None], "the other thread is busy"
    assert at.answered(4, (b"!",))
    assert [at.take_for_thread() for _ in range(2)] == [5, None]


def test_requests_that_take_long_hold_up_so_many_at_most():
    at = server(*"abcde", request_threads=2, archive_threads=2)
    for number in range(5):
        at.received(number, frame(b"%d" % number), 0)
    assert [at.take_request() for _ in range(3)] == [(0, b"0"), (1, b"1"), None]
    at.look()
    assert at.take_request() is None
    at.answered(1, (b"!",))
    assert at.take_request() == (2, b"2")
    at.look()  # the first takes long, the third began since the last look
    assert [at.take_request() for _ in range(2)] == [(3, b"3"), None]
    at.look()
    at.look()
    assert [at.take_request() for _ in range(2)] == [(4, b"4"), None]
    assert all(at.answered(number, (b"!",)) for number in (0, 2, 3, 4))
