"""`tiering` without a command: it answers before anything heavy is imported."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from golden_logs import broker_logs

from tiering import __version__

HEAVY = {
    "awscrt",
    "boto3",
    "botocore",
    "crc32c",
    "cryptography",
    "fsspec",
    "logging",
    "numba",
    "numpy",
    "prometheus_client",
    "pyarrow",
}
HEAVY |= {"prometheus_client", "pyarrow", "pydantic", "pyspark", "s3fs", "secrets"}
MODULES = """
import runpy, sys
try:
    runpy.run_module("tiering", run_name="__main__", alter_sys=True)
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("option", ["--version", "--help", "-h"])
def test_an_answer_without_a_command_imports_nothing_heavy(option: str) -> None:
    ran = subprocess.run([sys.executable, "-c", MODULES, option], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    imported = set(ran.stderr.split())
    assert "tiering.cli" in imported
    assert not imported & HEAVY


def test_a_command_imports_nothing_heavy_before_it_is_run() -> None:
    every = "from tiering.cli import main; from tiering.command.manual import commands; print(len([*commands(main)]))"
    ran = subprocess.run([sys.executable, "-c", f"import sys; {every}; print(*sys.modules)"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    number, imported = ran.stdout.splitlines()
    assert int(number) > 40, "commands, each of which was imported"
    assert not set(imported.split()) & HEAVY


NEVER = {"boto3", "botocore", "fsspec", "prometheus_client", "pydantic", "pyspark", "joserfc", "awscrt", "pyarrow.parquet"}
NEVER |= {"local_log.engine.manager.log_manager", "local_log.engine.unified_log", "remote.segment.upload", "http.client"}
NEVER |= {"cryptography"}
CODECS = {"lz4", "snappy", "zstandard"}
OF_NUMBA = {"numba", "importlib.metadata", "argparse"}
"""What it brings besides is not to come from elsewhere."""
NO_RECORDS = {"pyarrow", "numpy", *OF_NUMBA, *CODECS}
"""Only records are decoded to Arrow's columns: what looks at manifests and single headers of batches waits for nothing of it."""
OF_OTHERS = {"tiering.offload", "tiering.config.load", "tiering.cluster", "local_log.engine"}
"""What other commands do, and what asks a broker's metadata."""
RUNS = """
import json, sys
from tiering.cli import main
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        assert not end.code, words
print(*sys.modules)
"""


OF_TOPIC = ("--topic", "g-txn")


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        (("config", "show"), {"tiering.wiring", "remote.archive", "concurrent.futures", *NO_RECORDS}),
        (
            ("manifest", "show", *OF_TOPIC),
            {"local_log.log_reader", "tiering.wiring", "tiering.config.load", *NO_RECORDS},
        ),
        (("describe",), {*OF_OTHERS, "concurrent.futures", "tiering.read.coverage", "remote.transforms.encoder", *NO_RECORDS}),
        (("offsets", *OF_TOPIC), {*OF_OTHERS, "concurrent.futures", "remote.transforms.encoder", *NO_RECORDS}),
        (("fetch", *OF_TOPIC, "--partition", 0, "--offset", 0, "--output", "jsonl"), {"tiering.offload", "tiering.config.load"}),
        (("status",), {"tiering.offload.copy", "tiering.wiring", "remote.read.log", "pyarrow", *CODECS}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_command_that_looks_imports_what_it_uses(
    command: tuple[object, ...], unused: set[str], run: Callable[..., Result], tmp_path: Path
) -> None:
    logs, archive, config = broker_logs(tmp_path / "logs", "g-txn-0"), tmp_path / "archive", tmp_path / "tiering.toml"
    assert run("offload", "--log-dir", logs, "--archive", archive, "--state-dir", tmp_path / "state").exit_code == 0
    config.write_text(f'[log]\ndirs = ["{logs}"]\n[archive]\nurl = "{archive}"\n')
    of = {"status": ("--config", config), "config": (config,)}
    words = [*map(str, (*command, *of.get(str(command[0]), ("--archive", archive))))]
    ran = subprocess.run([sys.executable, "-c", RUNS, json.dumps([words])], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    imported = set(ran.stdout.splitlines()[-1].split())
    assert "remote.store.open" in imported
    assert imported & (NEVER | unused) == set()


def test_a_command_has_numpy_start_no_threads() -> None:
    run = "import os, sys; from tiering.cli import main"
    run += "\ntry: main(['--version'])\nexcept SystemExit: pass\nfound = [len(os.listdir('/proc/self/task'))]"
    run += "\nimport numpy\nprint(*found, len(os.listdir('/proc/self/task')))"
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    ran = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, env=unset)
    assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, ["1 1"]), ran.stderr


def test_version_is_the_name_and_the_number() -> None:
    ran = subprocess.run([sys.executable, "-m", "tiering", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"tiering {__version__}\n", "")


def test_help_lists_every_command(run: Callable[..., Result]) -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    assert {"describe", "fetch", "log", "offload", "offsets"} <= {line.split()[0] for line in shown.stdout.splitlines() if line}


@pytest.mark.parametrize("command", ["describe", "fetch", "log", "log dump", "offload", "offsets"])
def test_every_command_explains_itself(run: Callable[..., Result], command: str) -> None:
    assert run(*command.split(), "--help").exit_code == 0


def test_a_command_that_does_not_exist_is_a_usage_error_that_names_it(run: Callable[..., Result]) -> None:
    refused = run("ofload")
    assert refused.exit_code == 2
    assert "ofload" in refused.stderr
