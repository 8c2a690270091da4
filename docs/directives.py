"""The directives with which pages include facts from the code.

    {generated} NAME       a table or sections of `reference`
    {described} KIND       a table of a value's fields or a page's columns; the lines below are `name: sentence`
    {alert} NAME           an alert as Prometheus has it

The build fails if a page describes something that the code does not have, or leaves out something that it has.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from textwrap import dedent
from typing import Any

import reference
from docutils import nodes
from docutils.parsers.rst import Directive
from nodes_of import literal, paragraph, section, table
from sphinx.application import Sphinx

from remote.manifest import codec, gaps, model, pins, segment_entry

TABLES: dict[str, tuple[Sequence[str], Callable[[], Any]]] = {
    "settings": (("setting", "default", "variable", "meaning"), reference.settings),
    "log-settings": (("setting", "default"), reference.log_settings),
    "endpoint-settings": (("setting", "default", "variable", "meaning"), reference.endpoint_settings),
    "manager-settings": (("setting", "default", "variable"), reference.manager_settings),
    "synonyms": (("a broker's name", "here", "factor"), reference.synonyms),
    "metrics": (("series", "type", "labels", "Kafka's bean", "meaning"), reference.metrics),
    "endpoint-metrics": (("series", "type", "labels", "Kafka's bean", "meaning"), reference.endpoint_metrics),
    "own-endpoint-metrics": (("series", "type", "labels", "Kafka's bean", "meaning"), reference.own_endpoint_metrics),
    "process-metrics": (("series",), reference.process_metrics),
    "prices": (
        ("class", "1,000 reads", "1,000 writes", "a GB read", "a GB to the Internet", "as of", "region"),
        reference.prices,
    ),
    "beans-not-here": (("bean", "why"), reference.beans_not_here),
}
KINDS: dict[str, type] = {kind.__name__: kind for kind in (
    model.Manifest, segment_entry.SegmentEntry, segment_entry.EncodingInfo, model.PageRef, model.PageBounds, gaps.Gap, model.Loss,
    gaps.Divergence, model.WriteMark, model.PendingWrite, pins.Pin,
)}  # fmt: skip
EXAMPLES = "Examples:"
CHECKSUM, SIGNATURE = "~crc32c", "~mac"
BESIDES = {"Manifest": ("format", CHECKSUM, SIGNATURE), "Pin": ("format", CHECKSUM)}
"""Fields of stored objects that the values in the code do not have."""


class Generated(Directive):
    """A table or sections generated from the code."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes. Fails for an unknown name."""
        name = self.arguments[0]
        if name == "commands":
            return [_command(command) for command in reference.commands()]
        if name not in TABLES:
            raise self.error(f"{name}: there are {', '.join(TABLES)}, commands")
        head, rows = TABLES[name]
        return [table(head, rows())]


class Described(Directive):
    """A table of names from the code, each with a sentence from the page."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The table. Fails if the page's names are not exactly the code's names."""
        kind = self.arguments[0]
        if kind == "topic-settings":
            head, rows = ("setting", "default", "meaning"), dict(reference.topic_settings())
        elif kind in ("entry", "ref"):
            head, rows = ("column", "type", "content"), {n: f"`{t}`" for n, t in reference.columns(kind)}
        elif kind in KINDS:
            head = ("field", "content")
            rows = dict.fromkeys((*_stored(kind), *BESIDES.get(kind, ())), "")
        else:
            raise self.error(f"{kind}: there are topic-settings, entry, ref, {', '.join(KINDS)}")
        lines = [line.partition(": ") for line in self.content if line.strip()]
        said = {name: sentence for name, _, sentence in lines}
        if said.keys() != rows.keys() or len(lines) != len(said):
            raise self.error(f"{kind}: missing {sorted(rows.keys() - said.keys())}, foreign {sorted(said.keys() - rows.keys())}")
        cells = ((literal(n), *([rows[n]] if len(head) == 3 else []), text) for n, text in said.items())
        return [table(head, cells)]


def _stored(kind: str) -> list[str]:
    return [f.name for f in fields(KINDS[kind]) if f.name not in codec.NOT_STORED]


class Alert(Directive):
    """When an alert fires, and how urgent it is."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes. Fails for an unknown alert, and for a template that a reader would see unexpanded."""
        rule = reference.alert_rules().get(self.arguments[0])
        if rule is None:
            raise self.error(f"{self.arguments[0]} is no alert; there are {', '.join(reference.alert_rules())}")
        lasting = f" for {rule['for']}" if "for" in rule else ""
        urgency, description = rule["labels"]["severity"], rule["annotations"]["description"]
        if "{{" in description:
            raise self.error(f"{self.arguments[0]}: only Prometheus can expand the template in the description; use the summary")
        return [
            nodes.literal_block(rule["expr"], rule["expr"]),
            paragraph(f"Fires when this holds{lasting}; severity {urgency}. {description}"),
        ]


def _command(command: reference.Command) -> nodes.section:
    body: list[nodes.Node] = [nodes.literal_block(command.usage, command.usage)]
    for text in command.paragraphs:
        body += _examples(text) if text.strip().startswith(EXAMPLES) else [paragraph(text)]
    if command.options:
        body.append(table(("option", "meaning"), command.options))
    return section(command.name, command.name.replace(" ", "-"), *body)


def _examples(text: str) -> list[nodes.Node]:
    lines = dedent(text.strip().removeprefix(EXAMPLES).strip("\n"))
    return [paragraph(EXAMPLES), nodes.literal_block(lines, lines)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Tells Sphinx of the directives."""
    app.add_directive("generated", Generated)
    app.add_directive("described", Described)
    app.add_directive("alert", Alert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
