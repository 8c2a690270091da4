"""The options that the jobs share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TextIO

import click

from spark_jobs.jobs.prices import Prices, prices_of, table
from spark_jobs.source.options import OptionError

P = ParamSpec("P")


def master_option(command: Callable[P, Any]) -> Callable[P, Any]:
    """The option `--master`."""
    text = "Spark's master; default: the one of spark-submit, or all cores of this machine."
    return click.option("--master", help=text)(command)


def source_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """The option `--option`, for everything that the format tiering takes."""
    return click.option("--option", "pairs", multiple=True, metavar="NAME=VALUE", help="Any other option of the format tiering.")(
        command
    )


def price_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """The options `--prices` and `--storage-class` of jobs that have `--dry-run`."""
    file = click.option(
        "--prices", "prices_file", type=click.File("r", encoding="utf-8"), metavar="FILE", help="Prices by class."
    )
    name = click.option(
        "--storage-class", metavar="NAME", help="What the archive's objects are stored as, such as s3-glacier-ir."
    )
    return file(name(command))


def given_options(pairs: Sequence[str], fixed: Mapping[str, str | None]) -> dict[str, str]:
    """The options of the format: those of `--option`, and `fixed`, which no `--option` may name. Raises OptionError."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise OptionError(f"--option {pair!r} has no value; give NAME=VALUE")
        if name.lower() in {f.lower() for f in fixed}:
            raise OptionError(f"--option {name} is not needed: the job has an option of its own for it")
        given[name] = value
    return {**given, **{name: value for name, value in fixed.items() if value is not None}}


def prices_for(url: str, prices_file: TextIO | None, storage_class: str | None = None) -> Prices:
    """The prices of the store that `url` names. Raises OptionError."""
    return prices_of(table(None if prices_file is None else prices_file.read()), url, storage_class)
