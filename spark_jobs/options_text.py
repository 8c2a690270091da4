"""What source, stream and sink share in reading options. Pure: text in, values out."""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from local_log.formats.primitives import INT64_MAX
from spark_jobs.errors import OptionError

T = TypeVar("T")


def read_option(given: Mapping[str, str], name: str, read: Callable[[str], T]) -> T:
    """What `read` makes of the option's text, without spaces around it. Raises OptionError, with what `read` says."""
    try:
        return read(given[name].strip())
    except (ValueError, TypeError, AttributeError, RecursionError) as e:
        raise OptionError(f"option {name} is {given[name]!r}: {e}") from e


def at_least(least: int, text: str, problem: str = "") -> int:
    """An integer from `least` to the maximum of 64 bits. Raises ValueError, with `problem` for one below `least`."""
    if not re.fullmatch(r"-?[0-9]{1,100}", text):
        raise ValueError(f"must be a whole number, {least} or more")
    number = int(text)
    if number < least:
        raise ValueError(problem or f"must be {least} or more")
    if number > INT64_MAX:
        raise ValueError(f"must be {INT64_MAX} at most")
    return number


def nearest(name: str, by_lower: Mapping[str, str]) -> str | None:
    """The option most like `name`, of those that `by_lower` has by their names in lower case; None where none is alike."""
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def unknown(name: str, near: str | None, known: Collection[str], to: str) -> OptionError:
    """The error for an option that `to` does not have; `near` is what may have been meant, `known` are those to choose from."""
    hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
    return OptionError(f"option {name} is unknown to {to}; {hint}")
