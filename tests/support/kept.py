"""Where on this machine is kept what tests bring or make once."""

import os
from pathlib import Path


def cache() -> Path:
    """A folder of the user's, which may be emptied at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-tiering"
