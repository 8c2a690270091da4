"""What people see when an archive is damaged, its store is gone or the keys are wrong: each command, each fault, one line.

An exit code that says what to do, and a line that names the key and the remedy. No command loses anything by it.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import FixedClock
from click.testing import Result
from golden_logs import broker_logs
from key_files import write_keys
from logs_to_archive import offload_all, roll
from s3_servers import ClockIsOff, serving

from remote import archive
from remote.manifest import codec, stamped_json
from remote.manifest.model import Manifest
from remote.store.open import open_store

Run = Callable[..., Result]
Rows = Callable[..., list[dict[str, Any]]]

OF_TXN = ("--topic", "g-txn")
COMMANDS: dict[str, tuple[object, ...]] = {
    "describe": ("describe",),
    "fetch": ("fetch", *OF_TXN, "--partition", 0, "--offset", 0, "--max-records", 1),
    "offsets": ("offsets", *OF_TXN, "--time", 1),
    "offload": ("offload", "--log-dir", "{logs}"),
    "restore": ("restore", "--to", "{to}"),
    "scrub": ("scrub",),
    "deep scrub": ("scrub", "--deep"),
    "show": ("manifest", "show", *OF_TXN),
    "history": ("manifest", "history", *OF_TXN),
    "diff": ("manifest", "diff", *OF_TXN, 1, 3),
    "export": ("manifest", "export", *OF_TXN, "--to", "{to}.parquet"),
    "rotate-keys": ("rotate-keys", "--keys", "{keys}", "--allow-plain"),
    "expire": ("expire", "-c", "retention.ms=-1", "-c", "retention.bytes=-1", "--dry-run"),
    "sweep": ("sweep", "--dry-run"),
    "delete-topic": ("delete-topic", *OF_TXN, "--dry-run"),
}
DOCTOR: dict[str, tuple[object, ...]] = {"doctor": ("doctor",)}
"""Looks at the store, and of an archive at archive.json alone."""

MANIFEST = "g-txn/{id}/0/manifest/99999999999999999996-v3.json"
PARENT = "g-txn/{id}/0/manifest/99999999999999999997-v2.json"
COPY = "; restore it from a copy or the store's own versions, and delete nothing"
AGAIN = "are not there: restore the object from a copy"


@dataclass(frozen=True)
class Seen:
    """The exit code, and texts that stand on one line of what is printed."""

    code: int
    texts: tuple[str, ...] = ()


def everywhere(code: int, *texts: str) -> dict[str, Seen]:
    return dict.fromkeys(COMMANDS, Seen(code, texts))


def unreadable(problem: str) -> dict[str, Seen]:
    """The newest manifest cannot be read."""
    return everywhere(6, MANIFEST, problem, COPY)


def unchained() -> dict[str, Seen]:
    """Two versions do not fit: who looks at more than one says so."""
    seen = Seen(6, (PARENT, "one of the two was changed after it was written", "Delete nothing"))
    return everywhere(0) | dict.fromkeys(("scrub", "deep scrub", "history"), seen)


def unread(key: str, *commands: str) -> dict[str, Seen]:
    """An object is not as the manifest states: who reads it says so, and so do scrubs."""
    scrubs = dict.fromkeys(("scrub", "deep scrub"), Seen(6, ("wrong_size", key, "where the manifest states")))
    return everywhere(0) | dict.fromkeys(commands, Seen(6, (key, AGAIN))) | scrubs


def newest(url: Path) -> tuple[Manifest, Path]:
    (manifest,) = archive.manifests(open_store(str(url)), "g-txn")
    return manifest, url / manifest.path.manifest(manifest.version)


def rewrite(file: Path, body: bytes) -> None:
    file.chmod(0o600)
    file.write_bytes(body)


def restated(url: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the newest manifest of g-txn, and makes its checksum fit."""
    _, file = newest(url)
    value = stamped_json.read_stamped(file.read_bytes(), "")
    change(value)
    rewrite(file, stamped_json.stamped(value))


