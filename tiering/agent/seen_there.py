"""What offloads and agents remember of the log directories, kept by an agent: what disappeared while none ran is noticed, too."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from local_log.errors import Corrupt, LogError
from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir
from remote.clock import Clock
from tiering.agent.memory import MemoryFile, key_of
from tiering.agent.view import PartitionView
from tiering.agent.watch import Mark
from tiering.lag.archived import NOTHING, Archived
from tiering.lag.local_log import LogSeen, SegmentSeen
from tiering.losses.gone_logs import GoneLog, gone_logs
from tiering.losses.seen_logs import SUFFIX, SeenFile, SeenLog

KEEP_MS: Final = 600_000
"""The interval for saving logs that have only grown. New logs and logs with another start offset are saved at once."""

Views = Mapping[str, PartitionView]
Lost = tuple[PartitionView, Mark]


class SeenThere:
    """The remembered logs of the log directories for one archive, stored in the folder of the agent's state.

    `hurt` is called with an error of reading or writing them; the agent continues.
    """

    def __init__(
        self, log_dirs: Sequence[LogDir], memory: MemoryFile, archive: str, clock: Clock, hurt: Callable[[LogError], None]
    ) -> None:
        self._log_dirs, self._memory, self._archive, self._clock = tuple(log_dirs), memory, archive, clock
        self._hurt = hurt
        self._known: dict[str, dict[str, SeenLog]] = {}
        """By log directory, then by folder; a directory is in it once what was remembered of it was looked at."""
        self._files: dict[str, SeenFile] = {}
        """The file of each of these directories."""
        self._formers: dict[tuple[str, str], SeenLog] = {}
        """By folder and topic id, logs whose folder has become another topic's before their losses were acknowledged."""
        self._kept_ms: dict[str, int] = {}
        self._noticed: set[tuple[str, str]] = set()
        """The folders and topic ids of logs that are known to be gone."""

    def gone(
        self,
        wanted: Callable[[str], bool],
        marks: Mapping[str, Mark],
        archived: Mapping[str, Archived],
        now_ms: int,
        dropped: Iterable[Lost] = (),
    ) -> Iterator[Lost]:
        """What has disappeared since an offload or an agent last saw it: of each log directory when it is first there.

        And what is remembered of a folder that is another topic's by now, but for those that the look has `dropped`. `marks` are
        the partitions that are there, by folder, `archived` is what is known of the archive, by `key_of`.
        """
        self._noticed -= {(mark.folder, mark.topic_id) for mark in marks.values() if mark.topic_id is not None}  # back again
        self._noticed |= {(mark.folder, view.topic_id) for view, mark in dropped if view.topic_id is not None}
        for log_dir in self._log_dirs:
            try:
                state = log_dir.disk.state(log_dir.path)
                file = SeenFile.of(self._memory.disk, self._memory.folder, log_dir, log_dir.mounted_id(), self._archive)
                if file == self._files.get(log_dir.path):
                    gone = self._made_again(log_dir, self._known[log_dir.path], marks)
                else:
                    gone = self._gone(log_dir, file, wanted, marks)
            except LogError as e:
                if _is_mounted(log_dir):
                    self._hurt(e)
                continue  # who looks at a directory that is not mounted tells
            for one in gone:
                mark = Mark(log_dir, one.partition, state, False, None, None, one.seen.topic_id)
                if (mark.folder, one.seen.topic_id) not in self._noticed:
                    self._noticed.add((mark.folder, one.seen.topic_id))
                    yield _view(mark, one.seen, archived.get(key_of(one.partition, one.seen.topic_id)), now_ms), mark

    def remembered(self, mark: Mark, archived: Archived | None, now_ms: int) -> PartitionView | None:
        """The view of a log as it was seen last, None if it is not remembered."""
        seen = self._known.get(mark.log_dir.path, {}).get(mark.folder)
        return None if seen is None or seen.topic_id != mark.topic_id else _view(mark, seen, archived, now_ms)

    def _gone(
        self, log_dir: LogDir, file: SeenFile, wanted: Callable[[str], bool], marks: Mapping[str, Mark]
    ) -> tuple[GoneLog, ...]:
        try:
            known = self._load(file)
            formers = [(p, seen) for former in _files_of_formers(file) for p, seen in self._load(former).items()]
        except LogError as e:
            self._hurt(e)
            return ()  # the next look reads them again
        gone = gone_logs(known, log_dir, (), lambda p: wanted(p.topic), ())  # whose task looks where they have moved to
        log_dir.check_mounted()  # an unmount since the id was read would hide what is gone
        logs = self._known[log_dir.path] = {f"{log_dir.path}/{p}": seen for p, seen in known.items()}
        self._files[log_dir.path] = file
        self._formers |= {(f"{log_dir.path}/{p}", seen.topic_id): seen for p, seen in formers}
        former = (GoneLog(p, seen, is_former=True) for p, seen in formers if wanted(p.topic))
        return (*gone, *self._made_again(log_dir, logs, marks), *former)

    def _load(self, file: SeenFile) -> dict[TopicPartition, SeenLog]:
        """Nothing of a damaged file; the error is told. Raises Unreadable."""
        try:
            return file.load()
        except Corrupt as e:
            self._hurt(e)
            return {}

    def _made_again(self, log_dir: LogDir, known: Mapping[str, SeenLog], marks: Mapping[str, Mark]) -> tuple[GoneLog, ...]:
        """Logs whose folders the last look has found to be other topics'."""
        there = ((mark, known.get(mark.folder)) for mark in marks.values() if mark.log_dir == log_dir)
        return tuple(
            GoneLog(mark.partition, seen, is_former=True)
            for mark, seen in there
            if seen is not None and mark.topic_id not in (None, seen.topic_id)
        )

    def keep(self, views: Views, marks: Mapping[str, Mark], now_ms: int, *, is_last: bool = False) -> None:
        """Notes down what has changed of the partitions that are there now; growth alone every KEEP_MS and the last time."""
        for log_dir in self._log_dirs:
            known = self._known.get(log_dir.path)
            if known is None:
                continue
            here = {folder: mark for folder, mark in marks.items() if mark.log_dir == log_dir}
            now = {folder: seen for folder in here if (seen := _seen(views[folder], known.get(folder), now_ms)) is not None}
            changed = {folder: seen for folder, seen in now.items() if seen != known.get(folder)}
            is_due = is_last or not 0 <= now_ms - self._kept_ms.get(log_dir.path, 0) < KEEP_MS
            if changed and (is_due or any(not _only_grew(known.get(folder), seen) for folder, seen in changed.items())):
                changed = {folder: seen for folder, seen in changed.items() if self._is_former_kept(here[folder], known, seen)}
                if self._keep(self._files[log_dir.path], {here[folder].partition: seen for folder, seen in changed.items()}):
                    self._kept_ms[log_dir.path] = now_ms
                    known.update(changed)

    def _is_former_kept(self, mark: Mark, known: Mapping[str, SeenLog], seen: SeenLog) -> bool:
        """Keeps what is known of the folder's former topic, if it had one; False if that fails."""
        was = known.get(mark.folder)
        return was is None or was.topic_id == seen.topic_id or self._keep_former(mark, was)

    def keep_gone(self, mark: Mark, seen: LogSeen, recorded_ms: int) -> None:
        """Remembers a log that is gone and was not remembered while it was there; `recorded_ms` is as in SeenLog."""
        known = self._known.get(mark.log_dir.path)
        if known is None:
            return
        log = SeenLog(seen.topic_id, seen.start_offset, seen.end_offset, None, recorded_ms)
        is_former = mark.folder in known and known[mark.folder].topic_id != seen.topic_id
        before = self._formers.get((mark.folder, seen.topic_id)) if is_former else known.get(mark.folder)
        if before is not None and (before.recorded_ms or not recorded_ms):
            return
        if is_former:
            self._keep_former(mark, log)
        elif self._keep(self._files[mark.log_dir.path], {mark.partition: log}):
            known[mark.folder] = log

    def forget(self, mark: Mark, topic_id: str) -> None:
        """Forgets a log that is gone, once its manifest has recorded that and nothing of it is lost any more."""
        known = self._known.get(mark.log_dir.path, {})
        if mark.folder in known and known[mark.folder].topic_id == topic_id:
            del known[mark.folder]
            self._keep(self._files[mark.log_dir.path], {mark.partition: None})
        if self._formers.pop((mark.folder, topic_id), None) is not None:
            self._keep(self._file_of_former(topic_id, mark.log_dir), {mark.partition: None})

    def _keep_former(self, mark: Mark, log: SeenLog) -> bool:
        is_kept = self._keep(self._file_of_former(log.topic_id, mark.log_dir), {mark.partition: log})
        if is_kept:
            self._formers[mark.folder, log.topic_id] = log
        return is_kept

    def _keep(self, file: SeenFile, changes: Mapping[TopicPartition, SeenLog | None]) -> bool:
        """Whether it could be saved; if not, the error is told, and the next look tries again."""
        try:
            file.save(changes, self._clock)
        except LogError as e:
            self._hurt(e)
            return False
        return True

    def _file_of_former(self, topic_id: str, log_dir: LogDir) -> SeenFile:
        """One for each former topic, with its partitions."""
        file = self._files[log_dir.path]
        return replace(file, name=f"{_former_of(file)}{topic_id}{SUFFIX}")


