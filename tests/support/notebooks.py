"""The notebook of docs/: its cells, run as Jupyter runs them, and what they show."""

import os
import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from pages import DOCS, ROOT

NOTEBOOK = DOCS / "notebook.ipynb"
SECONDS_MAX = 120
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

Shown = list[tuple[str, str]]
"""The kinds of what a cell shows, and their texts; of a picture only that there is one, since each machine's fonts differ."""


def kept() -> list[Shown]:
    """What each cell of the notebook shows as it is kept."""
    return [_shown(cell) for cell in nbformat.read(NOTEBOOK, as_version=4).cells]


def run(folder: Path) -> tuple[list[Shown], str]:
    """What each cell shows when the notebook is run in a folder, and what all say on standard error.

    With RENEW_NOTEBOOK in the environment that is kept in the notebook, without what stands on standard error.
    """
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / ".ipython")}
    client = NotebookClient(notebook, timeout=SECONDS_MAX, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    said = "".join(o.text for cell in notebook.cells for o in cell.get("outputs", ()) if _is_said(o))
    if "RENEW_NOTEBOOK" in os.environ:
        _renew(notebook)
    return [_shown(cell) for cell in notebook.cells], said


def _shown(cell: Any) -> Shown:
    found = []
    for output in cell.get("outputs", ()):
        if not _is_said(output):
            data = output.get("data", {"text/plain": output.get("text", "")})
            is_picture = "image/png" in data
            found += [(kind, "" if is_picture else _ADDRESS.sub("", text)) for kind, text in sorted(data.items())]
    return found


def _is_said(output: Any) -> bool:
    return output.get("name") == "stderr"


def _renew(notebook: Any) -> None:
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if not _is_said(output)]
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, NOTEBOOK)
