"""What a newer version wrote: every command asks for an upgrade and leaves it as it is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from offloaded import Rows, Run, contents, manifests

from remote.store.api import ObjectStore
from remote.store.open import open_store


@pytest.mark.parametrize("extra", [[], ["--dry-run"]], ids=["offload", "dry run"])
def test_an_archive_of_a_newer_format_asks_for_an_upgrade_and_stays_as_it_is(
    run: Run, broker: Path, url: str, extra: list[str]
) -> None:
    store = open_store(url)
    store.put_if_absent("archive.json", b'{"format": {"major": 2, "minor": 0}, "created_at_ms": 0}\n')
    before = contents(store)
    refused = run("offload", "--log-dir", broker, "--archive", url, *extra)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "archive.json" in refused.stderr
    assert "upgrade" in refused.stderr
    assert contents(store) == before


def newer_manifest(store: ObjectStore, name: str) -> str:
    """Commits a version of the next format behind a partition's newest, and gives its key."""
    manifest = manifests(store)[name]
    path = manifest.path
    value = json.loads(store.get(path.manifest(manifest.version)))
    value |= {"format": {"major": 2, "minor": 0}, "version": manifest.version + 1}
    key = path.manifest(manifest.version + 1)
    store.put_if_absent(key, json.dumps(value).encode())
    return key


@pytest.mark.parametrize("extra", [[], ["--dry-run"]], ids=["offload", "dry run"])
def test_a_manifest_of_a_newer_format_asks_for_an_upgrade_and_stays_as_it_is(
    run: Run, rows: Rows, roll: Callable[[Path, str], None], logs: Path, url: str, extra: list[str]
) -> None:
    rows("offload", "--log-dir", logs, "--archive", url)
    store = open_store(url)
    key = newer_manifest(store, "g-codec-none-0")
    before = contents(store)
    roll(logs, "g-codec-none-0")
    refused = run("offload", "--log-dir", logs, "--archive", url, "--topic", "g-codec-none", *extra)
    assert refused.exit_code == 1
    assert key in refused.stderr
    assert "upgrade" in refused.stderr
    assert contents(store) == before


def test_what_was_copied_before_a_manifest_of_a_newer_format_was_met_has_its_rows(
    run: Run, rows: Rows, roll: Callable[[Path, str], None], logs: Path, url: str
) -> None:
    rows("offload", "--log-dir", logs, "--archive", url)
    newer_manifest(open_store(url), "g-txn-0")
    roll(logs, "g-codec-none-0")
    for output in ("jsonl", "json", "table"):
        result = run("offload", "--log-dir", logs, "--archive", url, "--output", output)
        assert result.exit_code in (1, 3)
        assert "upgrade" in result.stderr
        assert "g-codec-none" in result.stdout, output


@pytest.mark.parametrize("command", ["describe", "offsets", "fetch"])
def test_readers_too_ask_for_an_upgrade(run: Run, url: str, command: str) -> None:
    open_store(url).put_if_absent("archive.json", b'{"format": {"major": 2, "minor": 0}}')
    options = {"describe": [], "offsets": ["--topic", "a"], "fetch": ["--topic", "a", "--partition", 0, "--offset", 0]}
    refused = run(command, "--archive", url, *options[command])
    assert refused.exit_code == 1
    assert "upgrade" in refused.stderr
