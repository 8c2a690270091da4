"""`tiering completion`: the script by which a shell completes commands and their options."""

import click
from click.shell_completion import get_completion_class

from tiering.console import Exit, reports_errors

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
@reports_errors
def command(context: click.Context, shell: str) -> Exit | None:
    """Print the script by which SHELL completes the commands of tiering, their options, and files and folders.

    Have each shell run it when it starts: by `eval "$(tiering completion bash)"` in .bashrc, by `eval "$(tiering completion zsh)"`
    in .zshrc behind compinit, by `tiering completion fish | source` in config.fish. It calls tiering, which has to be in PATH.
    """
    of = get_completion_class(shell)
    assert of is not None
    click.echo(of(context.find_root().command, {}, "tiering", "_TIERING_COMPLETE").source(), nl=False)
    return None
