"""The shipped alerts, evaluated by Prometheus' own rules engine: silent on a healthy day, and which of them fire in trouble.

Times of the series are seconds since the first value, as promtool has them.
"""

from pathlib import Path

import pytest
from promtool import INTERVAL_S, assert_fire, checked, needs_promtool

pytestmark = needs_promtool

DAY_S = 86_400
HOUR, STEPS = 3600 // INTERVAL_S, DAY_S // INTERVAL_S
NOW = f"0+{INTERVAL_S}x{STEPS}"
"""A time that is always just now."""


def agent(instance: str, **changed: str) -> dict[str, str]:
    """What an agent tells for a day, its series by their last words; those of `changed` otherwise."""
    values = {
        "up": f"1x{STEPS}",
        "kafka_tiering_agent_start_time_seconds": f"0x{STEPS}",
        "kafka_tiering_agent_loop_timestamp_seconds": NOW,
        "kafka_tiering_last_success_timestamp_seconds": NOW,
        "kafka_tiering_agent_paused": f"0x{STEPS}",
        "kafka_tiering_agent_scrubs": f"1x{STEPS}",
        "kafka_tiering_store_failing": f"0x{STEPS}",
        "kafka_tiering_scrub_anomalies": f"0x{STEPS}",
        "kafka_tiering_scrub_failed_topics": f"0x{STEPS}",
        "kafka_tiering_scrub_unreadable_segments": f"0x{STEPS}",
        "kafka_tiering_scrub_last_timestamp_seconds": f"0x{STEPS}",
        'kafka_tiering_partitions{topic="orders"}': f"4x{STEPS}",
        'kafka_tiering_partitions_failing{topic="orders"}': f"0x{STEPS}",
        'kafka_tiering_copy_lag_seconds{topic="orders"}': f"0x{STEPS}",
        'kafka_tiering_unprotected_deletion_timestamp_seconds{topic="orders",partition="0"}': f"604800+{INTERVAL_S}x{STEPS}",
        'kafka_tiering_lost_offsets_total{topic="orders",partition="0"}': f"0x{STEPS}",
        'kafka_tiering_local_retention_seconds{topic="orders"}': f"604800x{STEPS}",
        'kafka_server_brokertopicmetrics_remotecopyerrors_total{topic="orders"}': f"0x{STEPS}",
        'kafka_server_brokertopicmetrics_remotedeleteerrors_total{topic="orders"}': f"0x{STEPS}",
    }
    short = {name.partition("{")[0].removeprefix("kafka_tiering_").rpartition("metrics_")[2]: name for name in values}
    for name, told in changed.items():
        values[short[name]] = told
    return {_with(name, instance): told for name, told in values.items()}


def _with(series: str, instance: str) -> str:
    name, _, labels = series.rstrip("}").partition("{")
    own = f'job="kafka-tiering",instance="{instance}"'
    return f"{name}{{{own}{',' if labels else ''}{labels}}}"


def of(instance: str, **labels: str) -> dict[str, str]:
    return {"job": "kafka-tiering", "instance": instance, **labels}


def from_hour(hour: int, before: str, after: str) -> str:
    """One value for so many hours, then another one."""
    return f"{before}x{hour * HOUR} {after}x{STEPS - hour * HOUR}"


def test_promtool_finds_nothing_wrong_with_the_rules_and_their_texts(tmp_path: Path) -> None:
    assert "SUCCESS" in checked(tmp_path)


@pytest.mark.slow
def test_on_a_healthy_day_nothing_fires(tmp_path: Path) -> None:
    assert_fire(tmp_path, agent("one") | agent("two") | agent("three"), DAY_S, {})


def test_one_dead_agent_among_three_is_told_by_its_name(tmp_path: Path) -> None:
    dead = {name: from_hour(12, "0", "stale _") for name in agent("two")}  # as a scrape that fails leaves it
    dead[_with("up", "two")] = from_hour(12, "1", "0")
    series = agent("one") | dead | agent("three")
    assert_fire(tmp_path, series, 12 * 3600 + 360, {"KafkaTieringAgentGone": [of("two")]})