def cut(url: Path, name: str) -> None:
    manifest, _ = newest(url)
    file = url / manifest.path.segment(getattr(manifest.entries[0], name))
    rewrite(file, file.read_bytes()[:10])


def older_changed(url: Path) -> None:
    manifest, _ = newest(url)
    file = url / manifest.path.manifest(2)
    rewrite(file, codec.encode(replace(codec.decode(file.read_bytes(), ""), writer="somebody")))


FAULTS: dict[str, tuple[Callable[[Path], None], dict[str, Seen]]] = {
    "a manifest cut short": (
        lambda url: rewrite(newest(url)[1], newest(url)[1].read_bytes()[:200]),
        unreadable("not JSON"),
    ),
    "a manifest changed": (
        lambda url: rewrite(newest(url)[1], newest(url)[1].read_bytes().replace(b'"gaps":[]', b'"gaps":[ ]')),
        unreadable("its CRC-32C is"),
    ),
    "a hash that does not match its parent": (
        lambda url: restated(url, lambda value: value.update(parent_sha256="0" * 64)),
        unchained(),
    ),
    "an older version changed": (older_changed, unchained()),
    "a key that leaves the prefix": (
        lambda url: restated(url, lambda value: value["entries"][0].update(log_name="../../../../../etc/passwd")),
        unreadable("'../../../../../etc/passwd' is no name of a segment's object"),
    ),
    "a topic that leaves the prefix": (
        lambda url: restated(url, lambda value: value.update(topic="../../etc")),
        unreadable("'../../etc' cannot be archived"),
    ),
    "a truncated log object": (lambda url: cut(url, "log_name"), unread("{log}", "fetch", "offsets", "restore")),
    "a truncated aux object": (lambda url: cut(url, "aux_name"), unread("{aux}", "offsets", "restore")),
    "a damaged archive.json": (
        lambda url: rewrite(url / "archive.json", b'{"form'),
        everywhere(6, "archive.json at byte 0: not JSON", COPY) | {"doctor": Seen(6, ("FAIL  archive", "archive.json"))},
    ),
    "an archive that is not there": (
        shutil.rmtree,
        everywhere(4, "no archive there (archive.json is missing); check the address") | {"offload": Seen(0)},
    ),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One partition; all but its active segment is archived in `sound`."""
    return broker_logs(tmp_path_factory.mktemp("logs"), "g-txn-0")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_keys(tmp_path_factory.mktemp("keys") / "keys", "k1", k1=bytes(range(32)))


@pytest.fixture(scope="module")
def sound(rows: Rows, logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound archive to copy."""
    url = tmp_path_factory.mktemp("sound")
    rows("offload", "--log-dir", logs, "--archive", url)
    return url


def filled(command: tuple[object, ...], **places: object) -> list[str]:
    return [str(word).format(**places) for word in command]


def check(result: Result, command: str, seen: Seen, **names: str) -> None:
    assert result.exit_code == seen.code, (command, result.stderr)
    wanted = [text.format(**names) if text.startswith(("g-txn", "{")) else text for text in seen.texts]
    lines = [*result.stderr.splitlines(), *result.stdout.splitlines()]
    assert not wanted or any(all(text in line for text in wanted) for line in lines), (command, wanted, lines)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_says_what_is_wrong_and_what_to_do_and_loses_nothing(
    run: Run, logs: Path, keys: Path, sound: Path, tmp_path: Path, fault: str
) -> None:
    damage, expected = FAULTS[fault]
    manifest, _ = newest(sound)
    first = manifest.entries[0]
    names = {"id": manifest.topic_id, "log": manifest.path.segment(first.log_name), "aux": manifest.path.segment(first.aux_name)}
    for number, (command, words) in enumerate((COMMANDS | DOCTOR).items()):
        if command not in expected:
            continue
        url = Path(shutil.copytree(sound, tmp_path / f"archive{number}"))
        damage(url)
        before = {file: file.read_bytes() for file in url.rglob("*") if file.is_file()}
        places = {"logs": logs, "keys": keys, "to": tmp_path / f"to{number}"}
        check(run(*filled(words, **places), "--archive", url), command, expected[command], **names)
        assert {file: file.read_bytes() if file.exists() else None for file in before} == before


@pytest.mark.parametrize("ring", ["k1", "k2"])
def test_wrong_key_material_is_told_by_key_and_manifest_and_by_a_scrub_by_segment(
    run: Run, rows: Rows, logs: Path, keys: Path, tmp_path: Path, ring: str
) -> None:
    url, wrong = tmp_path / "archive", write_keys(tmp_path / "wrong", ring, **{ring: bytes(32)})
    rows("offload", "--log-dir", logs, "--archive", url, "--encrypt", "--keys", keys)
    manifest, _ = newest(url)
    problem = "does not unwrap the data key; give the key that had this id" if ring == "k1" else "is needed: key file"
    codes = {"fetch": 1, "offsets": 1, "restore": 1, "deep scrub": 3, "scrub": 0, "describe": 0, "show": 0}
    for command, code in codes.items():
        words = filled(COMMANDS[command], to=tmp_path / "to")
        given = () if command in ("describe", "show") else ("--keys", wrong)
        place = manifest.path.segments if command == "deep scrub" else manifest.path.manifest(manifest.version)
        check(run(*words, "--archive", url, *given), command, Seen(code, (place, "key 'k1'", problem) if code else ()))


@pytest.mark.parametrize(
    ("bucket", "turns", "remedy"),
    [
        ("gone", None, "404 NoSuchBucket: The specified bucket does not exist; create the bucket, or correct its name"),
        ("there", ClockIsOff, "403 RequestTimeTooSkewed: The difference is too large.; set this machine's clock"),
    ],
    ids=["a bucket that is not there", "a clock an hour off"],
)
def test_a_store_that_refuses_everything_is_one_line_with_its_remedy(
    run: Run, logs: Path, keys: Path, s3_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    bucket: str, turns: Any, remedy: str,
) -> None:  # fmt: skip
    url = f"s3://{s3_bucket if bucket == 'there' else 'gone-bucket'}/archive"
    with serving(*(turns,) if turns else ()) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server)
        for command, words in (COMMANDS | DOCTOR).items():
            result = run(*filled(words, logs=logs, keys=keys, to=tmp_path / "to"), "--archive", url)
            check(result, command, Seen(1, (url, remedy)))
            assert len(result.stderr.splitlines()) == (0 if command == "doctor" else 1)
    assert not (tmp_path / "to").exists()


def test_writers_whose_clocks_are_an_hour_apart_make_one_sound_archive(rows: Rows, tmp_path: Path) -> None:
    folder, url = broker_logs(tmp_path / "logs", "g-codec-none-0"), str(tmp_path / "archive")
    now_ms, hour_ms = 1_800_000_000_000, 3_600_000
    offload_all(folder, open_store(url), clock=FixedClock(now_ms + hour_ms))
    roll(folder, "g-codec-none-0")
    assert [done.error for done in offload_all(folder, open_store(url), clock=FixedClock(now_ms - hour_ms)) if done.error] == []
    assert rows("scrub", "--archive", url, "--deep") == []
    described = {row["topic"]: row["archived_up_to"] for row in rows("describe", "--archive", url)}
    assert described == {"g-codec-none": 2500}


def test_history_shows_the_versions_that_can_be_read_beside_what_cannot(run: Run, sound: Path, tmp_path: Path) -> None:
    url = Path(shutil.copytree(sound, tmp_path / "archive"))
    rewrite(newest(url)[1], b"")
    result = run("manifest", "history", *OF_TXN, "--archive", url, "--output", "jsonl")
    assert result.exit_code == 6
    assert [json.loads(line)["version"] for line in result.stdout.splitlines()] == [2, 1]
