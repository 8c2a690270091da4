"""The command `tiering`: a file a verb. A verb's file is imported when it is called, so that `--version` waits for none."""

import importlib
from difflib import get_close_matches

import click
from click.shell_completion import CompletionItem

from tiering import __version__
from tiering.command.config_option import with_config

_VERBS = {
    "agent": "Copy, retain, sweep and scrub continuously.",
    "completion": "Print the script by which a shell completes what is typed.",
    "config": "Look at a configuration: whether it is sound, and what it comes to.",
    "delete-topic": "Delete a topic from the archive.",
    "describe": "Show what lies in which tier.",
    "diverged": "Look at partitions whose log and archive parted, and keep both.",
    "doctor": "Tell whether a store can be trusted with an archive.",
    "fetch": "Read records from an offset on, from whichever tier has it.",
    "log": "Look at a log directory.",
    "man": "Print the page of a command.",
    "manifest": "Look at what the archive says of a topic, now and before.",
    "metrics": "Show what the agent tells Prometheus, a dashboard and alerts.",
    "offload": "Copy inactive segments of a log directory into the archive.",
    "offsets": "Find offsets by time, as kafka-get-offsets does.",
    "restore": "Write archived partitions as a log directory that a broker starts on.",
    "retain": "Give up what a topic's retention no longer keeps.",
    "rotate-keys": "Wrap the data keys of encrypted segments with the current key.",
    "scrub": "Check that an archive is whole and sound.",
    "source-gone": "Say that a log directory was taken out of service.",
    "status": "Show what the agent does, and how far the archive lags.",
    "sweep": "Delete objects that no manifest names.",
}


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        command = importlib.import_module(f"tiering.cli.{cmd_name.replace('-', '_')}").command
        return with_config(command) if isinstance(command, click.Command) else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as e:
            near = get_close_matches(args[0], _VERBS, n=1)
            remedy = f"did you mean {near[0]}?" if near else "`tiering --help` names them all"
            raise click.UsageError(f"No such command {args[0]!r}; {remedy}", ctx) from e

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = [CompletionItem(name, help=text) for name, text in sorted(_VERBS.items()) if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)  # a group's own would import every verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_VERBS.items()))


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tiering", message="%(prog)s %(version)s")
def main() -> None:
    """Kafka's log, kept for ever on object storage and read from anywhere."""
