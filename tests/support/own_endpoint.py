"""The endpoint's answers on log directories that it owns, without its sockets."""

from dataclasses import replace
from typing import Any

from asked_endpoint import Endpoint

from local_log.disk import Disk
from remote.read.context import ReadContext
from remote.store.api import ObjectStore
from tiering.endpoint.coordinator.offsets_log import OffsetsLog
from tiering.endpoint.own_logs import OwnLogs
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.reads import TierReads


class OwnEndpoint(Endpoint):
    """Over the directories of a tier that runs, and an archive or none."""

    def __init__(
        self,
        tier: LocalTier,
        store: ObjectStore | None = None,
        disk: Disk | None = None,
        offsets: OffsetsLog | None = None,
        *,
        clock: Any = None,
        reading: ReadContext | None = None,
    ) -> None:
        super().__init__(None, None, offsets, clock=clock)
        self.tier = tier
        self.logs = OwnLogs(TierReads(tier, store, reading or ReadContext()), disk or tier._disk)
        self.context = replace(self.context, logs=self.logs, local_tier=tier)
