"""The Grafana dashboard and the Prometheus alerting rules of the package."""

from pkgutil import get_data


def dashboard() -> str:
    """The Grafana dashboard, as JSON."""
    return _file("dashboard.json")


def alerts() -> str:
    """The alerting rules for Prometheus, as YAML."""
    return _file("alerts.yaml")


def _file(name: str) -> str:
    body = get_data("tiering.metrics", name)
    assert body is not None
    return body.decode()
