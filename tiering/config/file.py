"""What a configuration file says, by its name's ending in one of two formats; which settings there are is asked elsewhere."""

from collections.abc import Sequence

from local_log.disk import Disk
from local_log.errors import Invalid, LogError
from tiering.config.assignment import Parsed, Place, Problem
from tiering.config.properties_file import read_properties
from tiering.config.toml_file import read_toml

FILE_BYTES_MAX = 1 << 20


def read_file(file: str, disk: Disk, of_topics: Sequence[str] = ()) -> Parsed:
    """What the file says, or why it cannot be read. `of_topics` are the names that a topic may have settings of."""
    try:
        return _parsed(file, disk, of_topics)
    except LogError as e:
        return Parsed(problems=(Problem(Place(file), str(e).removeprefix(f"{file}: ")),))


def _parsed(file: str, disk: Disk, of_topics: Sequence[str]) -> Parsed:
    _, _, suffix = file.rpartition(".")
    if suffix not in ("toml", "properties"):
        raise Invalid("the format is unknown; name the file NAME.toml or NAME.properties")
    size = disk.size(file)
    if size > FILE_BYTES_MAX:
        raise Invalid(f"{size} bytes; expected {FILE_BYTES_MAX} at most")
    body = disk.read(file, 0, FILE_BYTES_MAX)
    if suffix == "properties":
        return read_properties(body.decode("latin-1"), file, of_topics)
    try:
        return read_toml(body.decode("utf-8-sig"), file)
    except UnicodeDecodeError as e:
        line = body.count(b"\n", 0, e.start) + 1
        return Parsed(problems=(Problem(Place(file, line), "not UTF-8, as TOML has to be"),))
