"""Whatever happens in whatever order, the core of the socket server answers in order and holds what it says."""

from random import Random  # noqa: TID251  # seeded

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numbered_connections import frame, server

from tiering.endpoint.network.actions import Close, Pause
from tiering.endpoint.network.send import Send


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
