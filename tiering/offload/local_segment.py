"""A segment of a local log as the plan of an offload sees it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalSegment:
    """A segment; `end_offset` is None for the active one. In an empty one compaction has left no batch. `size` is in bytes."""

    base_offset: int
    end_offset: int | None
    is_empty: bool = False
    size: int = 0
