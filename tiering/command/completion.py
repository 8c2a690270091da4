"""The completion types of option values for shells."""

from click import Context, Parameter
from click.shell_completion import CompletionItem


def folders(_context: Context, _param: Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete` of what names a folder."""
    return [CompletionItem(incomplete, type="dir")]


def files(_context: Context, _param: Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete` of what names a file."""
    return [CompletionItem(incomplete, type="file")]
