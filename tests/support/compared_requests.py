"""Any requests, which Hypothesis makes, to a broker and to endpoints: the answers differ in nothing that is not known.

COMPARED_REQUESTS says how many of each kind.
"""

import os
from collections import Counter
from collections.abc import Callable
from random import Random  # noqa: TID251  # seeded
from typing import Any

from any_requests import any_message
from asked_by_wire import CORRELATION_ID
from compared_answers import Compared, Difference
from compared_brokers import World
from compared_groups import Step
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from known_difference import KnownDifference
from mutated_frames import mutated_body

from tiering.endpoint.protocol.api_keys import Api
from tiering.endpoint.protocol.errors import InvalidRequest
from tiering.endpoint.protocol.messages.elect_leaders import ElectLeadersRequest
from tiering.endpoint.protocol.requests import Request, RequestHeader, read_request, write_request

EACH = int(os.environ.get("COMPARED_REQUESTS", "40"))

Values = dict[str, st.SearchStrategy[Any]]
"""The values of fields by their names."""


def known(found: tuple[Compared, Difference], differences: tuple[KnownDifference, ...]) -> str | None:
    """Which of the differences that we know of it is."""
    return next((one.what for one in differences if one.holds(*found)), None)


def unknown(found: list[tuple[Compared, Difference]], world: World) -> list[Difference]:
    """The differences that are not listed."""
    return [one[1] for one in found if known(one, world.known) is None]


def for_any(made: st.SearchStrategy[Any], check: Callable[[Any], None], count: int = EACH, *, shrinks: bool = True) -> None:
    """Checks what Hypothesis makes, always the same."""
    phases = [Phase.generate, Phase.shrink] if shrinks else [Phase.generate]
    how = settings(max_examples=count, derandomize=True, deadline=None, database=None, phases=phases)

    @settings(how, suppress_health_check=list(HealthCheck))
    @given(made)
    def checked(one: Any) -> None:
        check(one)

    checked()


def any_request(api: Api, versions: range, values: Values) -> st.SearchStrategy[tuple[int, Any]]:
    """A version and a request."""
    requests = {version: any_message(api.request, version, values) for version in versions}
    return st.sampled_from(versions).flatmap(lambda version: st.tuples(st.just(version), requests[version]))


def compare_any(
    world: World, api: Api, versions: range, values: Values, keeps: Callable[[Any], bool] = lambda request: True
) -> None:
    """Any requests of an API, of those that `keeps` says."""

    def ask(asked: tuple[int, Any]) -> None:
        differences = unknown(world.compare(api, *asked), world)
        assert not differences, (asked, differences)

    for_any(any_request(api, versions, values).filter(lambda asked: keeps(asked[1])), ask)


def compare_frames(world: World, api: Api, versions: range, values: Values) -> Counter[str]:
    """Requests with something wrong in them: whoever answers them answers the same. Gives how many were answered and closed."""
    random, found = Random(api.key), Counter[str]()

    def ask(asked: tuple[int, Any]) -> None:
        version, request = asked
        frame = write_request(RequestHeader(api, version, CORRELATION_ID, "test"), request)
        for _ in range(5):
            mutated = mutated_body(frame, random)
            if depends_on_time(mutated):
                continue
            outcome = world.compare_frame(api, version, mutated)
            found[outcome if isinstance(outcome, str) else "answered"] += 1
            differences = [] if isinstance(outcome, str) else unknown(outcome, world)
            assert not differences, (mutated, differences)

    for_any(any_request(api, versions, values), ask, max(5, EACH // 10), shrinks=False)
    return found


def depends_on_time(frame: bytes) -> bool:
    """Whether it is a fetch that waits for records, or asks a controller that may have no time left before it begins."""
    try:
        request = read_request(frame[4:])
    except InvalidRequest:
        return False
    message = request.message if isinstance(request, Request) else None
    if isinstance(message, ElectLeadersRequest):
        return message.timeout_ms < 1000
    return getattr(message, "max_wait_ms", 0) > 100


def compare_lives(world: World, of: st.SearchStrategy[list[Step]]) -> None:
    """Any such lives of groups with members. A difference must come again when a broker has more time."""

    def live(steps: list[Step]) -> None:
        if unknown(world.groups.compare(steps), world):
            found = world.groups.compare(steps, 0.3)
            differences = unknown(found, world)
            lived = steps[: max((len(of.before) for of, _ in found), default=0)]
            assert not differences, ([(api.name, version, request) for api, version, request in lived], differences)

    for_any(of, live)
