"""How many connections there are, in all and from one address (Kafka's ConnectionQuotas)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class ConnectionQuotas:
    """Counts connections, and refuses what is above its limits."""

    connections_max: int
    per_ip_max: int
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    _by_ip: Counter[str] = field(default_factory=Counter)
    count: int = 0

    def refusal(self, ip: str) -> str:
        """Why no connection from `ip` is accepted now, empty if one is."""
        if self.count >= self.connections_max:
            return f"there are {self.count} connections, as many as max.connections allows"
        if self._by_ip[ip] >= self.per_ip_overrides.get(ip, self.per_ip_max):
            setting = "max.connections.per.ip.overrides" if ip in self.per_ip_overrides else "max.connections.per.ip"
            return f"there are {self._by_ip[ip]} connections from {ip}, as many as {setting} allows"
        return ""

    def add(self, ip: str) -> None:
        """One more from `ip`."""
        self.count += 1
        self._by_ip[ip] += 1

    def remove(self, ip: str) -> None:
        """One less."""
        self.count -= 1
        self._by_ip[ip] -= 1
        if not self._by_ip[ip]:
            del self._by_ip[ip]
