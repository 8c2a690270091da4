"""Text and tables as docutils nodes, so that what code says needs no escaping."""

from collections.abc import Iterable, Sequence

from docutils import nodes


def text_nodes(text: str) -> list[nodes.Node]:
    """A sentence whose words in backticks are literal."""
    parts = text.split("`")
    return [nodes.literal(text=part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts) if part]


def paragraph(text: str) -> nodes.paragraph:
    """One paragraph of such text."""
    return nodes.paragraph("", "", *text_nodes(" ".join(text.split())))


def literal(text: str) -> str:
    """The text as a cell that is shown as it is; an empty one stays empty."""
    return f"`{text}`" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> nodes.table:
    """A table with a head; cells are such text."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["generated", "colwidths-auto"])


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", paragraph(cell)) for cell in cells))


def section(title: str, name: str, *children: nodes.Node) -> nodes.section:
    """A section under a literal title; `name` is what links point to."""
    made = nodes.section("", nodes.title("", "", nodes.literal(text=title)), *children, names=[name])
    made["ids"] = [nodes.make_id(name)]
    return made
