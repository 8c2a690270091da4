"""Says as IAM does what policies make of a request: what is denied is denied, else what is allowed is allowed, else nothing is.

It knows just the words that our policies use and refuses others, so that it cannot pass over one. Sources: the IAM user guide on
policy evaluation logic and condition operators.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]
Condition = Callable[[str | None, tuple[str, ...]], bool]


@dataclass(frozen=True)
class Request:
    """One action on one resource, with the keys that the service adds to it; a key that is not there was not in the request."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Grant:
    """What of an Allow statement a request needed."""

    sid: str
    action: str
    resource: str


def denied(documents: Iterable[Document], request: Request) -> str:
    """The statement that denies it, "" where none does."""
    return next((s["Sid"] for s in _statements(documents) if s["Effect"] == "Deny" and _matches(s, request)), "")


def allowed(documents: Iterable[Document], request: Request) -> Grant | None:
    """What allows it, None where nothing does, or something denies it."""
    documents = tuple(documents)
    if denied(documents, request):
        return None
    return next((grant for s in _statements(documents) if s["Effect"] == "Allow" and (grant := _matches(s, request))), None)


def grants(documents: Iterable[Document]) -> set[tuple[str, str]]:
    """Each action and each resource that is allowed, by the statement's name."""
    given = [s for s in _statements(documents) if s["Effect"] == "Allow"]
    return {(s["Sid"], word) for s in given for word in (*_listed(s["Action"]), *_listed(s["Resource"]))}


def like(pattern: str, text: str) -> bool:
    """Whether a text is like a pattern: `*` is any text, slashes too, and `?` one sign."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text, re.DOTALL) is not None


def _statements(documents: Iterable[Document]) -> Iterable[Document]:
    for document in documents:
        assert document["Version"] == "2012-10-17"
        for statement in document["Statement"]:
            assert statement.keys() <= {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}, statement
            yield statement


def _matches(statement: Document, request: Request) -> Grant | None:
    action = next((a for a in _listed(statement["Action"]) if like(a.lower(), request.action.lower())), None)
    resource = next((r for r in _listed(statement["Resource"]) if like(r, request.resource)), None)
    if action is None or resource is None or not all(_holds(statement, request)):
        return None
    return Grant(statement["Sid"], action, resource)


def _holds(statement: Document, request: Request) -> Iterable[bool]:
    for operator, keys in statement.get("Condition", {}).items():
        for key, wanted in keys.items():
            yield _OPERATORS[operator](request.context.get(key), _listed(wanted))


def _listed(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


_OPERATORS: dict[str, Condition] = {
    # A key that is not there makes a condition false, and one that negates true.
    "Null": lambda found, wanted: wanted == (("true",) if found is None else ("false",)),
    "Bool": lambda found, wanted: found is not None and found in wanted,
    "StringEquals": lambda found, wanted: found is not None and found in wanted,
    "StringNotEquals": lambda found, wanted: found is None or found not in wanted,
    "StringLike": lambda found, wanted: found is not None and any(like(w, found) for w in wanted),
    "ArnNotEquals": lambda found, wanted: found is None or not any(like(w, found) for w in wanted),
    "NumericLessThan": lambda found, wanted: found is not None and any(float(found) < float(w) for w in wanted),
}