def test_an_agent_that_never_came_up_beside_others_is_told(tmp_path: Path) -> None:
    series = agent("one") | {_with("up", "new"): f"0x{STEPS}"}
    assert_fire(tmp_path, series, 3600, {"KafkaTieringAgentGone": [of("new")]})


def test_targets_of_other_jobs_are_not_taken_for_agents(tmp_path: Path) -> None:
    series = agent("one") | {'up{job="node",instance="elsewhere"}': f"0x{STEPS}"}
    assert_fire(tmp_path, series, 3600, {})


def test_where_no_agent_at_all_is_scraped_that_is_told(tmp_path: Path) -> None:
    assert_fire(tmp_path, {'up{job="node",instance="elsewhere"}': f"1x{STEPS}"}, 3600, {"KafkaTieringNoAgent": [{}]})


def test_an_outage_of_the_store_is_told_at_once_and_is_critical_when_it_lasts(tmp_path: Path) -> None:
    lag = f"0x{HOUR} 0+{INTERVAL_S}x{STEPS}"
    failing = from_hour(1, "0", "1")
    series = agent("one", store_failing=failing, copy_lag_seconds=lag) | agent("two")
    assert_fire(tmp_path, series, 3600 + 60, {"KafkaTieringStoreFailing": [of("one")]})
    expected = {"KafkaTieringStoreFailing": [of("one")], "KafkaTieringStoreFailingLong": [of("one")]}
    assert_fire(tmp_path, series, 3600 + 1020, expected)
    late = expected | {"KafkaTieringCopyLag": [of("one", topic="orders")]}
    assert_fire(tmp_path, series, 3 * 3600, late)


@pytest.mark.parametrize("failing", ["deadthreadcount", "uncleanable_partitions_count"])
def test_logs_that_the_cleaner_leaves_alone_are_told(tmp_path: Path, failing: str) -> None:
    own = {
        _with("kafka_log_logcleaner_deadthreadcount", "one"): f"0x{STEPS}",
        _with('kafka_log_logcleanermanager_uncleanable_partitions_count{logdirectory="/a"}', "one"): f"0x{STEPS}",
        _with('kafka_log_logcleanermanager_uncleanable_partitions_count{logdirectory="/b"}', "one"): f"0x{STEPS}",
    }
    (*_, name) = (series for series in own if failing in series)
    series = agent("one") | own | {name: from_hour(1, "0", "1")}
    assert_fire(tmp_path, series, 3500, {})
    assert_fire(tmp_path, series, 3600 + 180, {"KafkaTieringLogCleaner": [of("one")]})


def test_an_agent_that_hangs_is_told(tmp_path: Path) -> None:
    stuck = f"0+{INTERVAL_S}x{HOUR} 3600x{STEPS}"
    series = agent("one", agent_loop_timestamp_seconds=stuck)
    assert_fire(tmp_path, series, 3600 + 300, {"KafkaTieringAgentSilent": [of("one")]})


def test_an_agent_that_is_paused_is_told_after_an_hour_and_that_it_does_nothing_after_two(tmp_path: Path) -> None:
    stuck = f"0+{INTERVAL_S}x{HOUR} 3600x{STEPS}"
    series = agent("one", agent_paused=from_hour(1, "0", "1"), last_success_timestamp_seconds=stuck)
    assert_fire(tmp_path, series, 3600 + 1800, {})
    paused = {"KafkaTieringPaused": [of("one")]}
    assert_fire(tmp_path, series, 2 * 3600 + 60, paused)
    assert_fire(tmp_path, series, 4 * 3600, paused | {"KafkaTieringNoSuccess": [of("one")]})