def _seen(view: PartitionView, known: SeenLog | None, now_ms: int) -> SeenLog | None:
    """What to remember of a partition; None if its log or its manifest was not read yet."""
    on_disk = view.seen
    if on_disk is None or view.archived is None or view.is_left_alone:
        return None
    recorded_ms = now_ms if view.is_recorded else 0  # since then it may have been recorded as gone
    if known is not None and (known.topic_id, known.start_offset) == (on_disk.topic_id, on_disk.start_offset):
        return replace(known, end_offset=on_disk.end_offset, recorded_ms=recorded_ms and (known.recorded_ms or recorded_ms))
    return SeenLog(on_disk.topic_id, on_disk.start_offset, on_disk.end_offset, None, recorded_ms)


def _view(mark: Mark, seen: SeenLog, archived: Archived | None, now_ms: int) -> PartitionView:
    on_disk = _on_disk(seen, archived, now_ms)
    return PartitionView(
        mark.log_dir.path, mark.partition, archived=archived, seen=on_disk, is_recorded=seen.recorded_ms > 0
    )  # fmt: skip


def _is_mounted(log_dir: LogDir) -> bool:
    try:
        log_dir.check_mounted()
    except LogError:
        return False
    return True


def _files_of_formers(file: SeenFile) -> Iterator[SeenFile]:
    for name in file.disk.names(file.folder) if file.disk.exists(file.folder) else ():
        if name.startswith(_former_of(file)) and name.endswith(SUFFIX):
            yield replace(file, name=name)


def _former_of(file: SeenFile) -> str:
    """What the names of the files of former topics begin with."""
    return f"former-{file.name.removesuffix(SUFFIX)}-"


def _only_grew(known: SeenLog | None, now: SeenLog) -> bool:
    return known is not None and replace(known, end_offset=now.end_offset) == now


def _on_disk(seen: SeenLog, archived: Archived | None, now_ms: int) -> LogSeen:
    """As if it had lain there in one segment; where nothing is known of the archive, a manifest that has recorded it says what is
    lost.
    """
    is_left_to_it = (archived is None and seen.recorded_ms > 0) or seen.end_offset <= seen.start_offset
    segments = () if is_left_to_it else (SegmentSeen(seen.start_offset, None, 1, now_ms, 0),)
    of = archived or NOTHING
    return LogSeen(segments, len(segments), seen.end_offset, of, of, seen.topic_id, seen.start_offset)
