"""Settings out of the environment: `TIERING_LOG_DIRS` is log.dirs, and so on; lists have commas. Single topics need a file.

`TIERING_KEYS`, which the commands know, is archive.keys. What is empty is not given. Kubernetes' own variables of a service that
is called tiering are passed over, and so is a key ring, which an address env://NAME reads.
"""

import re
from collections.abc import Mapping
from typing import Final

from tiering.config.assignment import Assignment, Parsed, Place, Problem, shown
from tiering.config.names import KNOWN, nearest
from tiering.config.secrets import REMEDY, names_a_secret
from tiering.config.shared import CONFIG_VARIABLE, KEYS_VARIABLE, VARIABLES, variable_of

_OF_KUBERNETES = re.compile(r"TIERING_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")


_SETTINGS: Final = {variable_of(name): name for name in KNOWN} | {KEYS_VARIABLE: "archive.keys"}


def read_environment(environment: Mapping[str, str]) -> Parsed:
    """The settings that variables give, each with the variable as its place."""
    assignments: dict[str, Assignment] = {}
    problems: list[Problem] = []
    for variable in sorted(v for v in environment if v.startswith(VARIABLES) and v != CONFIG_VARIABLE):
        text, place = environment[variable], Place(variable)
        name = _SETTINGS.get(variable)
        if name is None:
            if _OF_KUBERNETES.fullmatch(variable) is None and not text.lstrip().startswith("{"):
                problems.append(Problem(place, _refusal(variable)))
        elif text.strip():
            before = assignments.setdefault(name, Assignment(name, text, place))
            if before.text != text:
                problems.append(Problem(place, f"{name} is set to another value by {before.place}; keep one of the two"))
    return Parsed(tuple(assignments.values()), tuple(problems))


def _refusal(variable: str) -> str:
    if names_a_secret(variable):
        return f"no such setting, and {REMEDY}"
    near = nearest(variable.removeprefix(VARIABLES).lower().replace("_", "."), KNOWN)
    return "no such setting" + (f"; did you mean {variable_of(near)}?" if near else f" ({shown(variable)}); unset it")
