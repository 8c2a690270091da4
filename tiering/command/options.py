"""Options that several commands share, each the same on all of them, and what may be given for them."""

import sys
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from local_log.formats.primitives import INT32_MAX, INT64_MAX
from tiering.command.completion import archives, files, folders, topics
from tiering.command.output import say
from tiering.command.quantities import duration, rate
from tiering.config.shared import KEYS_VARIABLE

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")


def options_as(kind: type[V]) -> Callable[[Callable[[V], R]], Callable[..., R]]:
    """Passes a command its options as one value of a frozen dataclass, whose fields have the names of click's parameters."""

    def take(command: Callable[[V], R]) -> Callable[..., R]:
        @wraps(command)
        def run(**given: Any) -> R:
            return command(kind(**given))

        return run

    return take


class Number(click.ParamType[int]):
    """A whole number from `least` to `most`: an offset, a number of things. The help has no bounds, which errors say."""

    name = "number"

    def __init__(self, least: int = 0, most: int = INT64_MAX) -> None:
        self._least, self._most = least, most

    def __repr__(self) -> str:
        return f"Number({self._least}, {self._most})"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not valid; expected {self._expected}", param, ctx)
        if number < self._least:
            self.fail(f"{number} is too small; expected {self._expected}", param, ctx)
        if number > self._most:
            self.fail(f"{number} is too large; the greatest is {self._most}", param, ctx)
        return number

    @property
    def _expected(self) -> str:
        bounds = f", {self._least} or more" if self._most >= INT32_MAX else f" from {self._least} to {self._most}"
        return f"a whole number{bounds}"


