"""Requests whose header is odd, to a broker and to our endpoint: unknown APIs and versions, client ids and tagged fields."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from any_requests import any_message
from asked_endpoint import response_of
from compared_answers import Compared
from compared_answers import differences as compared_differences
from compared_brokers import World
from compared_requests import EACH, for_any, unknown
from hypothesis import strategies as st
from random_messages import encoded

from tiering.endpoint.protocol.api_keys import API_VERSIONS, APIS, DESCRIBE_CLUSTER, HEARTBEAT, METADATA, Api
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsRequest

_OTHERS = (4, 5, 6, 7, 52, 53, 54, 55, 58, 59, 94, 1000, 32767, -1, -32768)
"""Keys of APIs that there are no more, of those between controllers, and of none."""
_NAMED = (API_VERSIONS, METADATA, HEARTBEAT, DESCRIBE_CLUSTER)
_TAGS = (
    *((0,), (0,), (1, 5, 0), (1, 5, 2, 7, 7), (2, 5, 0, 6, 0)),
    *((2, 6, 0, 5, 0), (2, 5, 0, 5, 0), (1, 5, 9), (255, 255, 255, 255, 7)),
)
"""None, one and two; and such with something wrong: their order, a size, their number.

A broker takes a number from 2^31 on for one below 0, and reads none; here it is refused.
"""


@dataclass(frozen=True, slots=True)
class _Odd:
    key: int
    version: int
    data: bytes


def compare_headers(world: World) -> dict[str, int]:
    """Whoever answers answers the same, and both close the connection if one does. Gives how many were answered and closed."""
    offered = {one.api_key for one in world.broker.ask(API_VERSIONS, 3, ApiVersionsRequest("a", "1")).api_keys}
    found = {"answered": 0, "closed": 0}

    def ask(odd: _Odd) -> None:
        frame = len(odd.data).to_bytes(4, "big") + odd.data
        theirs, ours = (side.wire.ask_bytes(frame) for side in (world.broker, world.endpoints[0]))
        assert (theirs is None) == (ours is None), (odd, theirs, ours)
        found["closed" if theirs is None else "answered"] += 1
        if theirs is None or ours is None:
            return
        api = APIS[odd.key]
        version = odd.version if odd.version in api.versions else 0  # of ApiVersions, whose error has version 0
        told, answer = response_of(api, version, theirs), response_of(api, version, ours)
        compared = Compared(api, version, None, told, answer)
        differences = unknown([(compared, one) for one in compared_differences(told, answer)], world)
        assert not differences, (odd, differences)

    for_any(st.one_of(_unknown(offered), _known(world)), ask, max(EACH, 100))
    return found


def _unknown(offered: Collection[int]) -> st.SearchStrategy[_Odd]:
    """Of an API or a version that nobody has."""
    keys = st.sampled_from([key for key in _OTHERS if key not in offered])
    versions = st.sampled_from((-1, -32768, 30, 99, 32767))
    of_none = st.tuples(keys, st.integers(0, 3))
    of_others = st.tuples(st.sampled_from([api.key for api in APIS.values()]), versions)
    return st.builds(
        lambda of, client, rest: _Odd(*of, _header(*of, client) + rest), st.one_of(of_none, of_others), _clients(), _rests()
    )


def _known(world: World) -> st.SearchStrategy[_Odd]:
    """Of an API that both have, with any client id and any tagged fields."""
    return st.sampled_from(_NAMED).flatmap(
        lambda api: st.integers(api.first, api.last).flatmap(lambda version: _of(api, version, world))
    )


def _of(api: Api, version: int, world: World) -> st.SearchStrategy[_Odd]:
    is_flexible = api.is_flexible(version)
    tags = st.sampled_from([bytes(one) for one in _TAGS]) if is_flexible else st.just(b"")

    def made(message: Any, client: bytes, of_header: bytes, more: bytes) -> _Odd:
        body = encoded(message, version, flexible=is_flexible)
        return _Odd(api.key, version, _header(api.key, version, client) + of_header + body + more)

    more = st.sampled_from((b"", b"", b"", b"\0", b"more"))
    return st.builds(made, any_message(api.request, version, world.facts.values()), _clients(), tags, more)


def _header(key: int, version: int, client: bytes) -> bytes:
    numbers = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    return numbers + (99).to_bytes(4, "big") + client


def _clients() -> st.SearchStrategy[bytes]:
    return st.sampled_from(
        (b"\xff\xff", b"\0\0", b"\0\4test", b"\0\2\xc3\xbc", b"\0\2\xff\xfe", b"\xff\xfe", b"\x7f\xff", b"\0", b"")
    )


def _rests() -> st.SearchStrategy[bytes]:
    return st.one_of(st.just(b""), st.binary(max_size=20))
