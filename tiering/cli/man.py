"""`tiering man`: the page of each command."""

import click
from click.shell_completion import CompletionItem

from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.manual import page


def _below(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names that may come behind those that are typed."""
    at = context.find_root().command
    for word in context.params.get(param.name or "") or ():
        below = at.get_command(context, word) if isinstance(at, click.Group) else None
        if below is None:
            return []
        at = below
    names = at.list_commands(context) if isinstance(at, click.Group) else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("man")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_below)
@click.pass_context
@reports_errors
def command(context: click.Context, words: tuple[str, ...]) -> Exit | None:
    """Print the manual page of COMMAND, or of tiering: every option with its default, its environment variable and its setting.

    \b
    Examples:
      tiering man
      tiering man offload
      tiering man manifest show
    """
    click.echo(page(context.find_root().command, words), nl=False)
    return None
