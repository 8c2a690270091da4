"""Deletion policies by name: Kafka's `size` and `time`, and plug-ins, which are entry points of the group below.

    def keep_one_segment(retained: Retained) -> Breach[Aged] | None:
        return lambda segment, following: following is not None

A policy gets the limits of a log, and returns the rule that tells of a segment, from the oldest on, whether it goes. Whatever the
rule says, nothing goes that is not archived where the log is tiered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final

from local_log.engine.manager.retention import Aged, Breach, DeletionPolicy, Retained, by_size, by_time
from local_log.errors import Invalid, listed

GROUP: Final = "tiering.deletion_policies"
KAFKAS: Final[Mapping[str, DeletionPolicy]] = {"size": by_size, "time": by_time}


class FaultyPolicy(Invalid):
    """A deletion policy that cannot be loaded, raises an exception or returns what no policy may. It deletes nothing."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name = name
        self.problem = problem

    def __str__(self) -> str:
        remedy = "nothing is deleted by it: mend the plug-in, or change deletion.policies"
        return f"deletion policy {self.name}: {self.problem}; {remedy}"


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A plug-in's policy, whose errors are FaultyPolicy."""

    name: str
    policy: Any

    def __call__(self, retained: Retained) -> Breach[Aged] | None:
        rule = self._result(self.policy, retained)
        if rule is None:
            return None

        def breaks(segment: Aged, following: Aged | None) -> bool:
            goes = self._result(rule, segment, following)
            if not isinstance(goes, bool):
                raise FaultyPolicy(self.name, f"its rule returned {goes!r}, not True or False")
            return goes

        return breaks

    def _result(self, call: Any, *args: object) -> Any:
        try:
            return call(*args)
        except Exception as e:
            raise FaultyPolicy(self.name, f"it raised {type(e).__name__}: {e}") from e


def load_policies(names: Iterable[str]) -> tuple[DeletionPolicy, ...]:
    """The policies by name, in order. Raises FaultyPolicy for a plug-in that cannot be loaded, Invalid for an unknown name."""
    return tuple(KAFKAS.get(name) or _plug_in(name) for name in names)


def _plug_in(name: str) -> DeletionPolicy:
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        raise Invalid(
            f"deletion.policies: there is no policy {name}; there are {listed((*KAFKAS, *sorted(found)))}. "
            f"Install the package with this entry point of the group {GROUP}"
        )
    try:
        policy = found[name].load()
    except Exception as e:
        raise FaultyPolicy(name, f"{found[name].value} cannot be loaded: {type(e).__name__}: {e}") from e
    if not callable(policy):
        raise FaultyPolicy(name, f"{found[name].value} is {policy!r}, not a function")
    return _Guarded(name, policy)
