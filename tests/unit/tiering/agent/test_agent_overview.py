"""The JSON from which the page for people shows an agent's partitions."""

from dataclasses import replace

from agent_views import HOUR_MS, NOW_MS, agent_view, partition

from local_log.formats.filenames import TopicPartition
from tiering.agent.overview import GAPS_MAX, agent_overview
from tiering.agent.view import AgentView
from tiering.local_tier.service import LogOffsetsRow, TierStatus


def rows(view: AgentView) -> list[dict[str, object]]:
    table = agent_overview(view)["partitions"]
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def test_each_tier_of_a_partition_is_a_range_of_offsets() -> None:
    both, local, empty = rows(agent_view(partition("a"), partition("b", None, (5, 8)), partition("c", (4, 4), (4, 4))))
    assert (both["archive"], both["local"], both["gaps"], both["lost_offsets"]) == ((0, 900), (700, 1000), [], 0)
    assert (local["archive"], local["local"], local["unprotected_records"]) == (None, (5, 8), 3)
    assert (empty["archive"], empty["local"]) == (None, None)


def test_of_many_gaps_the_largest_are_told_in_order() -> None:
    gaps = [(10 * at, 10 * at + 1 + at % 3) for at in range(3 * GAPS_MAX)]
    (row,) = rows(agent_view(partition("a", (0, 9_000), (9_000, 9_001), gaps)))
    told = row["gaps"]
    assert isinstance(told, list)
    assert told == sorted(gap for gap in gaps if gap[1] - gap[0] == 3)
    assert row["gaps_left_out"] == 2 * GAPS_MAX


def test_a_partition_that_is_gone_with_records_is_a_row_without_a_local_log() -> None:
    gone = replace(partition("a"), gone_ms=NOW_MS - HOUR_MS)
    (row,) = rows(replace(agent_view(), gone=(gone, replace(partition("b", local=(900, 900)), gone_ms=NOW_MS))))
    assert (row["topic"], row["is_gone"], row["lost_offsets"], row["local"]) == ("a", True, 100, None)


def test_logs_of_our_own_begin_where_their_files_do() -> None:
    offsets = tuple(LogOffsetsRow(TopicPartition(name, 0), 0, 850, 1190, 1200) for name in ("a", "b"))
    tier = TierStatus("running", offsets=offsets, problems=("a disk",))
    view = replace(agent_view(partition("a", local=(0, 1000)), replace(partition("b"), seen=None)), local_tier=tier)
    seen, unseen = rows(view)
    assert seen["local"] == (850, 1000), "as old as its lag"
    assert unseen["local"] == (850, 1200)
    told = agent_overview(view)["local_tier"]
    assert (told["state"], told["problems"], "partitions" in told) == ("running", ["a disk"], False)


def test_the_summary_is_that_of_status() -> None:
    view = agent_view(partition("a", lost=7), partition("b", error="no answer"))
    status, overview = view.row(), agent_overview(view)
    assert {name: overview[name] for name in status if name in overview and name not in ("partitions", "local_tier")} == {
        name: value for name, value in status.items() if name not in ("partitions", "gone", "local_tier")
    }
