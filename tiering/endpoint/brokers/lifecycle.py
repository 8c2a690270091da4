"""The thread that keeps the list of live brokers (Kafka's BrokerLifecycleManager)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from local_log.errors import LogError
from tiering.endpoint.brokers.live_brokers import HEARTBEAT_S, Brokers, Cluster

TOLD_AGAIN_HEARTBEATS: Final = 30
"""Heartbeats that go on failing are told of once a minute."""


@dataclass(slots=True)
class BrokerLifecycle:
    """Sends heartbeats from `start` until `stop`."""

    brokers: Brokers
    report: Callable[[str], object]
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _failures: int = 0
    """Heartbeats in a row."""
    _leaving: threading.Lock = field(default_factory=threading.Lock)

    def start(self, sleep: Callable[[float], object]) -> Cluster:
        """Joins the others; from then on the cluster is kept up to date. Raises LogError; nothing is left behind then."""
        try:
            cluster = Cluster(self.brokers.join(sleep))
        except LogError:
            self._leave()
            raise

        def run() -> None:
            while not self._stopping.wait(HEARTBEAT_S):
                self.beat(cluster)

        self._thread = threading.Thread(target=run, name="heartbeat", daemon=True)
        self._thread.start()
        return cluster

    def beat(self, cluster: Cluster) -> None:
        """One heartbeat. Where it fails the brokers are taken for what they were."""
        try:
            found = self.brokers.heartbeat()
        except LogError as e:
            self._failed(str(e))
            return
        except Exception as e:  # a bug of ours must not end the heartbeats, for others would take this broker for dead
            self._failed(f"a bug: {type(e).__name__}: {e}; please report it")
            return
        if self._failures:
            self._failures = 0
            self.report("brokers that come or go are noticed again")
        if found != cluster.live:
            self.report(f"brokers that are alive: {', '.join(str(one.node_id) for one in found.brokers)}")
            cluster.live = found

    def _failed(self, problem: str) -> None:
        if self._failures % TOLD_AGAIN_HEARTBEATS == 0:
            self.report(f"brokers that come or go are not noticed: {problem}")
        self._failures += 1

    def stop(self) -> None:
        """Ends the heartbeats and tells the others, so that they take over at once. Waits for the store, but only once."""
        with self._leaving:
            self._stopping.set()
            if self._thread is not None:
                self._thread.join()
                self._thread = None
                self._leave()

    def _leave(self) -> None:
        try:
            self.brokers.leave()
        except LogError as e:
            self.report(f"the other brokers have to notice by themselves that this one has ended: {e}")
