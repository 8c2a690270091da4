"""Partitions that have gone from their log directories: they are shown as long as something is, or may be, lost by that."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job
from tiering.agent.tasks.copy import Copies
from tiering.agent.view import PartitionView
from tiering.agent.watch import Mark


class Missing:
    """By their folders. `say` is told, for people, what may be lost, and then what is; `told` of which manifests were told."""

    def __init__(self, say: Callable[[str], None], told: Callable[[Mark], None]) -> None:
        self._say, self._told = say, told
        self._views: dict[str, PartitionView] = {}
        self._marks: dict[str, Mark] = {}

    @property
    def views(self) -> tuple[PartitionView, ...]:
        """What is known of them."""
        return tuple(self._views.values())

    def note(self, view: PartitionView, mark: Mark, now_ms: int) -> bool:
        """A folder is gone; gives whether the partition's manifest is to be told."""
        if view.seen is None or view.is_left_alone:
            return False
        self._views[mark.folder], self._marks[mark.folder] = replace(view, gone_ms=now_ms), mark
        if (records := view.unprotected(now_ms).records) > 0:
            self._say(
                f"{view.partition} is gone from {view.log_dir}, and {records} of its offsets were not archived: where no other "
                "broker has them, they are lost; see docs/operations.md, Offsets were lost"
            )
        return True

    def back(self, folder: str) -> None:
        """A folder is there again."""
        self._views.pop(folder, None)
        self._marks.pop(folder, None)

    def work(self, job: Job, copies: Copies) -> Callable[[], Outcome] | None:
        """What tells the manifest of one, None for a folder that is not missing."""
        view = self._views.get(job.subject)
        if view is None or view.seen is None:
            return None
        return partial(copies.gone, job, self._marks[job.subject], view.seen)

    def apply_outcome(self, outcome: Outcome) -> bool:
        """Takes in what the manifest says of one; gives whether it is to be asked again some time.

        Of one that has no manifest nothing else is known than what lay on disk.
        """
        folder = outcome.job.subject
        view = self._views.get(folder)
        if view is None:
            return False
        if outcome.archived is None and not outcome.is_left_alone and view.lost_offsets:
            return False
        self._told(self._marks[folder])
        after = replace(view, archived=outcome.archived, is_gone_told=True)
        if not after.lost_offsets:
            self.back(folder)
            return False
        if not view.is_gone_told:
            self._say(after.lost_message())
        self._views[folder] = after
        return True
