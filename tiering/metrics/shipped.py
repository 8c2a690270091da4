"""The Grafana dashboards and the Prometheus alerting rules of the package."""

from pkgutil import get_data


def dashboard() -> str:
    """The Grafana dashboard of agents, as JSON."""
    return _file("dashboard.json")


def endpoint_dashboard() -> str:
    """The Grafana dashboard of endpoints, as JSON."""
    return _file("endpoint_dashboard.json")


def alerts() -> str:
    """The alerting rules for Prometheus, as YAML."""
    return _file("alerts.yaml")


def _file(name: str) -> str:
    body = get_data("tiering.metrics", name)
    assert body is not None
    return body.decode()
