"""A frame as a request, and a response as the parts of a frame.

    request header   api key int16 | version int16 | correlation id int32 | client id nullable string | tagged fields (flexible)
    response header  correlation id int32 | tagged fields (flexible, never for ApiVersions)

Frames have their size in front, an int32. Source: Kafka's RequestHeader and ResponseHeader, KIP-482, KIP-511.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any

from local_log.errors import Corrupt, Invalid
from local_log.formats.primitives import need
from tiering.endpoint.protocol.api_keys import API_VERSIONS, APIS, PRODUCE, Api
from tiering.endpoint.protocol.errors import InvalidRequest
from tiering.endpoint.protocol.produce_frames import VERSIONS, read_one_append, write_one_append
from tiering.endpoint.protocol.reading import ELEMENTS_MAX, read_message, skip_tagged
from tiering.endpoint.protocol.writing import Output, writer

_HEADER, _SIZE = Struct(">hhih"), Struct(">i")


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """Who asks what, in which version."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a version that is answered."""

    header: RequestHeader
    message: Any


@dataclass(frozen=True, slots=True)
class UnknownApiVersions:
    """ApiVersions of a version that is not answered: the answer has version 0 and says which are (KIP-511)."""

    correlation_id: int


def read_request(frame: bytes, elements_max: int = ELEMENTS_MAX, apis: Mapping[int, Api] = APIS) -> Request | UnknownApiVersions:
    """The request of a frame without its size, of one of `apis`. Raises InvalidRequest: the connection is of no more use then."""
    try:
        return _read_request(frame, elements_max, apis)
    except Corrupt as e:
        problem = f"a request of {len(frame)} bytes, byte {e.position}: {e.problem}; is this a Kafka client?"
        raise InvalidRequest(problem) from e


def write_response(header: RequestHeader, message: Any) -> list[Any]:
    """The parts of the response's frame: bytes, and the parts of its records. Raises InvalidRequest if it cannot be told."""
    is_flexible = header.api.is_flexible(header.version)
    if header.api is PRODUCE and header.version in VERSIONS:
        whole = write_one_append(header.correlation_id, header.version, message)
        if whole is not None:
            return [whole]
    out = Output()
    out.buffer += _SIZE.pack(header.correlation_id)
    if is_flexible and header.api is not API_VERSIONS:
        out.buffer += b"\0"
    try:
        writer(header.api.response, header.version, flexible=is_flexible)(out, message)
    except Invalid as e:
        raise InvalidRequest(str(e)) from e
    parts, size = out.finish()
    parts[0] = _SIZE.pack(size) + parts[0]
    return parts


def write_request(header: RequestHeader, message: Any) -> bytes:
    """A request's frame with its size, as a client sends it."""
    is_flexible = header.api.is_flexible(header.version)
    client_id = None if header.client_id is None else header.client_id.encode()
    out = Output()
    length = -1 if client_id is None else len(client_id)
    out.buffer += _HEADER.pack(header.api.key, header.version, header.correlation_id, length) + (client_id or b"")
    if is_flexible:
        out.buffer += b"\0"
    writer(header.api.request, header.version, flexible=is_flexible)(out, message)
    parts, size = out.finish()
    return _SIZE.pack(size) + b"".join(parts)


def _read_request(frame: bytes, elements_max: int, apis: Mapping[int, Api]) -> Request | UnknownApiVersions:
    need(frame, 0, _HEADER.size, "a request's header")
    key, version, correlation_id, client_id_size = _HEADER.unpack_from(frame)
    api = apis.get(key)
    is_answered = api is not None and version in api.versions
    if api is None or not (is_answered or api is API_VERSIONS):
        raise Corrupt(f"version {version} of {api.name if api else f'API {key}'}, which ApiVersions does not offer")
    pos = _HEADER.size
    need(frame, pos, client_id_size, "a client id")
    client_id = None if client_id_size < 0 else frame[pos : pos + client_id_size].decode("utf-8", "replace")
    pos += max(client_id_size, 0)
    is_flexible = api.is_flexible(version)
    if is_flexible:
        pos = skip_tagged(frame, pos)
    if not is_answered:
        return UnknownApiVersions(correlation_id)
    message = read_one_append(frame, pos, version) if api is PRODUCE and version in VERSIONS else None
    if message is None:
        message = read_message(api.request, version, frame, pos, flexible=is_flexible, elements_max=elements_max)
    return Request(RequestHeader(api, version, correlation_id, client_id), message)
