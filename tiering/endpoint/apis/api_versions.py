"""ApiVersions: what is answered here."""

import re
from collections.abc import Mapping
from typing import Final

from tiering.endpoint.apis.features import features_of
from tiering.endpoint.protocol.api_keys import API_VERSIONS, Api
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from tiering.endpoint.protocol.requests import RequestHeader, write_response

_NAME_OR_VERSION: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
_NAMED_SINCE: Final = 3
_LEVEL_0_SINCE: Final = 4
"""Clients of earlier versions take no feature that may have level 0; they are told 1."""
_FEATURES_EPOCH: Final = 0
"""They do not change while the endpoint runs."""


def api_versions(request: ApiVersionsRequest, version: int, apis: Mapping[int, Api]) -> ApiVersionsResponse:
    """These APIs. Produce is among them, since librdkafka takes a broker without it for one of before 0.11."""
    said = (request.client_software_name, request.client_software_version)
    if version >= _NAMED_SINCE and not all(map(_NAME_OR_VERSION.fullmatch, said)):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    keys = tuple(ApiVersion(api.key, api.first, api.last) for api in apis.values())
    features = features_of(apis).items()
    least = 0 if version >= _LEVEL_0_SINCE else 1
    return ApiVersionsResponse(
        api_keys=keys,
        supported_features=tuple(SupportedFeatureKey(name, least, level) for name, level in features),
        finalized_features_epoch=_FEATURES_EPOCH,
        finalized_features=tuple(FinalizedFeatureKey(name, level, level) for name, level in features),
    )


def unknown_api_versions(correlation_id: int) -> list[bytes]:
    """The frame for a version that is not answered: it has version 0 and the versions of this API alone (KIP-511)."""
    own = (ApiVersion(API_VERSIONS.key, API_VERSIONS.first, API_VERSIONS.last),)
    answer = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
    return write_response(RequestHeader(API_VERSIONS, 0, correlation_id, None), answer)
