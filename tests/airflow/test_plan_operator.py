"""What the task that plans an offload makes of the rows of its command, and of how that ended."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from airflow_home import needs_airflow

from tiering.command.exit_codes import Exit
from tiering.offload.copy import REFUSED
from tiering.offload.plan import Action

pytestmark = [needs_airflow, pytest.mark.filterwarnings("default")]  # Airflow's own warnings are not ours to mend

TO_COPY = {
    Action.copy: True,
    Action.replace_archived: True,
    Action.archived: False,
    Action.keep: False,
    Action.skipped: False,
    Action.lost: False,
}
BEFORE_THE_CRASH = [(0, Action.archived), (1, Action.copy)]


def planned(rows: Iterable[tuple[int, str]], code: int = Exit.done) -> Any:
    """What the task returns if its command prints rows with these partitions and actions, and ends with `code`."""
    from tiering.airflow.operators import OffloadPlanOperator

    class Planned(OffloadPlanOperator):
        def words(self) -> list[str]:
            return ["offload"]

        def run_for_rows(self, words: Iterable[str], take: Callable[[dict[str, Any]], None]) -> tuple[int, str]:
            for partition, action in rows:
                take({"topic": "state", "partition": partition, "segment": 0, "action": str(action), "reason": ""})
            return code, "it said why"

    context: Any = {"ti": SimpleNamespace(try_number=1, max_tries=0)}
    return Planned(task_id="plan").execute(context)


def test_of_each_action_it_is_known_whether_its_partition_is_to_be_offloaded() -> None:
    assert TO_COPY.keys() == set(Action)
    assert {action: planned([(0, action)]) == [["state-0"]] for action in Action} == TO_COPY


def test_a_partition_that_was_compacted_since_it_was_archived_is_offloaded_beside_those_that_are_new() -> None:
    rows = [(0, Action.replace_archived), (0, Action.archived), (1, Action.keep), (2, Action.copy)]
    assert planned(rows) == [["state-0"], ["state-2"]]


@pytest.mark.parametrize(
    "code", [Exit.failure, Exit.usage, Exit.not_found, Exit.retry, Exit.corruption, Exit.interrupted, 137, -9]
)
def test_a_plan_whose_command_ended_before_all_partitions_were_planned_is_none(code: int) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    with pytest.raises(AirflowException, match="it said why") as failed:
        planned(BEFORE_THE_CRASH, code)
    is_final = isinstance(failed.value, AirflowFailException)
    assert is_final is (code in (Exit.usage, Exit.not_found, Exit.corruption))


@pytest.mark.parametrize("code", [Exit.failure, Exit.corruption])
def test_a_partition_that_cannot_be_planned_goes_with_the_others_so_that_its_task_tells(code: int) -> None:
    assert planned([(0, Action.copy), (1, REFUSED), (2, Action.keep)], code) == [["state-0"], ["state-1"]]


@pytest.mark.parametrize("code", [Exit.usage, Exit.not_found, Exit.retry, Exit.interrupted, 137, -9])
def test_a_command_that_was_ended_has_no_plan_also_if_it_has_refused_a_partition(code: int) -> None:
    from airflow.sdk.exceptions import AirflowException

    with pytest.raises(AirflowException, match="it said why"):
        planned([(0, Action.copy), (1, REFUSED)], code)


def test_a_plan_that_finds_losses_is_whole() -> None:
    assert planned([(0, Action.lost), (1, Action.copy)], Exit.partly) == [["state-1"]]
