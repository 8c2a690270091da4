"""The series, the beans that they stand for, and the dashboard and alerts that name them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka_judge import Judge, oracle
from prometheus_client.parser import text_string_to_metric_families

from local_log.engine.manager.cleaner_status import CleanerStatus
from local_log.formats.filenames import TopicPartition
from remote.store.instrumented import Counted
from tiering.agent.outcome import Archived
from tiering.agent.view import AgentView, Counts, ErrorRecord, PartitionView, Scrub
from tiering.lag.archived import NOTHING
from tiering.lag.copy_lag import Lag
from tiering.lag.local_log import LogSeen, OldestUnarchived, SegmentSeen
from tiering.lag.unprotected import TopicRetention
from tiering.local_tier.service import LogOffsetsRow, TierStatus
from tiering.metrics.endpoint_series import OF_ENDPOINT, OF_OWN_LOGS
from tiering.metrics.exposition import exposition
from tiering.metrics.series import ALL, LOST, NOT_EXPORTED, PROCESS_SERIES, Series
from tiering.metrics.shipped import alerts, dashboard, endpoint_dashboard
from tiering.metrics.values import values

KNOWN = {series.name for series in (*ALL, *OF_ENDPOINT, *OF_OWN_LOGS)} | set(PROCESS_SERIES) | {"up"}
WORDS = {
    "sum", "max", "min", "by", "rate", "increase", "time", "absent", "and", "or", "on", "label_values", "avg", "without", "topic",
    "instance", "error", "operation", "resource", "verb", "s", "m", "h", "d", "job", "group", "last_over_time",
    "unless", "min_over_time", "group_left", "partition", "logdirectory", "request", "protocol", "state",
}  # fmt: skip
NOW_MS = 1_700_000_000_000
SERVER = "kafka.server:"


def names_in(promql: str) -> set[str]:
    """The series that an expression names: its words but for strings, labels in braces, ranges, functions and numbers."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]', "", promql)
    return set(re.findall(r"[A-Za-z_:][A-Za-z0-9_:]*", bare)) - WORDS


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(alerts())["groups"] for rule in group["rules"]]


def panels(text: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text or dashboard())["panels"]
    return found


def view() -> AgentView:
    """An agent that has something to tell by every series."""
    orders, payments = TopicPartition("orders", 0), TopicPartition("payments", 3)
    active = SegmentSeen(100, None, 900, NOW_MS - 1_000, 7_000)
    oldest = OldestUnarchived(100, 0, NOW_MS - 30_000, NOW_MS - 2_000)
    seen = LogSeen((active,), 7_900, 140, replace(NOTHING, end_offset=100), NOTHING, "", 0, oldest)
    retention = TopicRetention(3_600_000, None)
    lag = Lag(3, 3_000, NOW_MS - 60_000, 1, "reaches past")
    archived = Archived(0, 100, 7, 7_000, 2, 200)
    told = ErrorRecord("Unavailable", "no answer", NOW_MS)
    own = LogOffsetsRow(orders, 0, 5, 9, 9, 700, 2, 4)
    cleaner = CleanerStatus(uncleanable={"/logs": (2, 500)})
    return AgentView(
        NOW_MS - 1_000_000, NOW_MS, NOW_MS - 5, ("/logs",), "s3://bucket", has_looked=True, running=2, waiting=5,
        store=ErrorRecord("Unavailable", "no answer", NOW_MS - 60_000),
        swept_ms=NOW_MS - 9_000, scrub=Scrub(NOW_MS - 8_000, NOW_MS - 7_000, 2, 1, ("missing_object: k",)), scrubs=True,
        partitions=(
            PartitionView("/logs", orders, lag, archived, NOW_MS - 50, NOW_MS - 60, seen=seen, retention=retention),
            PartitionView("/logs", TopicPartition("orders", 1), Lag(1, 500, NOW_MS - 10_000), archived, NOW_MS - 40, 0, told),
            PartitionView("/logs", payments),
        ),
        gone=(PartitionView("/logs", TopicPartition("gone", 0), seen=seen, gone_ms=NOW_MS),),
        counts={"orders": Counts(10, 2, 1, 4, 3), "": Counts(delete_errors=9)},
        local_tier=TierStatus("running", 1, ticked_ms=NOW_MS, offsets=(own,), cleaner=cleaner),
    )  # fmt: skip


COUNTED = {"get": Counted(5, 1, 500, 0.5), "get_range": Counted(2, 0, 50, 0.25), "upload": Counted(3, 2, 900, 1.5)}


