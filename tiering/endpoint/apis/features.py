"""The features that a client is told, and UpdateFeatures (Kafka's FeatureControlManager), which changes none of them."""

from collections.abc import Mapping
from typing import Final

from tiering.endpoint.apis.auth_helper import NOT_AUTHORIZED, is_authorized
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.api_keys import END_TXN, Api
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tiering.endpoint.request_context import RequestContext

_GROUP_VERSION: Final = {"group.version": 1}
_TRANSACTION_VERSION: Final = {"transaction.version": 2}
"""Producers that find it get a new epoch with each end of a transaction, and add no partitions (KIP-890)."""
_RESULTS_UNTIL = 1
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3


def features_of(apis: Mapping[int, Api]) -> Mapping[str, int]:
    """The level of each feature of an endpoint with these APIs."""
    return _GROUP_VERSION | _TRANSACTION_VERSION if END_TXN.key in apis else _GROUP_VERSION


def update_features(request: UpdateFeaturesRequest, request_context: RequestContext, context: Context) -> UpdateFeaturesResponse:
    """Features may get the levels that they have; if one is to get another one nothing is done."""
    if not is_authorized(context, request_context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        return UpdateFeaturesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=NOT_AUTHORIZED)
    levels = features_of(context.apis)
    problem = next(filter(None, (_problem(one, levels) for one in request.feature_updates)), None)
    if problem is not None:
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=problem)
    tells = request_context.version <= _RESULTS_UNTIL
    results = (UpdatableFeatureResult(one.feature) for one in request.feature_updates) if tells else ()
    return UpdateFeaturesResponse(results=tuple(results))


def _problem(update: FeatureUpdateKey, levels: Mapping[str, int]) -> str | None:
    level = levels.get(update.feature)
    if level is None:
        return f"there is no feature {update.feature} here"
    if update.upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return f"there is no type {update.upgrade_type} of upgrades"
    if update.max_version_level != level:
        return f"{update.feature} has level {level} here, which cannot be changed"
    return None
