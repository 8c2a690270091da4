"""What the service tells Prometheus: the series, as data, their values, and the dashboard and alerts that go by them."""