def test_names_are_one_each_and_follow_prometheus_rules() -> None:
    assert len({series.name for series in ALL}) == len(ALL)
    for series in ALL:
        assert re.fullmatch(r"[a-z_][a-z0-9_]*", series.name)
        assert series.help.endswith(".")
        assert all(re.fullmatch(r"[a-z]+", label) for label in series.labels)


def test_kafka_s_series_are_what_the_jmx_exporter_s_rules_make_of_the_beans() -> None:
    counter = re.compile(r"kafka.(\w+):type=(.+?),name=(.+)PerSec\w*(,topic=…)?$")
    gauge = re.compile(r"kafka.(\w+):type=(.+?),name=([^,]+)(,topic=…)?$")
    beans = [series for series in ALL if series.bean.startswith(SERVER)]
    assert len(beans) == 14
    for series in beans:
        meter, value = counter.match(series.bean), gauge.match(series.bean)
        if meter:
            assert series.name == f"kafka_{meter[1]}_{meter[2]}_{meter[3]}_total".lower()
        else:
            assert value
            assert series.name == f"kafka_{value[1]}_{value[2]}_{value[3]}".lower()
        assert series.labels == (("topic",) if "topic" in series.bean else ())


def test_the_log_cleaner_s_series_are_what_these_rules_make_of_its_beans() -> None:
    bean = re.compile(r"kafka.log:type=(LogCleaner|LogCleanerManager),name=([^,]+)(,logdirectory=…)?$")
    beans = [series for series in ALL if series.bean.startswith("kafka.log:type=LogCleaner")]
    assert len(beans) == 9
    for series in beans:
        found = bean.match(series.bean)
        assert found
        assert series.name == f"kafka_log_{found[1]}_{found[2]}".lower().replace("-", "_")
        assert series.labels == (("logdirectory",) if found[3] else ())


def test_a_log_s_series_are_what_these_rules_make_of_its_beans() -> None:
    beans = {series.name: series for series in ALL if series.bean.startswith("kafka.log:type=Log,")}
    assert {name: series.bean for name, series in beans.items()} == {
        "kafka_log_log_size": "kafka.log:type=Log,name=Size,topic=…,partition=…",
        "kafka_log_log_numlogsegments": "kafka.log:type=Log,name=NumLogSegments,topic=…,partition=…",
    }
    assert {series.labels for series in beans.values()} == {("topic", "partition")}


@oracle
def test_every_bean_of_kafka_s_tiered_storage_is_here_or_said_not_to_be(kafka: Judge) -> None:
    word, *names = kafka.ask("remote-metrics")
    assert word == "ok"
    ours = {series.bean.partition("name=")[2].partition(",")[0] for series in ALL if series.bean.startswith(SERVER)}
    assert set(names) == ours | NOT_EXPORTED.keys()


def test_every_series_has_a_value_when_there_is_something_to_tell() -> None:
    found = values(view(), COUNTED)
    assert {series for series, samples in found.items() if not samples} == set()
    assert set(found) == set(ALL)
    for series, samples in found.items():
        assert all(len(labels) == len(series.labels) for labels in samples), series


def test_values_are_summed_over_a_topic_s_partitions() -> None:
    told = {series.name.rpartition("brokertopicmetrics_")[2]: samples for series, samples in values(view(), COUNTED).items()}
    assert told["remotecopylagbytes"] == {("orders",): 3_500, ("payments",): 0}
    assert told["remotecopylagsegments"] == {("orders",): 4, ("payments",): 0}
    assert told["kafka_tiering_copy_lag_seconds"] == {("orders",): 60.0, ("payments",): 0.0}
    assert told["remotelogsizebytes"] == {("orders",): 14_000, ("payments",): 0}
    assert told["remotedeletelagsegments"] == {("orders",): 4, ("payments",): 0}
    assert told["kafka_tiering_partitions_failing"] == {("orders",): 1, ("payments",): 0}
    assert told["kafka_tiering_unprotected_bytes"] == {("orders", "0"): 900, ("orders", "1"): 0, ("payments", "3"): 0}
    assert told["kafka_tiering_unprotected_records"][("orders", "0")] == 40
    assert told["kafka_tiering_unprotected_seconds"][("orders", "0")] == 30.0
    deleted_s = (NOW_MS - 2_000 + 3_600_000) / 1000
    assert told["kafka_tiering_unprotected_deletion_timestamp_seconds"] == {("orders", "0"): deleted_s}
    assert {of: n for of, n in told["kafka_tiering_lost_offsets_total"].items() if n} == {("gone", "0"): 40}
    assert told["kafka_tiering_local_retention_seconds"] == {("orders",): 3600.0}
    assert told["remotecopybytes_total"] == {("orders",): 10}
    assert told["remotefetchbytes_total"] == {(): 550}
    assert told["remotefetcherrors_total"] == {(): 1}


