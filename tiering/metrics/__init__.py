"""Prometheus metrics of the agent: the series, their values, and the dashboard and alerts that use them."""
