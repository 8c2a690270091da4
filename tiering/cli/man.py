"""`tiering man`: the page of each command."""

import click
from click.shell_completion import CompletionItem

from tiering import __version__
from tiering.command.completion import folders
from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.manual import commands, page
from tiering.command.options import named
from tiering.command.roff import file_of, roff


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
@click.option("--roff", "is_roff", is_flag=True, help="Print the page's source, which man -l renders.")
@click.option("--to", callback=named, shell_complete=folders, metavar="DIR", help="Write all pages in roff into this folder.")
@click.pass_context
@reports_errors
def command(context: click.Context, words: tuple[str, ...], is_roff: bool, to: str | None) -> Exit | None:
    """Print the manual page of COMMAND, or of tiering: every option with its default, its environment variable and its setting.

    With --to a folder that man searches, `man tiering` and pages such as `man tiering-offload` work.

    \b
    Examples:
      tiering man
      tiering man offload
      tiering man manifest show
      tiering man offload --roff
      tiering man --to ~/.local/share/man/man1
    """
    root = context.find_root().command
    if to is None:
        text = page(root, words)
        click.echo(roff(text, words, __version__) if is_roff else text, nl=False)
        return None
    if words or is_roff:
        raise click.UsageError("--to writes all pages, in roff: leave COMMAND and --roff out")
    from tiering.machine import writable_disk

    disk = writable_disk()
    disk.make_folder(to)
    for each in commands(root):
        file, source = f"{to}/{file_of(each)}", roff(page(root, each), each, __version__).encode()
        disk.write(file, 0, source)
        disk.truncate(file, len(source))
    return None
