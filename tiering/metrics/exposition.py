"""Renders metrics in Prometheus' text format. The only importer of its client."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tiering.metrics.series import Series
from tiering.metrics.values import Samples

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _CallbackCollector(Collector):
    def __init__(self, ask: Callable[[], Mapping[Series, Samples]]) -> None:
        self._ask = ask

    def collect(self) -> Iterable[Metric]:
        for series, samples in self._ask().items():
            family = CounterMetricFamily if series.is_counter else GaugeMetricFamily
            metric = family(series.name, series.help, labels=series.labels)
            for labels, value in samples.items():
                metric.add_metric(labels, value)
            yield metric

    def describe(self) -> Iterable[Metric]:
        return []  # so that the registry does not collect at registration


def exposition(ask: Callable[[], Mapping[Series, Samples]]) -> Callable[[], bytes]:
    """A function that renders the current series of `ask` and the metrics of the process."""
    registry = CollectorRegistry()
    registry.register(_CallbackCollector(ask))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry)
