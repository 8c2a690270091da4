"""The topics that a regular expression names. It is the broker that looks for them, so an expression must not make it busy.

RE2 takes a time in proportion to the text, whatever the expression is; Kafka uses its Java version. Arrow has it.
"""

from collections.abc import Collection

import pyarrow as pa


def is_valid(regex: str) -> bool:
    """Whether RE2 understands it."""
    import pyarrow.compute as pc  # groups that subscribe so are rare, and it takes a moment to load

    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid:
        return False
    return True


def matching(regex: str, names: Collection[str]) -> frozenset[str]:
    """The names that it matches from beginning to end; none if it is not valid."""
    if not names or not is_valid(regex):
        return frozenset()
    import pyarrow.compute as pc

    known = pa.array(list(names), pa.string())
    return frozenset(known.filter(pc.match_substring_regex(known, rf"\A(?:{regex})\z")).to_pylist())
