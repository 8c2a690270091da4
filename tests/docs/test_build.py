"""Sphinx builds the pages without a warning, and the references have everything that the code has."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from pages import DOCS, ROOT, pages

from spark_jobs.source.options import _KNOWN
from tiering import cli
from tiering.config.settings import NAMES
from tiering.config.topics import OF_TOPICS, SYNONYMS
from tiering.metrics.series import ALL, NOT_EXPORTED
from tiering.metrics.shipped import alerts


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as HTML."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(folder / "trees")]
    done = subprocess.run([*command, str(DOCS), str(folder / "html")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def text_of(built: Path, page: str) -> str:
    return re.sub(r"<[^>]+>", "", (built / f"{page}.html").read_text()).replace("&gt;", ">").replace("&lt;", "<")


def headings(page: str, level: int) -> list[str]:
    return re.findall(rf"^{'#' * level} (.+)$", pages()[page], re.MULTILINE)


def names_of(command: click.Command, context: click.Context) -> list[str]:
    found = [context.command_path]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found += names_of(below, click.Context(below, info_name=name, parent=context))
    return found


def test_every_setting_and_its_variable_is_in_the_reference(built: Path) -> None:
    text = text_of(built, "configuration")
    assert [name for name in (*NAMES, *OF_TOPICS, *SYNONYMS) if name not in text] == []
    assert "TIERING_LOG_DIRS" in text


def test_every_series_is_in_the_reference_and_every_bean_of_kafka_s(built: Path) -> None:
    text = text_of(built, "metrics")
    assert [series.name for series in ALL if series.name not in text] == []
    assert [bean for bean in NOT_EXPORTED if bean not in text] == []


def test_every_command_is_in_the_reference_under_a_heading_of_its_own(built: Path) -> None:
    html = (built / "commands.html").read_text()
    every = names_of(cli.main, click.Context(cli.main, info_name="tiering"))
    assert len(every) > 25
    assert [name for name in every if f'<section id="{name.replace(" ", "-")}">' not in html] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    named = {line.strip() for line in pages()["index"].splitlines()}
    assert set(pages()) - {"index"} <= named


def test_every_alert_has_a_section_in_the_runbook_and_every_section_an_alert() -> None:
    rules = [rule["alert"] for group in yaml.safe_load(alerts())["groups"] for rule in group["rules"]]
    assert [h for h in headings("operations", 3) if h.startswith("KafkaTiering")] == rules
    shown = re.findall(r"^```\{alert\} (\w+)$", pages()["operations"], re.MULTILINE)
    assert shown == rules


def test_every_option_of_the_format_is_on_the_page_of_spark() -> None:
    assert [name for name in _KNOWN if f"`{name}`" not in pages()["spark"]] == []


def test_no_page_asks_the_network_for_anything_to_be_shown(built: Path) -> None:
    html = "".join(path.read_text() for path in built.glob("*.html"))
    assert re.findall(r'<(?:script|img|iframe|link rel="stylesheet")[^>]+(?:src|href)="(?:https?:)?//[^"]+', html) == []
