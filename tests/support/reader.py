"""A reader who follows a page in an empty folder: one shell, command after command, each answer held against the page."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pages import ROOT, Command, answers, steps

SECONDS_MAX = 200
_MARK = "\x1e"


def follow(page: str, folder: Path, environment: Mapping[str, str], tiering: str) -> int:
    """Does in `folder` what a page says, and gives how many commands that were. Fails where one does not answer as shown."""
    todo = steps(page)
    script = "\n".join(["trap 'kill $(jobs -p) 2>/dev/null' EXIT", *map(_line, todo)])
    shell = ["bash", "--norc", "-c", script]
    with (folder / ".said").open("w+b") as said:
        subprocess.run(
            shell, cwd=folder, env=_environment(folder, environment, tiering), stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, check=False, timeout=SECONDS_MAX,
        )  # fmt: skip
        said.seek(0)
        parts = re.split(f"{_MARK}(\\d+)\n", said.read().decode())
    commands = [step for step in todo if isinstance(step, Command)]
    codes = [int(code) for code in parts[1::2]]
    for command, answer, code in zip(commands, parts[::2], codes, strict=False):
        typed = f"{page}: $ {command.typed}"
        assert code == 0, f"{typed}\nexit code {code}\n{answer}"
        is_so = command.answer is None or answers(command.answer, answer)
        assert is_so, f"{typed}\nthe page shows\n{command.answer}\nit says\n{answer}"
    assert len(codes) == len(commands), f"{page}: the shell ended after {len(codes)} of {len(commands)} commands: {parts[-1]}"
    return len(commands)


def _line(step: object) -> str:
    if isinstance(step, Command):
        return f"{step.typed}\nprintf '{_MARK}%d\\n' $?"
    assert hasattr(step, "name")
    assert hasattr(step, "text")
    name = shlex.quote(step.name)
    return f'mkdir -p "$(dirname {name})"; printf %s {shlex.quote(step.text)} >{name}'


def _environment(folder: Path, environment: Mapping[str, str], tiering: str) -> dict[str, str]:
    """That of somebody who has installed the wheel: `tiering` and `python` are found, and nothing is configured."""
    tools = folder / ".tools"
    tools.mkdir()
    for name, text in (("tiering", tiering), ("python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("TIERING_", "PYTEST_"))}
    where = {"TZ": "UTC", "XDG_STATE_HOME": str(folder / ".state")}
    return {**plain, **where, "PATH": f"{tools}:{plain['PATH']}", "PYTHONPATH": str(ROOT), **environment}
