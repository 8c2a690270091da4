from dataclasses import replace
from random import Random  # noqa: TID251  # seeded

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiering.endpoint.network.actions import Close, Pause, Resume
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.send import Send
from tiering.endpoint.network.socket_server import SocketServer

LIMITS = SocketServerConfig(
    request_bytes_max=1000, queued_bytes_max=5000, parsed_ratio=0, ahead_bytes_max=50, idle_ms_max=100, receive_ms_max=30
)


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def server(*ips: str, **limits: int) -> SocketServer:
    """With a connection from each address, numbered from 0 on, at time 0."""
    found = SocketServer(replace(LIMITS, **limits))
    for number, ip in enumerate(ips):
        assert found.accepted(number, ip, 0) == []
    return found


def answer(at: SocketServer, parts: tuple[bytes, ...] = (b"!",), now_ms: int = 0) -> tuple[object, bytes, list[object]]:
    """Takes the next request and answers it; gives the connection, the request and what followed."""
    found = at.take_request()
    assert found is not None
    connection, request = found
    send = at.answered(connection, parts)
    assert send is not None
    send.advance(send.left)
    return connection, request, list(at.sent(connection, now_ms))


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


class OpenNothing:
    def fileno(self) -> int:
        raise AssertionError("nothing is read here")


@pytest.mark.parametrize("seed", range(100))
def test_whatever_the_order_of_events_every_client_gets_its_answers_in_order(seed):
    random = Random(seed)
    at = server(*"abcd", request_bytes_max=60, queued_bytes_max=600, ahead_bytes_max=20)
    wanted = {c: [bytes([c]) * random.randint(1, 60) for _ in range(random.randint(0, 6))] for c in range(4)}
    unsent = {c: b"".join(map(frame, bodies)) for c, bodies in wanted.items()}
    got: dict[object, list[bytes]] = {c: [] for c in range(4)}
    sending: dict[object, tuple[Send, bytes]] = {}
    paused: set[object] = set()

    def act(actions):
        for action in actions:
            assert not isinstance(action, Close)
            paused.add(action.connection) if isinstance(action, Pause) else paused.discard(action.connection)

    while got != wanted:
        choices = [("receive", c) for c, rest in unsent.items() if rest and c not in paused] + [("send", c) for c in sending]
        taken = at.take_request() if not choices or random.random() < 0.5 else None
        if taken is not None:
            send = at.answered(taken[0], (taken[1] * 9,))
            assert send is not None
            sending[taken[0]] = (send, taken[1])
        elif choices:
            what, c = random.choice(choices)
            if what == "receive":
                size = random.randint(1, 80)
                if random.random() < 0.3:
                    size = 4 + int.from_bytes(unsent[c][:4], "big")  # a whole frame, unless a part of one was sent
                chunk, unsent[c] = unsent[c][:size], unsent[c][size:]
                body = at.at_once(c, chunk)
                if body is None or random.random() < 0.3:
                    act(at.received(c, chunk, 0))
                elif random.random() < 0.5:
                    got[c].append(body)
                    at.answered_at_once(c, 0)
                else:
                    at.begin_at_once(c, len(body), 0)
                    send = at.answered(c, (body * 9,))
                    assert send is not None
                    sending[c] = (send, body)
            else:
                send, body = sending[c]
                send.advance(random.randint(1, send.left))
                if not send.left:
                    del sending[c]
                    got[c].append(body)
                    act(at.sent(c, 0))
        else:
            pytest.fail("nothing can happen, and some are not answered")
        assert at.memory_used <= 600 + 600 + 60 * 10
    assert at.memory_used == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20))
def test_random_bytes_are_frames_or_close_the_connection(chunks):
    at = server("a", request_bytes_max=1 << 20)
    for chunk in chunks:
        if any(isinstance(action, Close) for action in at.received(0, chunk, 0)):
            break
        while at.take_request() is not None:
            at.answered(0, ())
            if any(isinstance(action, Close) for action in at.sent(0, 0)):
                return
    assert at.memory_used <= sum(map(len, chunks))


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
