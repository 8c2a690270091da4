"""Prometheus metrics of the agent and of the endpoint: the series, their values, and the dashboards and alerts that use them."""
