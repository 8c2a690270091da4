"""Archives that are compressed, encrypted or both: what is refused, what is told, and who may read.

That they answer as those that are not encoded is in test_whole_archive.py.
"""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from golden_logs import live
from key_files import ENCODE, write_keys
from made_manifests import assert_sound_archive

from local_log.errors import NoKey
from remote import archive
from remote.store.open import open_store
from tiering.api import open_reader

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]
Records = Callable[[str], list[Row]]

SMALLEST = ("--chunk-bytes", 1 << 16)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key file."""
    return write_keys(tmp_path_factory.mktemp("keys") / "keys.json", "k1", k1=bytes(range(32)))


@pytest.fixture(scope="module", params=ENCODE)
def encoding(request: pytest.FixtureRequest) -> str:
    """Each encoding in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def given_keys(encoding: str, keys: Path) -> tuple[object, ...]:
    """The option that it takes to read what is encrypted."""
    return ("--keys", keys) if "aes" in encoding else ()


@pytest.fixture(scope="module")
def encoded(
    rows: Rows, rolled: Path, encoding: str, given_keys: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """All partitions' archive in this encoding."""
    url = str(tmp_path_factory.mktemp("encoded"))
    rows("offload", "--log-dir", rolled, "--archive", url, *ENCODE[encoding], *given_keys, *SMALLEST)
    return url


def test_the_archive_is_sound_and_holds_what_was_asked_for(encoded: str, encoding: str) -> None:
    store = open_store(encoded)
    manifests = [m for topic in archive.topics(store) for m in archive.newest_manifests(store, topic)]
    found = {m.topic: {entry.encoding for entry in assert_sound_archive(store, m.path).entries} for m in manifests}
    assert len(found) == 14
    assert found["g-codec-none"] == found["g-txn"] == {encoding}
    already_compressed = {"zstd": "identity"}.get(encoding, "aes-256-gcm")
    assert found["g-codec-lz4"] == found["g-codec-gzip"] == {already_compressed}


def test_a_bucket_has_no_record_in_the_clear(
    rows: Rows, records: Records, broker: Path, keys: Path, s3_bucket: str, s3_client: Any
) -> None:
    values = [base64.b64decode(record["value"] or "") for record in records("g-txn-0") if record["offset"] < 2744]
    value = max(values, key=len)
    for folder, how in (("open", ()), ("hidden", ("--encrypt", "--keys", keys))):
        rows("offload", "--log-dir", broker, "--archive", f"s3://{s3_bucket}/{folder}", "--topic", "g-txn", *how)
        objects = s3_client.list_objects_v2(Bucket=s3_bucket, Prefix=folder)["Contents"]
        bodies = [s3_client.get_object(Bucket=s3_bucket, Key=item["Key"])["Body"].read() for item in objects]
        assert any(value in body for body in bodies) == (folder == "open")


# keys


def offload(run: Run, logs: Path, url: str, *args: object) -> Result:
    return run("offload", "--log-dir", logs, "--archive", url, *args)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--encrypt",), 2, "--encrypt needs keys: give --keys or set TIERING_KEYS"),
        (("--keys", "{keys}"), 2, "--keys alone encrypts nothing: add --encrypt"),
        (("--encrypt", "--keys", ""), 2, "the value is empty"),
        (("--encrypt", "--keys", "{keys}.not"), 1, "cannot be read: No such file or directory"),
        (("--encrypt", "--keys", "{open}"), 1, "chmod 600"),
        (("--encrypt", "--keys", "{broken}"), 1, "not an object of current and keys"),
        (("--encrypt", "--keys", "env://NOT_SET"), 1, "the environment has no NOT_SET"),
        (("--encrypt", "--keys", "pigeon://x"), 2, "'pigeon://x' is not the address of a key ring"),
        (("--compress", "brotli"), 2, "'brotli' is not 'zstd'"),
        (("--compress", "zstd", "--chunk-bytes", "1000"), 2, "1000 is not in the range"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_cannot_be_encrypted_as_asked_is_refused_before_anything_is_uploaded(
    run: Run, logs: Path, tmp_path: Path, args: tuple[str, ...], code: int, message: str, dry: tuple[str, ...]
) -> None:
    places = {name: write_keys(tmp_path / name, "k1", k1=bytes(32)) for name in ("keys", "open", "broken")}
    places["open"].chmod(0o644)
    places["broken"].write_text("{}")
    url = tmp_path / "archive"
    result = offload(run, logs, str(url), *(arg.format(**places) for arg in args), *dry)
    assert result.exit_code == code, result.stderr
    assert message in result.stderr
    assert not url.exists()


def test_keys_of_the_environment_alone_encrypt_nothing_and_serve_those_who_read(
    run: Run, rows: Rows, logs: Path, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERING_KEYS", str(keys))
    plain, hidden = str(tmp_path / "plain"), str(tmp_path / "hidden")
    rows("offload", "--log-dir", logs, "--archive", plain)
    rows("offload", "--log-dir", logs, "--archive", hidden, "--encrypt")
    for url, encoding in ((plain, "identity"), (hidden, "aes-256-gcm")):
        (manifest,) = archive.manifests(open_store(url), "g-txn")
        assert {entry.encoding for entry in manifest.entries} == {encoding}
    question = ("--topic", "g-txn", "--partition", 0, "--offset", 0)
    assert rows("fetch", "--archive", hidden, *question) == rows("fetch", "--archive", plain, *question, "--allow-plain")


@pytest.fixture
def hidden(rows: Rows, logs: Path, url: str, keys: Path) -> str:
    """An encrypted archive of a test's own."""
    rows("offload", "--log-dir", logs, "--archive", url, "--encrypt", "--keys", keys, *SMALLEST)
    return url


@pytest.mark.parametrize("command", [("fetch", "--partition", 0, "--offset", 5), ("offsets", "--time", 1)])
def test_who_reads_with_the_wrong_keys_or_none_is_told_which_key_and_what_to_do(
    run: Run, hidden: str, tmp_path: Path, command: tuple[object, ...]
) -> None:
    wrong = write_keys(tmp_path / "wrong", "k1", k1=bytes(32))
    other = write_keys(tmp_path / "other", "k2", k2=bytes(32))
    question = (*command, "--archive", hidden, "--topic", "g-txn")
    for args, message in (
        ((), "key 'k1' is needed: no keys are given; give keys that have it"),
        (("--keys", other), f"key 'k1' is needed: key file '{other}' has k2; give keys that have it"),
        (("--keys", wrong), f"key 'k1' of key file '{wrong}' does not unwrap the data key; give the key that had this id"),
    ):
        result = run(*question, *args)
        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr
        assert result.stderr.startswith("tiering: g-txn/")


def test_what_lies_where_is_told_without_keys(rows: Rows, hidden: str) -> None:
    assert [row["topic"] for row in rows("describe", "--archive", hidden)] == ["g-codec-none", "g-txn"]


def test_a_second_offload_with_other_transforms_copies_nothing_again(rows: Rows, logs: Path, hidden: str) -> None:
    actions = {row["action"] for row in rows("offload", "--log-dir", logs, "--archive", hidden, "--compress", "zstd")}
    assert actions == {"archived", "keep"}


def test_a_damaged_object_is_corruption_by_chunk(run: Run, hidden: str, keys: Path) -> None:
    manifest = archive.manifests(open_store(hidden), "g-txn")[0]
    key = manifest.path.segment(max(manifest.entries, key=lambda e: e.log_size).log_name)
    file = Path(hidden) / key
    body = bytearray(file.read_bytes())
    body[70_000] ^= 1
    file.chmod(0o600)
    file.write_bytes(body)
    result = run("fetch", "--archive", hidden, "--keys", keys, "--topic", "g-txn", "--partition", 0, "--offset", 0)
    assert result.exit_code == 6
    assert f"{key} at byte 65552: chunk 1 of " in result.stderr


def test_python_programs_read_it_with_the_keys_and_their_cache_holds_nothing_in_the_clear(
    hidden: str, keys: Path, records: Records, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    for _ in range(2):
        with open_reader(archive=hidden, keys=str(keys), cache_dir=str(cache)) as reader:
            found = reader.read("g-txn").read_all()
    assert found.num_rows > 2_000
    assert [file for file in cache.rglob("*") if file.is_file() and file.suffix != ".seen"] == []
    with open_reader(archive=hidden) as reader, pytest.raises(NoKey):
        reader.read("g-txn").read_all()


@pytest.mark.parametrize("given", [(), ("--keys", "{wrong}"), ("--keys", "{other}")])
def test_without_its_keys_nothing_is_restored_and_a_line_a_partition_says_why(
    run: Run, rows: Rows, hidden: str, keys: Path, tmp_path: Path, given: tuple[str, ...]
) -> None:
    wrong, other = (write_keys(tmp_path / name, key, **{key: bytes(32)}) for name, key in (("wrong", "k1"), ("other", "k2")))
    question = ("restore", "--archive", hidden, "--to", tmp_path / "to")
    result = run(*question, *(arg.format(wrong=wrong, other=other) for arg in given))
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if "key 'k1'" in line]
    assert [line.split("/")[0] for line in told] == ["tiering: g-codec-none", "tiering: g-txn"]
    if given:  # keys that did not sign the manifests are told before anything is begun
        assert [folder for folder in (tmp_path / "to").iterdir() if folder.is_dir()] == []
    else:
        assert "run the same command again" in result.stderr.splitlines()[-1]
        assert [folder.name for folder in (tmp_path / "to").iterdir() if folder.is_dir()] == ["tiering-restore-unfinished"]
    assert {row["action"] for row in rows(*question, "--keys", keys)} == {"whole", "complete"}
    assert {folder.name for folder in (tmp_path / "to").iterdir() if folder.is_dir()} == {"g-codec-none-0", "g-txn-0"}


def test_a_restore_by_time_reads_encrypted_indexes_too(rows: Rows, hidden: str, keys: Path, tmp_path: Path) -> None:
    limit = ("--topic", "g-codec-none", "--until-timestamp", live("g-codec-none-0")["offset_for_timestamp"][60][0])
    *_, complete = rows("restore", "--archive", hidden, "--keys", keys, "--to", tmp_path / "to", *limit)
    assert 0 < complete["end_offset"] <= live("g-codec-none-0")["offset_for_timestamp"][60][1]


def test_a_scrub_without_keys_still_finds_what_is_damaged(run: Run, hidden: str, tmp_path: Path) -> None:
    manifest = archive.manifests(open_store(hidden), "g-txn")[0]
    key = manifest.path.segment(manifest.entries[0].log_name)
    body = bytearray((Path(hidden) / key).read_bytes())
    body[100] ^= 1
    (Path(hidden) / key).write_bytes(body)
    result = run("scrub", "--archive", hidden, "--deep", "--keys", write_keys(tmp_path / "other", "k2", k2=bytes(32)))
    assert result.exit_code == 6
    assert [line.split()[:2] for line in result.stdout.splitlines() if line.startswith("wrong_crc")] == [["wrong_crc", key]]
    segments = len(manifest.entries) + len(archive.manifests(open_store(hidden), "g-codec-none")[0].entries)
    assert f"1 anomaly; {segments - 1} segments unreadable" in result.stderr
