"""What the agent knows: its partitions, its jobs, its memory. The loop and its tasks change it, in one thread, under the lock."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from local_log.errors import LogError
from tiering.agent.copy_round import CopyRound
from tiering.agent.job_queue import JobQueue
from tiering.agent.memory import MemoryFile
from tiering.agent.outcome import Failure, Outcome
from tiering.agent.schedule import Job
from tiering.agent.seen_there import SeenThere
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.view import Counts, ErrorRecord, PartitionView
from tiering.agent.watch import Mark


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed of the partitions since the tasks planned last.

    `noted` are the marks of all folders of a look, each with the one before; `dropped` are partitions that are gone, as they were
    last known. `vanished` are those that were gone before this agent looked, and of which it has no jobs: their folders may be
    those of other topics, which have. `copied` are the folders of which a segment was archived, `formers` those that belonged to
    other topics before, with the ids of these.
    """

    noted: tuple[tuple[Mark | None, Mark], ...] = ()
    dropped: tuple[tuple[PartitionView, Mark], ...] = ()
    vanished: tuple[tuple[PartitionView, Mark], ...] = ()
    copied: tuple[str, ...] = ()
    formers: tuple[tuple[str, str], ...] = ()


class AgentState:
    """By folders: `marks` and `views` of partitions that are there. `gone` are those of which something is, or may be, lost, by
    the jobs that tell it.

    `lock` is held while it changes; other threads hold it while they read.
    """

    def __init__(self, source: Source, settings: Settings, around: Surroundings, memory: MemoryFile) -> None:
        self.lock = Lock()
        self.queue = JobQueue(settings.threads, settings.backoff, around.chance)
        self.marks: dict[str, Mark] = {}
        self.views: dict[str, PartitionView] = {}
        self.gone: dict[Job, PartitionView] = {}
        self.counts: dict[str, Counts] = {}
        self.error: ErrorRecord | None = None
        self.failures = 0
        """How often something that is of no partition has gone wrong."""
        self._told_errors: set[str] = set()
        self.is_saved = True
        """Whether the file has all of the memory."""
        self.memory = memory.load()
        self.log_dirs = source.log_dirs
        self.tell, self.round = around.tell, CopyRound()
        self.report, self._clock, self._memory_file = around.report, around.clock, memory
        self.there = SeenThere(source.log_dirs, memory, source.archive_url, around.clock, self.hurt)
        self._copied: list[str] = []
        self._formers: list[tuple[str, str]] = []
        self._told: dict[Job, str] = {}
        self._told_losses: dict[str, tuple[int, int]] = {}
        """By folder, how many lost offsets were reported last, and when the manifest recorded the first of them."""
        self._topics: dict[Job, str | None] = {}
        """Of the jobs that run, whose topic's folder it was when their turns began."""

    def now_ms(self) -> int:
        """The time by the agent's clock."""
        return self._clock.now_ms()

    def view_of(self, mark: Mark) -> PartitionView | None:
        """The view of the log that a look has found, None if the folder is new or was another topic's."""
        view, before = self.views.get(mark.folder), self.marks.get(mark.folder)
        known = (view and view.topic_id, before and before.topic_id)  # a turn may have read what a look could not
        return view if mark.topic_id is None or all(of in (None, mark.topic_id) for of in known) else None

    def take_in_look(self, marks: dict[str, Mark], views: dict[str, PartitionView]) -> Changes:
        """Partitions as they are there now; gives what has changed by that."""
        gone = [folder for folder in self.marks if folder not in marks or self.view_of(marks[folder]) is None]
        dropped = tuple((self.views.pop(folder), self.marks.pop(folder)) for folder in gone)
        for folder in gone:
            self._told_losses.pop(folder, None)
        noted = tuple((self.marks.get(folder), mark) for folder, mark in marks.items())
        self.views.update(views)
        self.marks = marks
        self._told = {job: message for job, message in self._told.items() if job.subject in marks}
        return Changes(noted, dropped)

    def with_outcomes(self, changes: Changes) -> Changes:
        """The changes with what the turns have found and done since this was asked last."""
        copied, formers, self._copied, self._formers = tuple(self._copied), tuple(self._formers), [], []
        return replace(changes, copied=copied, formers=formers)

    def start(self, job: Job) -> None:
        """A turn of the job begins."""
        self.queue.start(job)
        self._topics[job] = self._topic_of(job)

    def take_in(self, outcome: Outcome) -> None:
        """What a turn has found and done, in its partition's view and in the counts of its topic; what is new is reported.

        The view may be another topic's than the turn was of, if the topic was deleted and created again.
        """
        now_ms, job = self.now_ms(), outcome.job
        is_of_view = not job.topic_id and self._topics.pop(job, None) == self._topic_of(job)
        view = self.views.get(job.subject) if is_of_view else None
        topic = view.partition.topic if view else ""
        self.counts[topic] = self.counts.get(topic, Counts()).after(outcome)
        if view is not None:
            after = self.views[outcome.job.subject] = view.after(outcome, now_ms)
            for message in self._news(outcome, view, after):
                self.report(message)
        elif outcome.error is not None:
            self.hurt(outcome.error)
        self._formers += ((outcome.job.subject, topic_id) for topic_id in outcome.formers)
        if outcome.copied is not None:
            self._copied.append(outcome.job.subject)
            self.round.copied(outcome.job.subject, outcome.copied, now_ms)

    def _topic_of(self, job: Job) -> str | None:
        mark = self.marks.get(job.subject)
        return None if mark is None else mark.topic_id

    def _news(self, outcome: Outcome, before: PartitionView, after: PartitionView) -> Iterator[str]:
        """Messages of errors and losses that were not there before. A job's error is told once until the job succeeds.

        The view has one error for all jobs of a partition, and a success of one job says nothing of another's error.
        """
        if outcome.error is None and not outcome.is_only_begun and self._told.pop(outcome.job, None) is not None:
            self.tell("works again after a failure", {"partition": str(after.partition), "task": outcome.job.kind.name})
        if outcome.error is not None and after.error is not None and self._told.get(outcome.job) != after.error.message:
            self._told[outcome.job] = after.error.message
            if before.error is None or before.error.message != after.error.message:
                yield after.error.message
        if after.refused is not None and (before.refused is None or before.refused.message != after.refused.message):
            yield after.refused.message
        if self._is_new_loss(outcome.job.subject, after):
            yield after.lost_message()

    def _is_new_loss(self, folder: str, view: PartitionView) -> bool:
        """Whether more is lost than was reported, or something else: what was reported may have been acknowledged meanwhile."""
        since_ms = view.archived.lost_since_ms if view.archived is not None else None
        told, told_since_ms = self._told_losses.get(folder, (0, 0))
        self._told_losses[folder] = view.lost_offsets, since_ms or 0
        return view.lost_offsets > told or bool(view.lost_offsets and since_ms and 0 < told_since_ms < since_ms)

    def remember(self, **changes: Any) -> None:
        """Saves these fields of the memory. If that fails the agent continues; after a restart it may do work again too early."""
        self.memory = replace(self.memory, **changes)
        try:
            self._memory_file.save(self.memory)
            self.is_saved = True
        except LogError as e:
            self.is_saved = False
            self.hurt(e)

    def hurt(self, error: Failure) -> None:
        """What is of no partition goes wrong; it is reported once."""
        self.failures += 1
        self.error = record = ErrorRecord.of(error, self.now_ms())
        if record.message not in self._told_errors:
            self._told_errors.add(record.message)
            self.report(record.message)

    def is_well(self) -> None:
        """Nothing has gone wrong any more that is of no partition."""
        self.error = None
        self._told_errors.clear()
