"""The error of an offload whose segment its broker has changed meanwhile. Apart from `source`, which loads a lot."""

from local_log.errors import LogError


class Changed(LogError):
    """A segment that its broker has renamed, deleted or compacted since its folder was listed: offload again."""
