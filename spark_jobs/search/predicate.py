"""The predicates of a search on keys and values: comparisons of bytes, on Arrow columns. Pure; loaded by executors."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.errors import OptionError


class Match(StrEnum):
    """How a pattern is compared with a key or value."""

    exact = "exact"
    prefix = "prefix"
    contains = "contains"
    regex = "regex"


@dataclass(frozen=True, slots=True)
class Predicate:
    """`column` (key or value) is like `pattern`, bytes; null is like nothing. A regex is RE2's, on bytes."""

    column: str
    match: Match
    pattern: bytes

    def mask(self, batch: pa.RecordBatch) -> Any:
        """Which rows are so, as an Arrow array of booleans without nulls. Raises OptionError for a regex that is none."""
        column = batch.column(self.column)
        try:
            return pc.fill_null(self._compared(column), False)
        except pa.ArrowInvalid as e:
            raise OptionError(f"{self.pattern!r} is not a regular expression: {e}") from e

    def _compared(self, column: Any) -> Any:
        if self.match is Match.exact:
            return pc.equal(column, pa.scalar(self.pattern, column.type))
        if self.match is Match.prefix:
            return pc.starts_with(column, pattern=self.pattern)
        if self.match is Match.contains:
            return pc.match_substring(column, pattern=self.pattern)
        return pc.match_substring_regex(column, pattern=self.pattern)


def refuse_bad_pattern(predicate: Predicate) -> None:
    """Raises OptionError for a regex that is none, before any task is started."""
    # Arrow compiles a regex when it meets the first value.
    predicate.mask(pa.RecordBatch.from_arrays([pa.array([b""], pa.binary())], names=[predicate.column]))
