"""The command `tiering`, one file a verb. A verb's file is imported when the verb runs, so `--version` loads none."""

import gc
import importlib
import os
from copy import copy
from inspect import cleandoc
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

import tiering.command.shells  # noqa: F401  # how shells ask for completions
from tiering import __version__
from tiering.command.config_option import with_config

_VERBS = {
    "agent": "Copy, expire, sweep and scrub continuously.",
    "completion": "Print a shell completion script.",
    "config": "Check a configuration, and show its effective values.",
    "delete-topic": "Delete a topic from the archive.",
    "describe": "Show the offsets, segments and bytes in each tier.",
    "diverged": "Show and resolve partitions whose log diverged from the archive.",
    "doctor": "Test whether a store meets the requirements of an archive.",
    "expire": "Expire archived segments by age and size.",
    "fetch": "Read records from an offset on, from whichever tier has it.",
    "log": "Dump, recover, append to and truncate a log directory.",
    "man": "Print the manual page of a command.",
    "manifest": "Show the manifests of a topic, now and before.",
    "metrics": "Show the agent's metrics; print a dashboard and alerts.",
    "offload": "Copy inactive segments of a log directory into the archive.",
    "offsets": "Find offsets by time, as kafka-get-offsets does.",
    "restore": "Write archived partitions as a log directory that a broker starts on.",
    "rotate-keys": "Wrap the data keys of encrypted segments with the current key.",
    "scrub": "Check that an archive is complete and intact.",
    "serve": "Serve both tiers to Kafka clients, read-only.",
    "source-gone": "Record that a log directory was taken out of service.",
    "status": "Show the state of the agent, and how far the archive lags.",
    "sweep": "Delete objects that no manifest refers to.",
    "topics": "Manage the topics of own log directories.",
    "users": "Manage the file of users of the endpoint.",
}

_COLLECTIONS: Final = (20_000, 10, 10)
"""When Python looks for garbage that refers to itself. By its defaults that takes a tenth of the CPU time of a start."""

_NO_THREADS_OF_BLAS: Final = "OPENBLAS_NUM_THREADS", "1"
"""For numpy, whose linear algebra no command uses: it starts a thread for each core, which looks for work for 50 ms of CPU."""

_OLD_NAMES = {"retain": "expire"}
"""Former names, which scripts still use: no help, page or completion shows them."""


class _Verbs(click.Group):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The program: unlike `main`, nobody else has loaded something in this process, nor goes on in it."""
        gc.set_threshold(*_COLLECTIONS)
        os.environ.setdefault(*_NO_THREADS_OF_BLAS)
        try:
            return super().__call__(*args, **kwargs)
        finally:
            gc.freeze()  # at its end Python looks for garbage several times more: 40 ms for what is about to go anyway

    def invoke(self, ctx: click.Context) -> Any:
        """As click's, which would end with 1 where Ctrl-C comes before the command itself listens to it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from tiering.command.exit_codes import Exit

            click.echo("tiering: interrupted", err=True)
            ctx.exit(Exit.interrupted)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = _OLD_NAMES.get(cmd_name, cmd_name)
        if verb not in _VERBS:
            return None
        command: click.Command = with_config(importlib.import_module(f"tiering.cli.{verb.replace('-', '_')}").command)
        return command if verb == cmd_name else _deprecated(command, verb)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as e:
            from difflib import get_close_matches

            near = get_close_matches(args[0], _VERBS, n=1)
            remedy = f"did you mean {near[0]}?" if near else "`tiering --help` lists them all"
            raise click.UsageError(f"No such command {args[0]!r}; {remedy}", ctx) from e

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = [CompletionItem(name, help=text) for name, text in sorted(_VERBS.items()) if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)  # a group's own would import every verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_VERBS.items()))


def _deprecated(command: click.Command, new_name: str) -> click.Command:
    """The same command under a former name; only its help tells of the new one, so that scripts see no other output."""
    alias = copy(command)
    alias.hidden, alias.help = True, f"Deprecated: use `tiering {new_name}`.\n\n{cleandoc(command.help or '')}"
    return alias


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tiering", message="%(prog)s %(version)s")
def main() -> None:
    """Copies a Kafka broker's closed log segments to object storage, and reads them there without a broker."""
