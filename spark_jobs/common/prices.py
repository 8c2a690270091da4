"""What object stores ask for requests and bytes: a table, `prices.toml`, and the user's own before it."""

import pkgutil
import tomllib
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from local_log.errors import listed
from spark_jobs.errors import OptionError

_NUMBERS = ("reads_per_1000", "writes_per_1000", "retrieval_per_gb", "egress_per_gb")
_OPTIONAL = {"schemes", "unverified"}


@dataclass(frozen=True, slots=True)
class Prices:
    """Of one class of storage, in US dollars; `schemes` are those of the URLs that it is taken for unless another is named.

    A read is a get or a head, a write a put, a copy or one page of a listing. Egress is what leaves the region to the Internet.
    `unverified` are the names of prices that were not held against a price list of the day `as_of`.
    """

    name: str
    as_of: date
    region: str
    reads_per_1000: float
    writes_per_1000: float
    retrieval_per_gb: float
    egress_per_gb: float
    schemes: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()


Table = dict[str, Prices]


def table(text: str | None = None) -> Table:
    """The classes of storage by name: those of a user's file in the form of ours first, then ours. Raises OptionError."""
    ours = _read((pkgutil.get_data(__package__, "prices.toml") or b"").decode())
    return ours if text is None else {**(users := _read(text)), **{name: p for name, p in ours.items() if name not in users}}


def _read(text: str) -> Table:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise OptionError(f"the prices are not TOML: {e}") from e
    if not parsed:
        raise OptionError("the prices contain no storage class; add a table such as [s3-standard]")
    return {name: _prices(name, given) for name, given in parsed.items()}


def prices_of(table: Table, url: str, name: str | None = None) -> Prices:
    """The prices of the class `name`, or of the one that is taken for the URL. Raises OptionError where there is none."""
    if name is not None:
        if name not in table:
            raise OptionError(f"there are no prices for the storage class {name!r}; there are: {listed(table)}")
        return table[name]
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    for prices in table.values():
        if scheme in prices.schemes:
            return prices
    raise OptionError(f"there are no prices for {url!r}; choose a storage class: {listed(table)}")


def _prices(name: str, given: Any) -> Prices:
    known = {f.name for f in fields(Prices)} - {"name"}
    if not isinstance(given, dict) or given.keys() - known or known - _OPTIONAL - given.keys():
        stated, others = ", ".join(sorted(known - _OPTIONAL)), " and ".join(sorted(_OPTIONAL))
        raise OptionError(f"the prices of {name!r} have to state {stated}, may state {others}, and no more")
    for number in _NUMBERS:
        if type(given[number]) not in (int, float) or given[number] < 0:
            raise OptionError(f"{number} of {name!r} is {given[number]!r}; give dollars, 0 or more")
    if type(given["as_of"]) is not date:
        raise OptionError(f"as_of of {name!r} is {given['as_of']!r}; give the day that the prices are of, such as 2026-11-01")
    if wrong := {*given.get("unverified", ())} - {*_NUMBERS}:
        raise OptionError(f"unverified of {name!r} names {listed(sorted(wrong))}; give some of {', '.join(_NUMBERS)}")
    return Prices(name, **{**given, **{field: tuple(given.get(field, ())) for field in _OPTIONAL}})
