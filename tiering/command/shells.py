"""How shells ask for completions, where click's own way leaves something out.

A value that begins with `-`, such as the time -2h, is completed like any other: to click it is always the name of an option.

Bash makes three words of s3://bucket, `s3`, `:` and `//bucket`, and completes the last one. Here they are one word again, and
bash gets what comes behind its last colon.
"""

from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)


class _WithNegativeValues(ShellComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """See click."""
        if incomplete.startswith("-"):
            of_option = super().get_completions([*args], "")  # of the option that waits for a value, if there is one
            values = [item for item in of_option if item.value.startswith(incomplete)]
            if values:
                return values
        return super().get_completions(args, incomplete)


class Bash(_WithNegativeValues, BashComplete):
    """Completion for bash."""

    _before_colon = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """See click."""
        args, incomplete = super().get_completion_args()
        *words, last = _joined([*args, incomplete])
        if last != incomplete:
            self._before_colon = last[: last.rindex(":") + 1]
        return words, last

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """See click."""
        return f"{item.type},{str(item.value).removeprefix(self._before_colon)}"


class Zsh(_WithNegativeValues, ZshComplete):
    """Completion for zsh."""


class Fish(_WithNegativeValues, FishComplete):
    """Completion for fish."""


def _joined(words: list[str]) -> list[str]:
    """The words with those that bash has divided at a colon as one again."""
    found: list[str] = []
    for number, word in enumerate(words):
        if found and number and (word == ":" or words[number - 1] == ":"):
            found[-1] += word
        else:
            found.append(word)
    return found


for _kind in (Bash, Zsh, Fish):
    add_completion_class(_kind)
