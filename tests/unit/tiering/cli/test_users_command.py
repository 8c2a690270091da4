"""`tiering users`: what it keeps of passwords."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tiering.cli import main
from tiering.endpoint.authentication.scram import MECHANISMS
from tiering.endpoint.authentication.users import read_users

Run = Callable[..., Result]


def set_password(path: Path, name: str, password: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["users", "set", name, "--users", str(path), *words], input=f"{password}\n")


def test_a_password_is_kept_hashed_for_this_user_alone_to_read(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    assert set_password(path, "alice", "in wonderland").stderr == "tiering: user alice is added\n"
    assert set_password(path, "bob", "the builder", "--mechanism", "SCRAM-SHA-512", "--iterations", "4096").exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["users.json"]
    users = read_users(path.read_bytes())
    for name, mechanism in MECHANISMS.items():
        assert users["alice"][name].has_password(mechanism, "in wonderland")
        assert users["alice"][name].iterations == 8192
    assert list(users["bob"]) == ["SCRAM-SHA-512"]
    assert b"wonderland" not in path.read_bytes()


def test_a_changed_password_replaces_the_former_with_another_salt(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    set_password(path, "alice", "first")
    first = read_users(path.read_bytes())["alice"]["SCRAM-SHA-256"]
    assert set_password(path, "alice", "first").stderr == "tiering: user alice is changed\n"
    assert read_users(path.read_bytes())["alice"]["SCRAM-SHA-256"].salt != first.salt


def test_users_are_listed_and_deleted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    set_password(path, "alice", "in wonderland", "--mechanism", "SCRAM-SHA-256")
    set_password(path, "bob", "the builder", "--mechanism", "SCRAM-SHA-512")
    listed = run("users", "list", "--users", path, "--output", "json")
    assert json.loads(listed.stdout) == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "bob", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    assert run("users", "delete", "alice", "--users", path).exit_code == 0
    assert list(read_users(path.read_bytes())) == ["bob"]
    assert "has no user alice" in run("users", "delete", "alice", "--users", path).stderr


@pytest.mark.parametrize(("name", "password"), [("", "x"), ("größe", "x"), ("a\0b", "x"), ("alice", "")])
def test_a_name_that_no_client_can_send_and_an_empty_password_are_refused(tmp_path: Path, name: str, password: str) -> None:
    assert set_password(tmp_path / "users.json", name, password).exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 1}',
        '{"format": 1, "users": {"a": {"SCRAM-SHA-256": "salt"}}}',
        '{"format": 1, "users": {"a": {"MD5": "salt=,stored_key=,server_key=,iterations=4096"}}}',
        '{"format": 1, "users": {"a": {"SCRAM-SHA-256": "salt=,stored_key=,server_key=,iterations=1"}}}',
        '{"format": 2, "users": {}}',
    ],
)
def test_what_is_no_file_of_users_is_refused_and_left_alone(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(text)
    for words in (("list",), ("delete", "alice")):
        assert run("users", *words, "--users", path).exit_code
    assert set_password(path, "alice", "in wonderland").exit_code
    assert path.read_text() == text
