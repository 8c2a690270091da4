"""Prometheus' own promtool as judge of the shipped alerts: which of them fire on given series."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tiering.metrics.shipped import alerts

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not here; it comes with Debian's package prometheus")

INTERVAL_S = 60
Series = Mapping[str, str]
"""Values in promtool's notation, by name and labels as PromQL writes them."""
Fires = Mapping[str, Iterable[Mapping[str, str]]]
"""The labels with which an alert fires, by its name; one that is not named does not fire."""


def checked(folder: Path) -> str:
    """What promtool says of the rules as they are shipped: their syntax, and that of their texts."""
    file = folder / "alerts.yaml"
    file.write_text(alerts())
    return _asked("check", "rules", str(file))


def assert_fire(folder: Path, series: Series, at_s: int, expected: Fires) -> None:
    """Exactly these alerts fire at a time; the first value of each series is of time 0, the others follow a minute apart."""
    groups = yaml.safe_load(alerts())["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    assert expected.keys() <= rules.keys()
    for rule in rules.values():
        del rule["annotations"]  # their texts would have to be told with each expected alert
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    told = [_expected(rule, at_s, expected.get(name, ())) for name, rule in rules.items()]
    test = {
        "interval": f"{INTERVAL_S}s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": told,
    }
    body = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{INTERVAL_S}s", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(body))
    _asked("test", "rules", str(folder / "test.yaml"))


def scraped(text: str, now_s: float, at_s: int) -> dict[str, str]:
    """The series that an agent has told at `now_s`, as if that had been at `at_s` and they had been the same all the while."""
    found: dict[str, str] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            is_time = sample.name.endswith(("_timestamp_seconds", "_start_time_seconds"))
            value = sample.value - now_s + at_s if is_time else sample.value
            labels = {"job": "kafka-tiering", "instance": "one", **sample.labels}
            told = ",".join(f'{name}="{one}"' for name, one in labels.items())
            found[f"{sample.name}{{{told}}}"] = f"{value:.3f}x{at_s // INTERVAL_S + 1}"
    return found


def _expected(rule: Mapping[str, Any], at_s: int, labels: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    alerts = [{"exp_labels": {**rule["labels"], **one}} for one in labels]
    return {"eval_time": f"{at_s}s", "alertname": rule["alert"], "exp_alerts": alerts}


def _asked(*args: str) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
