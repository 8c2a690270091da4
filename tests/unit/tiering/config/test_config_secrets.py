"""Secrets: refused in a configuration with what to do instead, and in no output, whatever it is that went wrong."""

import base64
from pathlib import Path

import pytest
from config_files import problems, written
from hypothesis import given
from hypothesis import strategies as st

from tiering.config.assignment import shown
from tiering.config.secrets import holds_a_secret, masked

AWS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKE1"
SECRETS = {
    "a password in an address": ("archive.url = 's3://me:{}@bucket/x'", "hunter2"),
    "a user in an address": ("archive.url = 'https://{}@host/x'", "hunter2"),
    "a token in an address": ("archive.url = 'abfs://c@account/x?sv=1&sig={}'", "abc%2Fdef"),
    "a key ring in place of its address": ("archive.keys = '{{\"current\": \"a\", \"keys\": {{\"a\": \"{}\"}}}}'", "c2VjcmV0"),
    "a key in place of its address": ("archive.keys = '{}'", base64.b64encode(bytes(range(200, 232))).decode()),
    "an AWS key": ("archive.cache.dir = '{}'", AWS_KEY),
    "an AWS key id": ("topics.include = ['{}']", "AKIA" + "IOSFODNN7EXAMPLE"),
    "a PEM": ("archive.keys = '''{}\nx'''", "-----BEGIN PRIVATE KEY-----"),
    "a setting that is called a password": ("ssl.keystore.password = '{}'", "hunter2"),
    "a setting that is called a key": ("aws.secret.access.key = '{}'", "hunter2"),
    "a setting of a topic that is called a token": ("topic.a.session-token = '{}'", "hunter2"),
}  # fmt: skip


@pytest.mark.parametrize("case", SECRETS)
def test_a_secret_in_a_file_is_refused_with_what_to_do_instead_and_not_repeated(tmp_path: Path, case: str) -> None:
    line, secret = SECRETS[case]
    [problem] = problems(written(tmp_path, f"log.dirs = '/a'\n{line.format(secret)}\n"))
    assert problem.startswith("tiering.toml:2: ")
    assert "use the SDK's own variables" in problem
    assert secret not in problem


@pytest.mark.parametrize(
    ("variable", "secret"),
    [
        ("TIERING_ARCHIVE_PASSWORD", "hunter2"),
        ("TIERING_ARCHIVE_URL", "s3://me:hunter2@bucket"),
        ("TIERING_KEYS", '{"keys": "hunter2"}'),
        ("TIERING_LOG_DIR_", "hunter2"),
        ("TIERING_RETENTION_MS", AWS_KEY),
    ],
)
def test_a_secret_in_a_variable_of_ours_is_not_repeated_either(variable: str, secret: str) -> None:
    [problem] = problems(None, {variable: secret})
    assert problem.startswith(f"{variable}: ")
    assert "hunter2" not in problem
    assert AWS_KEY not in problem


@pytest.mark.parametrize("place", ["{} = 1", "topic.'{}'.retention.ms = 1", "retention.ms = '{}'", "{}", "log.dirs = ['{}', 1]"])
def test_a_secret_that_strayed_into_a_line_is_masked(tmp_path: Path, place: str) -> None:
    for name in ("t.toml", "t.properties"):
        found = problems(written(tmp_path, place.format(f"https://me:hunter2{AWS_KEY}@h"), name))
        assert found
        assert "hunter2" not in "".join(found)


@pytest.mark.parametrize(
    "plain",
    [
        "s3://bucket/kafka", "/var/lib/kafka/data", "abfs://container@account/prefix", "aws-kms://alias/archive", "env://RING",
        "aws-kms://arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab", "orders*", "file:///keys.json",
        "/Users/Somebody/Data/Kafka2026/LogsOfTheBroker1/Data", "gs://bucket/Prefix2026/With/Many/Parts/And/Digits1234567890",
        "s3://arn:aws:s3:us-west-2:123456789012:accesspoint/Test",
    ],
)  # fmt: skip
def test_what_is_no_secret_passes(plain: str) -> None:
    assert not holds_a_secret(plain)
    assert shown(plain) == plain


@given(st.from_regex(r"[A-Za-z0-9]{1,12}", fullmatch=True), st.from_regex(r"[A-Za-z0-9!$%+=.-]{1,30}", fullmatch=True))
def test_no_password_of_an_address_survives_masking(user: str, password: str) -> None:
    assert f"{user}:{password}@" not in masked(f"s3://{user}:{password}@bucket/x and https://{user}:{password}@h")
    assert masked(f"s3://{user}:{password}@b") == "s3://***@b"


@given(st.binary(min_size=32, max_size=32))
def test_no_key_of_32_bytes_survives_masking(key: bytes) -> None:
    text = base64.b64encode(key).decode()
    assert holds_a_secret(text)
    assert text not in shown(f"archive.cache.dir={text}: no")
