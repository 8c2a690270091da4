"""What the pages say is so: whoever follows them gets what they show."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import notebooks
import pytest
from airflow_home import home, needs_airflow
from forked_python import shared
from pages import ROOT, Block, blocks, commands, pages
from reader import follow

ON_A_BUCKET = {"stores"}
BY_SPARK = {"spark"}
PLAIN = sorted(
    page for page in pages() if page != "quickstart" and page not in ON_A_BUCKET | BY_SPARK
    and any(b.language == "console" and b.is_run for b in blocks(page))
)  # fmt: skip
REASONS = {"it needs a broker.", "it needs the cloud.", "it needs root.", "it needs an Airflow.", "it needs a cluster."}
NOT_RUN_MAX = 12


@pytest.fixture(scope="session")
def quickstarted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of somebody who has followed the quickstart, in a checkout."""
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "tests").symlink_to(ROOT / "tests")
    assert follow("quickstart", folder, {}, shared().tiering) > 5
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def tiering() -> str:
    """The script `tiering`. The commands of an installed wheel are started as their user does by the tests of a new user."""
    return shared().tiering


@pytest.fixture
def folder(quickstarted: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copytree(quickstarted, tmp_path / "goes-on", symlinks=True, ignore=shutil.ignore_patterns(".*")))
    shutil.rmtree(tmp_path / "goes-on")


def test_the_quickstart_is_so(quickstarted: Path) -> None:
    assert (quickstarted / "archive" / "archive.json").is_file()


@pytest.mark.parametrize("page", PLAIN)
def test_a_page_that_goes_on_from_the_quickstart_is_so(page: str, folder: Path, tiering: str) -> None:
    assert follow(page, folder, {}, tiering) > 0


def test_every_cell_of_the_notebook_runs_and_shows_what_is_kept(quickstarted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(quickstarted / ".jupyter"))
    shown, said = notebooks.run(quickstarted)
    assert shown == notebooks.kept()
    assert {"text/html", "image/png"} <= {kind for cell in shown for kind, _ in cell}
    bars = re.findall(r"g-txn: 100%[^\n]* offsets/s\]\n", said)
    assert len(bars) == 3, "tqdm shows the progress of each read"
    assert re.sub(r"\rg-txn: [^\r\n]*\n?", "", said) == ""


@pytest.mark.parametrize("page", sorted(ON_A_BUCKET))
def test_a_page_that_needs_a_bucket_is_so(page: str, folder: Path, tiering: str, s3_server: str) -> None:
    import boto3.session

    client: Any = boto3.session.Session().client("s3")
    client.create_bucket(Bucket="bucket")
    client.close()
    told = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    assert follow(page, folder, told, tiering) > 0


@pytest.mark.spark
@pytest.mark.parametrize("page", sorted(BY_SPARK))
def test_a_page_of_spark_is_so(page: str, folder: Path, tiering: str) -> None:
    assert follow(page, folder, {}, tiering) > 0


@needs_airflow
def test_files_of_dags_load(tmp_path: Path) -> None:
    files = [b for b in blocks("airflow") if b.caption]
    environment = home(*(_written(tmp_path, b) for b in files))
    program = "import " + ", ".join(Path(b.caption).stem for b in files)
    path = f"{environment['AIRFLOW__CORE__DAGS_FOLDER']}:{environment['PYTHONPATH']}"
    told = {**os.environ, **environment, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], env=told, capture_output=True, text=True, check=False, timeout=200)
    assert len(files) == 2
    assert done.returncode == 0, done.stderr


def _written(folder: Path, block: Block) -> Path:
    file = folder / Path(block.caption).name
    file.write_text(block.text)
    return file


def test_commands_stand_in_blocks_that_are_run() -> None:
    every = [b for page in pages() for b in blocks(page)]
    assert [(b.page, b.text) for b in every if b.language in ("bash", "sh", "shell", "shell-session")] == []
    consoles = [b for b in every if b.language == "console"]
    assert all(commands(b.text) for b in consoles)


def test_what_is_not_run_is_little_and_says_why() -> None:
    left_out = [b for page in pages() for b in blocks(page) if not b.is_run or b.reason]
    assert [(b.page, b.text) for b in left_out if b.is_run or b.reason not in REASONS] == []
    assert len(left_out) <= NOT_RUN_MAX
