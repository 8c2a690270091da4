"""`tiering completion`: the script by which a shell completes commands and their options."""

import click
from click.shell_completion import get_completion_class

from tiering.command.exit_codes import Exit, reports_errors

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
@reports_errors
def command(context: click.Context, shell: str) -> Exit | None:
    """Print a script that makes SHELL complete the commands of tiering, their options, and files and folders.

    Run it when the shell starts: in .bashrc, in .zshrc after compinit, or in config.fish. The script calls tiering, which must
    be in PATH.

    \b
    Examples:
      eval "$(tiering completion bash)"
      eval "$(tiering completion zsh)"
      tiering completion fish | source
    """
    of = get_completion_class(shell)
    assert of is not None
    click.echo(of(context.find_root().command, {}, "tiering", "_TIERING_COMPLETE").source(), nl=False)
    return None