def test_prometheus_reads_what_is_exposed_and_nothing_is_lost_on_the_way() -> None:
    given = values(view(), COUNTED)
    text = exposition(lambda: given)().decode()
    read = {(s.name, frozenset(s.labels.items())): s.value for f in text_string_to_metric_families(text) for s in f.samples}
    for series, samples in given.items():
        for labels, value in samples.items():
            assert read.pop((series.name, frozenset(zip(series.labels, labels, strict=True)))) == value
    assert {name for name, _ in read} == set(PROCESS_SERIES)


def test_before_there_is_anything_to_tell_all_is_exposed_that_is_known() -> None:
    nothing = AgentView(NOW_MS, NOW_MS, NOW_MS, (), "")
    families = {f.name for f in text_string_to_metric_families(exposition(lambda: values(nothing, {}))().decode())}
    assert {s.name.removesuffix("_total") for s in ALL} <= families


def test_alerts_name_only_series_that_exist() -> None:
    assert len(rules()) > 8
    for rule in rules():
        named = names_in(rule["expr"])
        assert named, rule
        assert named <= KNOWN, rule["alert"]


def test_alerts_are_rules_as_prometheus_has_them() -> None:
    """What promtool checks that needs no parser of its language."""
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    labels = {label for series in (*ALL, *OF_ENDPOINT, *OF_OWN_LOGS) for label in series.labels} | {"instance", "job"}
    for rule in rules():
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smhd]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        for text in rule["annotations"].values():
            for used in re.findall(r"\{\{(.*?)\}\}", text):
                label = used.strip().removeprefix("$labels.")
                assert label in labels or re.fullmatch(r" \$value( \| humanizeDuration)? ", used), used
        expr = rule["expr"]
        assert all(expr.count(a) == expr.count(b) for a, b in ("()", "[]", "{}"))
        for name in names_in(expr):
            if re.search(rf"(rate|increase)\({name}", expr):
                assert name.endswith("_total"), "a rate is of a counter"
            elif name.endswith("_total") and name != LOST.name:  # what is lost stays so until somebody acknowledges it
                raise AssertionError(f"{rule['alert']}: a counter without a rate")
        for topic_used in ("$labels.topic",):
            if any(topic_used in text for text in rule["annotations"].values()):
                kept = "by (topic)" in expr or all("topic" in s.labels for s in ALL if s.name in names_in(expr))
                assert kept, rule["alert"]


def test_the_dashboard_names_only_series_that_exist_and_every_one_of_kafka_s_but_plain_requests() -> None:
    named = {name for panel in panels() for target in panel["targets"] for name in names_in(target["expr"])}
    assert named <= KNOWN
    left = {series.name for series in ALL if series.bean} - named
    assert all("requests_total" in name or "fetchbytes" in name or "lagsegments" in name for name in left), left
    variables = json.loads(dashboard())["templating"]["list"]
    assert {name for v in variables if v["type"] == "query" for name in names_in(v["query"]["query"])} <= KNOWN


def test_the_endpoint_s_dashboard_names_its_series_and_each_of_a_broker_s() -> None:
    named = {name for p in panels(endpoint_dashboard()) for target in p["targets"] for name in names_in(target["expr"])}
    assert named <= {series.name for series in (*OF_ENDPOINT, *OF_OWN_LOGS)}
    left = {series.name for series in OF_ENDPOINT if series.bean} - named
    assert left == {"kafka_server_brokertopicmetrics_remotefetchrequests_total"}


@pytest.mark.parametrize("text", [dashboard(), endpoint_dashboard()], ids=["agent", "endpoint"])
def test_the_dashboard_s_panels_are_whole_and_lie_beside_each_other(text: str) -> None:
    taken: set[tuple[int, int]] = set()
    assert len({panel["id"] for panel in panels(text)}) == len(panels(text))
    for panel in panels(text):
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs) > 0
        for target in panel["targets"]:
            assert all(target["expr"].count(a) == target["expr"].count(b) for a, b in ("()", "[]", "{}"))


def test_terraform_s_alarms_name_series_that_exist() -> None:
    module = Path(__file__).parents[4] / "terraform" / "modules" / "monitoring" / "variables.tf"
    named = re.findall(r'metric_name += "([A-Za-z_]+)"', module.read_text())
    assert len(named) >= 5
    assert set(named) <= KNOWN


@pytest.mark.parametrize("series", ALL, ids=lambda s: s.name)
def test_each_series_is_in_the_table(series: Series) -> None:
    from tiering.metrics.series import row

    assert row(series)["kafka"] == series.bean
    assert row(series)["type"] == ("counter" if series.name.endswith("_total") else "gauge")
