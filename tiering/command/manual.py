"""A page of the manual for each command, made of the command itself: pure, from click's tree of commands to text.

`words` are those behind `tiering`, such as ("manifest", "show"); none for the page of `tiering`. What a docstring says under
`Examples:`, in a paragraph that click does not rewrap because of a \\b, becomes the page's examples.
"""

import re
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from textwrap import wrap
from typing import Final

import click

from tiering.command.config_option import setting_of
from tiering.command.exit_codes import EXIT_MEANS
from tiering.config.shared import VARIABLES

WIDTH: Final = 80
_INDENT: Final = " " * 4
_LEFT_ALONE: Final = "\b"
_EXAMPLES: Final = "Examples:"

Words = tuple[str, ...]


def page(root: click.Command, words: Sequence[str] = ()) -> str:
    """The page of one command, lines of at most `WIDTH` but for examples and long names. Raises UsageError if there is none."""
    context = _context(root, words)
    command = context.command
    paragraphs = _paragraphs(command)
    examples = [p for p in paragraphs if p[0] == _EXAMPLES]
    sections = [
        ("name", _wrapped(f"{context.command_path} - {_in_a_line(command)}")),
        ("synopsis", _wrapped(" ".join([context.command_path, *command.collect_usage_pieces(context)]))),
        ("description", _apart([_wrapped(p) if isinstance(p, str) else _indented(p) for p in paragraphs if p not in examples])),
        ("commands", _apart([_item(name, _in_a_line(below)) for name, below in _below(context)])),
        ("arguments", _apart([_argument(context, p) for p in command.params if isinstance(p, click.Argument)])),
        ("options", _apart([_option(context, p) for p in command.get_params(context) if isinstance(p, click.Option)])),
        ("exit status", [line for code, means in EXIT_MEANS.items() for line in _wrapped(f"{code:d}  {means}", hanging="   ")]),
        ("examples", _indented([line.strip() for e in examples for line in e[1:]])),
        ("see also", _wrapped(", ".join(" ".join(["tiering", *other]) for other in _see_also(root, tuple(words), command)))),
    ]
    return "\n".join(_apart([[title.upper(), *lines] for title, lines in sections if lines])) + "\n"


def commands(root: click.Command) -> Iterator[Words]:
    """The words of every command, `root`'s first, which are none."""
    reached: list[Words] = [()]
    while reached:
        words = reached.pop(0)
        yield words
        reached += [(*words, name) for name, _ in _below(_context(root, words))]


def command_of(root: click.Command, words: Sequence[str]) -> click.Command:
    """The command. Raises UsageError if there is none."""
    return _context(root, words).command


def examples(root: click.Command, words: Sequence[str]) -> list[str]:
    """The command lines that a command gives as examples."""
    found = (p for p in _paragraphs(command_of(root, words)) if p[0] == _EXAMPLES)
    return [line.strip() for lines in found for line in lines[1:]]


def _context(root: click.Command, words: Sequence[str]) -> click.Context:
    context = click.Context(root, info_name="tiering", show_default=True, **root.context_settings)
    for word in words:
        if not isinstance(context.command, click.Group):
            raise click.UsageError(f"{context.command_path} has no commands of its own; see `tiering man` for all there are")
        _, command, _ = context.command.resolve_command(context, [word])
        assert command is not None
        context = click.Context(command, parent=context, info_name=word, show_default=True)
    return context


def _below(context: click.Context) -> list[tuple[str, click.Command]]:
    group = context.command
    if not isinstance(group, click.Group):
        return []
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [(name, command) for name, command in found if command is not None]


def _paragraphs(command: click.Command) -> list[str | list[str]]:
    """Of the docstring: a text, or the lines of what is to be left as it is."""
    parts = (part.splitlines() for part in cleandoc(command.help or "").split("\n\n"))
    return [lines[1:] if lines[0] == _LEFT_ALONE else " ".join(lines) for lines in parts if lines]


def _in_a_line(command: click.Command) -> str:
    return command.get_short_help_str(limit=1000)


def _option(context: click.Context, option: click.Option) -> list[str]:
    record = option.get_help_record(context)
    extra = option.get_help_extra(context)
    facts = ["required"] if "required" in extra else []
    facts += [f"default: {extra['default']}"] if "default" in extra else []
    facts += [extra["range"]] if "range" in extra else []
    facts += ["may be given several times"] if option.multiple and "several times" not in (option.help or "") else []
    facts += _sources(context.command, option)
    term = record[0] if record else option.opts[0]
    return _item(term.replace(" RANGE", ""), f"{option.help or ''} {_bracketed(facts)}".strip())


def _argument(context: click.Context, argument: click.Argument) -> list[str]:
    facts = ["required" if argument.required else "may be left out", *_sources(context.command, argument)]
    return _item(argument.make_metavar(context).strip("[].{}"), _bracketed(facts))


def _sources(command: click.Command, param: click.Parameter) -> list[str]:
    """Where else than from the command line a value comes."""
    variables = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar or ())
    setting = setting_of(param.name or "") if any(other.name == "config_file" for other in command.params) else None
    if setting:
        variables.append(VARIABLES + setting.replace(".", "_").upper())
    return [f"setting: {setting}"] * bool(setting) + [f"environment: {', '.join(variables)}"] * bool(variables)


def _bracketed(facts: list[str]) -> str:
    return f"[{'; '.join(facts)}]" if facts else ""


def _see_also(root: click.Command, words: Words, command: click.Command) -> list[Words]:
    """The commands that a page speaks of, the one above it, and those beside it unless they are all there are."""
    known = set(commands(root))
    texts = [command.help or "", *(p.help or "" for p in command.params if isinstance(p, click.Option))]
    said = [tuple(found.split()) for text in texts for found in re.findall(r"\btiering ((?:[a-z-]+ ?)+)", " ".join(text.split()))]
    spoken_of = {max((w[:n] for n in range(len(w) + 1) if w[:n] in known), key=len) for w in said}
    beside = {w for w in known if len(words) > 1 and w[:-1] == words[:-1]}
    above = {words[:-1]} if words else set()
    return sorted((spoken_of | beside | above) - {words} - {w for w in spoken_of if w[:-1] == words})


def _item(term: str, text: str) -> list[str]:
    return [_INDENT + term, *_wrapped(text, _INDENT * 2)]


def _wrapped(text: str, indent: str = _INDENT, hanging: str = "") -> list[str]:
    """Names of options and settings are not broken over lines, so that a text search finds them."""
    behind = indent + hanging
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=behind, break_long_words=False, break_on_hyphens=False)


def _indented(lines: Sequence[str]) -> list[str]:
    return [_INDENT + line for line in lines]


def _apart(blocks: list[list[str]]) -> list[str]:
    """The blocks' lines, with an empty one between two."""
    return [line for n, block in enumerate(blocks) for line in ([""] if n else []) + block]
