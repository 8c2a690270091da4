"""A removed disk that has what the archive lacks between two parts of a log.

offset    0              700             1400
epoch     0              2               4
first     |------|
later                                        |------|···     archived behind a gap, by a replica that had lost the rest
removed   |------|----------------|·                         a disk that was removed before epoch 4 was elected
whole     |------|---------------------------|------|···
"""

from collections.abc import Callable
from pathlib import Path

from golden_logs import broker_logs
from logs_to_archive import copy_of, cut_finer, drop_segments_below, set_checkpoint

from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT

EPOCHS = "g-epochs-0"


def whole_log(folder: Path) -> Path:
    """A log directory with the whole log."""
    made = broker_logs(folder, EPOCHS)
    cut_finer(made / EPOCHS, 24)
    return made


def cut_at(folder: Path, offset: int) -> int:
    """Takes the segments from an offset on from a log, and their epochs; gives the offset at which it ends then."""
    bases = sorted(int(file.stem) for file in (folder / EPOCHS).glob("*.log"))
    end = min(base for base in bases if base >= offset)
    for file in (folder / EPOCHS).iterdir():
        if file.stem.isdigit() and int(file.stem) > end:
            file.unlink()
        elif file.stem.isdigit() and int(file.stem) == end and file.suffix != ".snapshot":
            file.write_bytes(b"")
    checkpoint = folder / EPOCHS / LEADER_EPOCH_CHECKPOINT
    epochs = [line for line in checkpoint.read_text().splitlines()[2:] if int(line.split()[1]) < end]
    checkpoint.write_text("\n".join(["0", str(len(epochs)), *epochs, ""]))
    set_checkpoint(folder / "replication-offset-checkpoint", EPOCHS, end)
    return end


def removed_disk(whole: Path, into: Path, offload: Callable[[Path], object]) -> Path:
    """The removed disk; `offload` is called with the log directories that leave a gap in the archive, one after the other."""
    first, later, removed = (copy_of(whole, into / name) for name in ("first", "later", "removed"))
    cut_at(first, 400)
    drop_segments_below(later, EPOCHS, 1_500)
    start = min(int(file.stem) for file in (later / EPOCHS).glob("*.log"))
    (later / EPOCHS / LEADER_EPOCH_CHECKPOINT).write_text(f"0\n1\n4 {start}\n")
    cut_at(removed, 1_000)
    for folder in (first, later):
        offload(folder)
    return removed
