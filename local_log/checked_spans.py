"""Spans of a file's batches, and the batches of one span: where they begin and end, to be found by bisection."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from local_log.formats.record_batch.batch_v2 import Batches

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time: every fetch makes some


class Span(NamedTuple):
    """Whole batches in a row, all of magic 2 or none: from byte to byte, from offset to offset; `last` is the last one's byte."""

    start: int
    end: int
    first_offset: int
    next_offset: int
    last: int


class Spans:
    """Spans in order, which do not overlap."""

    def __init__(self) -> None:
        self.columns = tuple(array("q") for _ in Span._fields)
        """By the fields of a span."""
        self.starts, self.ends, self.firsts, self.nexts, self.lasts = self.columns

    def __len__(self) -> int:
        return len(self.starts)

    def insert(self, at: int, span: Span) -> None:
        """Puts a span before the one at `at`."""
        for column, value in zip(self.columns, span, strict=True):
            column.insert(at, value)

    def replace(self, at: int, span: Span) -> None:
        """Puts a span in the place of the one at `at`."""
        for column, value in zip(self.columns, span, strict=True):
            column[at] = value

    def clear(self) -> None:
        """Removes all."""
        for column in self.columns:
            del column[:]

    def span(self, at: int) -> Span:
        """The one at `at`."""
        return _tuple(Span, (self.starts[at], self.ends[at], self.firsts[at], self.nexts[at], self.lasts[at]))

    def find(self, offset: int) -> int:
        """Where the span with the batch of an offset is, or with the next batch that there is; -1 if none of them is known."""
        at = bisect_right(self.nexts, offset)
        is_known = at < len(self.ends) and (self.firsts[at] <= offset or self.starts[at] == (self.ends[at - 1] if at else 0))
        return at if is_known else -1

    def last_inside(self, at: int, end: int, end_offset: int) -> int:
        """The last of the spans that follow span `at` without a gap up to byte `end` and `end_offset`; `at` if none does."""
        if not (at + 1 < len(self.ends) and self.ends[at + 1] <= end):
            return at
        stop = min(bisect_right(self.ends, end, at), bisect_right(self.nexts, end_offset, at))
        if self.starts[at + 1 : stop] == self.ends[at : stop - 1]:
            return max(at, stop - 1)
        while at + 1 < stop and self.starts[at + 1] == self.ends[at]:
            at += 1
        return at


class Borders(NamedTuple):
    """The batches of a span: where each begins and what follows it, as offsets, and where it ends, as a position."""

    firsts: "array[int]"
    nexts: "array[int]"
    ends: "array[int]"

    def taken(self, span: Span, offset: int, max_bytes: int, end_offset: int, *, one_at_least: bool) -> Span | None:
        """The batches of `span` from an offset on, up to `max_bytes`, below `end_offset`; None if there are none."""
        firsts, nexts, ends = self
        first = bisect_right(nexts, offset)
        start = ends[first - 1] if first else span.start
        fit = max(bisect_right(ends, start + max_bytes, first), first + one_at_least)
        stop = min(fit, bisect_left(firsts, end_offset, first))
        if stop <= first:
            return None
        last = ends[stop - 2] if stop > 1 else span.start
        return _tuple(Span, (start, ends[stop - 1], firsts[first], nexts[stop - 1], last))

    def spans(self, start: int, span_bytes: int) -> Iterator[Span]:
        """All batches, the first of which begins at byte `start`, in spans of so many bytes, or of one batch that is larger."""
        firsts, nexts, ends = self
        first = 0
        while first < len(ends):
            stop = max(bisect_right(ends, start + span_bytes, first), first + 1)
            last = start if stop == first + 1 else ends[stop - 2]
            yield Span(start, ends[stop - 1], firsts[first], nexts[stop - 1], last)
            first, start = stop, ends[stop - 1]


def borders_of(batches: Batches, start: int) -> Borders:
    """Batches whose positions count from `start`."""
    return Borders(_column(batches.base_offset), _column(batches.last_offset + 1), _column(batches.end + start))


def _column(values: Any) -> "array[int]":
    return array("q", np.asarray(values, np.int64).tobytes())