def test_partitions_and_copies_and_deletions_that_fail_are_told_by_topic(tmp_path: Path) -> None:
    failing = f"0x{HOUR} 0+2x{STEPS}"
    topic = of("one", topic="orders")
    series = agent("one", partitions_failing=from_hour(1, "0", "2"), remotecopyerrors_total=failing)
    expected = {"KafkaTieringPartitionsFailing": [topic], "KafkaTieringCopyErrors": [{"topic": "orders"}]}
    assert_fire(tmp_path, series, 2 * 3600, expected)
    series = agent("one", remotedeleteerrors_total=failing)
    assert_fire(tmp_path, series, 2 * 3600, {"KafkaTieringDeleteErrors": [{"topic": "orders"}]})


def test_what_a_scrub_has_found_and_that_none_has_been_is_told(tmp_path: Path) -> None:
    series = agent("one", scrub_anomalies=from_hour(1, "0", "3"))
    assert_fire(tmp_path, series, 2 * 3600, {"KafkaTieringScrubAnomalies": [of("one")]})
    series = agent("one", scrub_failed_topics=from_hour(1, "0", "3"))
    assert_fire(tmp_path, series, 2 * 3600, {"KafkaTieringScrubAnomalies": [of("one")]})
    series = agent("one", scrub_last_timestamp_seconds=f"{-14 * DAY_S}x{STEPS}")
    assert_fire(tmp_path, series, 3600, {"KafkaTieringScrubOverdue": [of("one")]})


def test_segments_that_a_scrub_could_not_read_are_told_and_are_no_anomalies(tmp_path: Path) -> None:
    series = agent("one", scrub_unreadable_segments=from_hour(1, "0", "3")) | agent("two")
    assert_fire(tmp_path, series, 2 * 3600, {"KafkaTieringScrubUnreadable": [of("one")]})


def test_a_last_scrub_that_is_clearly_of_a_time_to_come_is_told(tmp_path: Path) -> None:
    ahead = {name: f"{2 * 3600 + ahead_s}x{STEPS}" for name, ahead_s in (("one", 365 * DAY_S), ("two", 3000))}
    series = {k: v for name, last in ahead.items() for k, v in agent(name, scrub_last_timestamp_seconds=last).items()}
    assert_fire(tmp_path, series, 2 * 3600, {"KafkaTieringScrubOverdue": [of("one")]})


def never(instance: str, **changed: str) -> dict[str, str]:
    """An agent that has not completed a scrub."""
    last = _with("kafka_tiering_scrub_last_timestamp_seconds", instance)
    return {name: told for name, told in agent(instance, **changed).items() if name != last}


def test_that_no_scrub_has_ended_since_two_weeks_is_told_also_if_the_agent_starts_again_and_again(tmp_path: Path) -> None:
    early, recent = f"{-15 * DAY_S}x{STEPS}", f"{-13 * DAY_S}x{STEPS}"
    again = f"{-15 * DAY_S}x{HOUR} 3600x{STEPS}"
    series = never("one", agent_start_time_seconds=early) | never("again", agent_start_time_seconds=again)
    series |= never("new", agent_start_time_seconds=recent) | agent("scrubbed", agent_start_time_seconds=early)
    assert_fire(tmp_path, series, 2 * 3600, {"KafkaTieringScrubOverdue": [of("one"), of("again")]})


def test_no_scrub_is_missed_where_none_is_to_be_made_or_nothing_is_there(tmp_path: Path) -> None:
    early = f"{-15 * DAY_S}x{STEPS}"
    series = never("off", agent_start_time_seconds=early, agent_scrubs=f"0x{STEPS}")
    series |= agent("off now", agent_scrubs=f"0x{STEPS}", scrub_last_timestamp_seconds=early)
    partitions = _with('kafka_tiering_partitions{topic="orders"}', "empty")
    series |= {name: told for name, told in never("empty", agent_start_time_seconds=early).items() if name != partitions}
    assert_fire(tmp_path, series, 2 * 3600, {})


