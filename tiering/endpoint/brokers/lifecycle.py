"""The thread that keeps the list of live brokers (Kafka's BrokerLifecycleManager)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from local_log.errors import LogError
from tiering.endpoint.brokers.live_brokers import HEARTBEAT_S, Brokers, Cluster


@dataclass(slots=True)
class BrokerLifecycle:
    """Sends heartbeats from `start` until `stop`."""

    brokers: Brokers
    report: Callable[[str], object]
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
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
            self.report(f"brokers that come or go are not noticed: {e}")
            return
        except Exception as e:  # a bug of ours must not end the heartbeats, for others would take this broker for dead
            self.report(f"brokers that come or go are not noticed: a bug: {type(e).__name__}: {e}; please report it")
            return
        if found != cluster.live:
            self.report(f"brokers that are alive: {', '.join(str(one.node_id) for one in found.brokers)}")
            cluster.live = found

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