def named(_context: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """For an option that names something: refuses an empty text, which mostly is a shell's variable that is not set."""
    if value is not None and not value.strip():
        raise click.BadParameter("the value is empty; give one, or leave the option out if it is not required")
    return value


def lasting(context: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """As `named`, for an address: refuses memory://, too, whose objects end with the command."""
    if value is not None and value.strip().lower().rpartition("::")[2].startswith("memory:"):
        raise click.BadParameter(
            f"{value!r} would be lost when this command ends; give a folder, s3://bucket/prefix or another URL"
        )
    return named(context, param, value)


def archive_option(*, required: bool = False) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--archive`, the same on every command."""
    text = "The archive: a folder, s3://bucket/prefix, gs:// or abfs://."
    return click.option(
        "--archive", "archive_url", required=required, callback=lasting, shell_complete=archives, metavar="URL", help=text
    )


def bytes_per_second_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--bytes-per-second`, the same on every command that moves segments; `open_store` takes it as it is."""
    text = "Limit of the transfer rate of the archive, both directions together: bytes a second, or such as 50MB/s."
    return click.option("--bytes-per-second", type=rate(), metavar="RATE", help=text)


def log_dir_option(*, required: bool = False) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--log-dir`, the same on every command."""
    text = "One of the broker's log.dirs; it is only read."
    return click.option(
        "--log-dir", "log_dir_path", required=required, callback=_one_folder, shell_complete=folders, metavar="DIR", help=text
    )


def own_log_dir_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--own-log-dir` of a command that may work on a log directory as its owner; it stands for `--log-dir`, too."""
    text = "Instead of --log-dir one that no broker uses: it is locked, recovered, and read up to its end."
    return click.option("--own-log-dir", callback=_as_log_dir, is_eager=True, shell_complete=folders, metavar="DIR", help=text)


def own_log_dirs_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--own-log-dir` of a command that may own several log directories, and write them."""
    text = "Instead of --log-dir one that no broker uses: it is locked, recovered and written; may be given several times."
    return click.option(
        "--own-log-dir", "own_log_dirs", multiple=True, callback=_each_named, is_eager=True, shell_complete=folders,
        metavar="DIR", help=text,
    )  # fmt: skip


def _as_log_dir(context: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if named(context, param, value) is not None:
        context.default_map = {"log_dir_path": value, **(context.default_map or {})}
    return value


def metadata_log_dir_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--metadata-log-dir` of commands that ask what the cluster knows of its topics."""
    text = "The broker's metadata.log.dir, if it is not one of --log-dir: it says which topics are compacted."
    return click.option(
        "--metadata-log-dir", "metadata_log_dir", callback=named, shell_complete=folders, metavar="DIR", help=text
    )


def _one_folder(context: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """As `named`; rejects several log.dirs of a configuration, since the command works on one."""
    if context.params.get("own_log_dir") is not None or "own_log_dirs" in context.params:  # there it is for the command to say
        return named(context, param, value)
    if value is not None and "," in value and context.get_parameter_source(param.name or "") is ParameterSource.DEFAULT_MAP:
        raise click.BadParameter(f"log.dirs is {value}, and this command works on one of them: choose it with --log-dir")
    return named(context, param, value)


def topic_option(text: str = "The topic.", *, required: bool = True) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--topic` of every command that works on one."""
    return click.option("--topic", required=required, callback=named, shell_complete=topics, metavar="TOPIC", help=text)


def topic_id_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--topic-id` of every command that reads one topic."""
    text = "If several topics have had this name, the one with this id. Default: the one that received records last."
    return click.option("--topic-id", callback=_topic_id, metavar="ID", help=text)


def topic_ids_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--topic-id` of every command that reads many topics."""
    text = "If several topics have had this name, the one with this id; may be given several times."
    return click.option("--topic-id", "topic_ids", multiple=True, callback=by_topic, metavar="TOPIC=ID", help=text)


def _topic_id(context: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if named(context, param, value) is None:
        return None
    from remote.keys import is_topic_id

    if not is_topic_id(value or ""):
        raise click.BadParameter(f"{value!r} is not a topic id as Kafka prints it (22 characters of base64)")
    return value


def by_topic(_context: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """For an option of values TOPIC=ID: the ids by topic."""
    if not values:
        return {}
    from remote.keys import is_topic_id

    pairs = [value.partition("=") for value in values]
    for value, (topic, _, topic_id) in zip(values, pairs, strict=True):
        if not topic or not is_topic_id(topic_id):
            raise click.BadParameter(f"{value!r} is not TOPIC=ID, with an id as Kafka prints it (22 characters of base64)")
    return {topic: topic_id for topic, _, topic_id in pairs}


def partition_option(text: str, *, required: bool = False) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--partition`, the same on every command."""
    return click.option("--partition", type=Number(0, INT32_MAX), required=required, metavar="N", help=text)


def topics_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--topic` of every command that works on many topics."""
    text = "Only topics that match; may be given several times."
    return click.option(
        "--topic", "topics", multiple=True, callback=_each_named, shell_complete=topics, metavar="GLOB", help=text
    )


def tell_unmatched(globs: Iterable[str], names: Collection[str], place: str, of: str = "--topic") -> None:
    """Says on standard error which of the globs of `topics_option`, or of `of`, match none of the topics that a place has."""
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in names):
            say(f"tiering: {of} {glob}: no topic in {place} matches it")


def _each_named(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        named(context, param, value)
    return values


def keys_option(*, required: bool = False) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The options `--keys` and `--allow-plain`, the same on every command that reads or encrypts segments, or commits.

    The command gets both as one address, `keys_address`.
    """
    text = f"Keys for encryption and signatures: a file, env://NAME or aws-kms://KEY. Default: {KEYS_VARIABLE}."
    keys = click.option(
        "--keys", "keys_address", required=required, envvar=KEYS_VARIABLE, callback=named, shell_complete=files,
        metavar="ADDRESS", help=text,
    )  # fmt: skip
    plain = click.option("--allow-plain", is_flag=True, help="With keys, also accept data that is not encrypted or not signed.")

    def add(command: Callable[P, Any]) -> Callable[P, Any]:
        @wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> Any:
            from remote.transforms.key_rings import allowing_plain

            address = kwargs["keys_address"]
            if kwargs.pop("allow_plain") and isinstance(address, str):
                kwargs["keys_address"] = allowing_plain(address)
            return command(*args, **kwargs)

        return keys(plain(run))

    return add


def cache_dir_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--cache-dir`, the same on every command that reads segments."""
    text = "Folder that caches what is read from the archive, up to 5 GiB; several commands may share it."
    return click.option("--cache-dir", callback=named, shell_complete=folders, metavar="DIR", help=text)


def state_dir_option() -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--state-dir` of commands that remember what they saw."""
    text = "Folder for what was seen in the log directory, to notice what disappears. Default: a folder in the user's home."
    return click.option("--state-dir", callback=named, shell_complete=folders, metavar="DIR", help=text)


def waiting_option(name: str, default_ms: int, text: str) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """An option for how long, in ms, something has to wait before it is deleted."""
    return click.option(name, type=duration(), default=default_ms, show_default=True, metavar="DURATION", help=text)


def dry_run_option(command: Callable[P, Any]) -> Callable[P, Any]:
    """The option `--dry-run`, the same on every command that has it."""
    return click.option("--dry-run", is_flag=True, help="Print the plan and do nothing.")(command)


def yes_option(command: Callable[P, Any]) -> Callable[P, Any]:
    """The option `--yes`, the same on every command that destroys."""
    return click.option("--yes", "is_agreed", is_flag=True, help="Do not ask for confirmation; required without a terminal.")(
        command
    )


def is_given(parameter: str) -> bool:
    """Whether a parameter of the command that runs was given on the command line."""
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def ask(question: str) -> None:
    """Asks for confirmation on the terminal before data is deleted; ends the command without it, or without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("this deletes permanently: check it with --dry-run, then add --yes")
    click.confirm(question, abort=True, err=True)


def output_option(default: str = "table") -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """The option `--output`, the same on every command that answers data."""
    return click.option(
        "--output", type=click.Choice(["table", "json", "jsonl"]), default=default, show_default=True, help="Output format."
    )
