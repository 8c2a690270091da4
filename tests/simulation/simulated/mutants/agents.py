"""Faults in the agent: what it remembers, which of its jobs it does again, and what it tells."""

from dataclasses import replace
from typing import Any

from local_log.log_dir import LogDir
from simulated.mutants.registry import mutant
from tiering.agent import memory, seen_there
from tiering.agent.agent import Agent
from tiering.agent.job_queue import JobQueue
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job
from tiering.agent.seen_there import SeenThere
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks import copy
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.view import PartitionView
from tiering.agent.watch import Mark
from tiering.losses import seen_logs


@mutant
def look_for_no_partition_that_is_gone_since_the_last_agent() -> None:
    SeenThere._gone = lambda self, log_dir, file, wanted, marks: ()  # type: ignore[assignment,method-assign]


@mutant
def take_a_manifest_that_was_read_for_one_that_has_recorded_the_log() -> None:
    after = PartitionView.after

    def taken(self: PartitionView, outcome: Outcome, now_ms: int) -> PartitionView:
        found = after(self, outcome, now_ms)
        return replace(found, is_recorded=found.archived is not None)

    PartitionView.after = taken  # type: ignore[method-assign]


@mutant
def keep_one_former_topic_of_a_folder() -> None:
    file_of, keep = SeenThere._file_of_former, SeenThere._keep_former

    def kept(self: SeenThere, mark: Mark, log: Any) -> bool:
        self._formers = {key: of for key, of in self._formers.items() if key[0] != mark.folder}
        return keep(self, mark, log)

    SeenThere._file_of_former = lambda self, topic_id, log_dir: file_of(self, "one", log_dir)  # type: ignore[method-assign]
    SeenThere._keep_former = kept  # type: ignore[method-assign]


@mutant
def remove_the_jobs_of_a_topic_whose_former_one_is_noticed_later() -> None:
    look = Agent._look

    def looked(self: Agent, now_ms: int) -> Changes:
        changes = look(self, now_ms)
        return replace(changes, dropped=(*changes.dropped, *changes.vanished), vanished=())

    Agent._look = looked  # type: ignore[method-assign]


@mutant
def take_the_path_of_a_directory_that_is_not_mounted_for_its_id() -> None:
    LogDir.mounted_id = LogDir.id  # type: ignore[method-assign]


@mutant
def take_what_goes_with_its_mount_in_a_look_for_gone() -> None:
    LogDir.check_mounted = lambda self: None  # type: ignore[method-assign]


@mutant
def leave_the_name_of_a_new_folder_to_the_file_system() -> None:
    memory.make_missing_folder = seen_logs.make_missing_folder = lambda disk, folder: disk.make_folder(folder)


@mutant
def keep_nothing_of_what_was_read_since_the_last_look() -> None:
    keep = SeenThere.keep
    SeenThere.keep = lambda self, views, marks, now_ms, is_last=False: None if is_last else keep(self, views, marks, now_ms)  # type: ignore[assignment,method-assign,misc]


@mutant
def keep_logs_without_what_is_archived_of_them() -> None:
    def kept(self: Agent, now_ms: int, *, is_whole: bool = False, is_last: bool = False) -> None:
        self._state.there.keep(self._state.views, self._state.marks, now_ms, is_last=is_last)

    Agent._keep = kept  # type: ignore[method-assign]


@mutant
def forget_with_the_process_what_is_lost() -> None:
    SeenThere.keep_gone = lambda self, mark, seen, recorded_ms: None  # type: ignore[method-assign]


@mutant
def forget_a_former_topic_when_its_folder_is_taken() -> None:
    SeenThere._keep_former = lambda self, mark, log: True  # type: ignore[method-assign]


@mutant
def forget_a_partition_once_its_loss_is_recorded() -> None:
    done = LostPartitionsTask.done

    def forgotten(self: LostPartitionsTask, outcome: Outcome, was: Any, state: AgentState, now_ms: int) -> None:
        view, mark = state.gone.get(outcome.job), self._marks.get(outcome.job)
        done(self, outcome, was, state, now_ms)
        if view is not None and mark is not None and outcome.error is None and outcome.due_ms is None:
            state.there.forget(mark, outcome.job.topic_id)

    LostPartitionsTask.done = forgotten  # type: ignore[method-assign]


@mutant
def leave_a_partition_alone_that_was_gone_at_its_turn() -> None:
    look = CopyTask._look

    def looked(self: CopyTask, job: Job, mark: Mark) -> Outcome:
        found = look(self, job, mark)
        return replace(found, is_left_alone=True) if found == Outcome(job) else found

    CopyTask._look = looked  # type: ignore[method-assign]


@mutant
def take_a_topic_that_is_made_again_for_the_same_folder() -> None:
    AgentState.view_of = lambda self, mark: self.views.get(mark.folder)  # type: ignore[method-assign]


@mutant
def report_no_loss() -> None:
    PartitionView.lost_message = lambda self: f"{self.partition}: something has changed"  # type: ignore[method-assign]


@mutant
def show_no_loss() -> None:
    PartitionView._own_lost_offsets = property(lambda self: 0)  # type: ignore[assignment,method-assign]


@mutant
def keep_an_error_that_is_over() -> None:
    AgentState.is_well = lambda self: None  # type: ignore[method-assign]


@mutant
def give_a_job_up_that_has_failed() -> None:
    JobQueue.try_again = lambda self, job, was, now_ms: None  # type: ignore[method-assign]


@mutant
def remember_logs_with_their_first_end() -> None:
    seen = seen_there._seen

    def first(view: PartitionView, known: Any, now_ms: int) -> Any:
        found = seen(view, known, now_ms)
        return known if found is not None and known is not None and known.topic_id == found.topic_id else found

    seen_there._seen = first


@mutant
def plan_a_partition_once() -> None:
    copy.has_changed = lambda before, after, *, waits: before is None
    copy.RECHECK_MS = 1 << 60  # type: ignore[misc]


@mutant
def take_for_saved_what_the_state_folder_has_refused() -> None:
    keep = SeenThere._keep

    def kept(self: SeenThere, *given: Any) -> bool:
        keep(self, *given)
        return True

    SeenThere._keep = kept  # type: ignore[method-assign]


@mutant
def say_nothing_of_a_state_folder_that_fails() -> None:
    AgentState.hurt = lambda self, error: None  # type: ignore[method-assign]