def test_what_is_not_archived_and_will_soon_be_deleted_is_told(tmp_path: Path) -> None:
    series = agent("one", unprotected_deletion_timestamp_seconds=f"{12 * 3600}x{STEPS}")
    assert_fire(tmp_path, series, 5 * 3600, {})
    partition = of("one", topic="orders", partition="0")
    assert_fire(tmp_path, series, 7 * 3600, {"KafkaTieringUnprotectedDeletion": [partition]})


@pytest.mark.slow
def test_of_a_topic_that_is_kept_for_an_hour_it_is_told_when_a_quarter_of_it_is_left(tmp_path: Path) -> None:
    hour = f"3600x{STEPS}"
    always = f"3600+{INTERVAL_S}x{STEPS}"
    healthy = agent("one", local_retention_seconds=hour, unprotected_deletion_timestamp_seconds=always)
    assert_fire(tmp_path, healthy, DAY_S, {})
    late = agent("one", local_retention_seconds=hour, unprotected_deletion_timestamp_seconds=f"{12 * 3600}x{STEPS}")
    assert_fire(tmp_path, late, 12 * 3600 - 1200, {})
    partition = of("one", topic="orders", partition="0")
    assert_fire(tmp_path, late, 12 * 3600 - 300, {"KafkaTieringUnprotectedDeletion": [partition]})


def test_a_loss_is_told_at_once_by_its_partition(tmp_path: Path) -> None:
    series = agent("one", lost_offsets_total=from_hour(1, "0", "120")) | agent("two")
    assert_fire(tmp_path, series, 3600 + 60, {"KafkaTieringOffsetsLost": [of("one", topic="orders", partition="0")]})


def test_an_endpoint_that_is_gone_or_full_or_fails_is_told(tmp_path: Path) -> None:
    series = agent("agent")
    for instance, connections in (("one", 9_500), ("two", 10)):
        own = f'{{job="gateways",instance="{instance}"'
        series |= {
            f"up{own}}}": f"1x{STEPS}" if instance == "one" else from_hour(12, "1", "0"),
            f"kafka_tiering_endpoint_start_time_seconds{own}}}": f"0x{STEPS}",
            f"kafka_tiering_endpoint_connections_max{own}}}": f"10000x{STEPS}",
            f"kafka_server_socket_server_metrics_connection_count{own}}}": f"{connections}x{STEPS}",
            f'kafka_server_brokertopicmetrics_failedfetchrequests_total{own},topic="orders"}}': f"0+1x{STEPS}",
            f'kafka_server_brokertopicmetrics_failedproducerequests_total{own},topic="clicks"}}': f"0+1x{STEPS}",
            f'kafka_tiering_log_dir_usable_bytes{own},logdirectory="/logs"}}': f"{connections}x{STEPS}",
            f"kafka_tiering_log_dir_min_free_bytes{own}}}": f"100x{STEPS}",
            f"kafka_tiering_local_tier_offline_log_dirs{own}}}": f"{int(instance == 'one')}x{STEPS}",
        }
    broker = 'kafka_server_brokertopicmetrics_failedfetchrequests_total{job="kafka",instance="broker",topic="payments"}'
    series[broker] = f"0+9x{STEPS}"
    fired = {
        "KafkaTieringEndpointGone": [{"job": "gateways", "instance": "two"}],
        "KafkaTieringEndpointConnections": [{"job": "gateways", "instance": "one"}],
        "KafkaTieringEndpointFetchErrors": [{"topic": "orders"}],
        "KafkaTieringEndpointProduceErrors": [{"topic": "clicks"}],
        "KafkaTieringEndpointDiskFull": [{"job": "gateways", "instance": "two", "logdirectory": "/logs"}],
        "KafkaTieringLogDirOffline": [{"job": "gateways", "instance": "one"}],
    }
    assert_fire(tmp_path, series, 13 * 3600, fired)
