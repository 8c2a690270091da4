"""The mutants by their names."""

from collections.abc import Callable

MUTANTS: dict[str, Callable[[], None]] = {}


def mutant(change: Callable[[], None]) -> Callable[[], None]:
    """Registers a fault under the name of the function that makes it."""
    MUTANTS[change.__name__.replace("_", "-")] = change
    return change
