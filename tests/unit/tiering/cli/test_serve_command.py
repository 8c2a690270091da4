"""`tiering serve`: what it refuses before it listens, and that it listens, answers and stops."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from asked_endpoint import response_of
from certificates import Authority
from click.testing import Result

from tiering.endpoint.protocol.api_keys import METADATA
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request

Run = Callable[..., Result]


def test_an_address_that_others_reach_needs_the_word_insecure(run: Run, tmp_path: Path) -> None:
    result = run("serve", "--log-dir", tmp_path, "--listen", "0.0.0.0:0")
    assert result.exit_code == 2
    assert "0.0.0.0 can be reached from other hosts" in result.stderr
    assert "--insecure allows it" in result.stderr


def test_passwords_are_not_sent_as_they_are_to_an_address_that_others_reach(run: Run, tmp_path: Path) -> None:
    words = ("serve", "--log-dir", tmp_path, "--listen", "SASL_PLAINTEXT://0.0.0.0:0", "--users", tmp_path / "users.json")
    result = run(*words, "-c", "sasl.enabled.mechanisms=PLAIN")
    assert (result.exit_code, "PLAIN sends passwords as they are" in result.stderr) == (2, True)
    assert "say with --advertise" in run(*words).stderr


def test_tokens_need_the_keys_of_their_provider_and_no_users(run: Run, tmp_path: Path) -> None:
    words = ("serve", "--log-dir", tmp_path, "-c", "sasl.enabled.mechanisms=OAUTHBEARER")
    open_to_all = run(*words, "--listen", "SASL_PLAINTEXT://0.0.0.0:0")
    assert (open_to_all.exit_code, "OAUTHBEARER sends tokens as they are" in open_to_all.stderr) == (2, True)
    words += ("--listen", "SASL_PLAINTEXT://127.0.0.1:0")
    assert "OAUTHBEARER needs the identity provider's keys" in run(*words).stderr
    assert "give both, or neither" in run(*words, "--users", tmp_path / "users.json").stderr
    (tmp_path / "keys.json").write_text("{}")
    key = "sasl.oauthbearer.jwks.endpoint.url"
    assert "not a set of JSON web keys" in run(*words, "-c", f"{key}=file://{tmp_path}/keys.json").stderr
    assert "keys are taken from an https:// address" in run(*words, "-c", f"{key}=http://id.example/keys").stderr


def test_a_listener_with_sasl_needs_users_and_users_need_such_a_listener(run: Run, tmp_path: Path) -> None:
    for words in (("--listen", "SASL_PLAINTEXT://127.0.0.1:0"), ("--users", tmp_path / "users.json")):
        result = run("serve", "--log-dir", tmp_path, *words)
        assert (result.exit_code, "give both, or neither" in result.stderr) == (1, True)
    result = run("serve", "--log-dir", tmp_path, "--listen", "SASL_PLAINTEXT://127.0.0.1:0", "--users", tmp_path / "users.json")
    assert (bool(result.exit_code), "users.json" in result.stderr) == (True, True)
    assert "'HTTP' is none of PLAINTEXT" in run("serve", "--log-dir", tmp_path, "--listen", "http://127.0.0.1:0").stderr


def test_tls_needs_a_certificate_and_mutual_tls_an_authority(run: Run, tmp_path: Path) -> None:
    own = Authority(tmp_path).signed("CN=localhost", "server.pem")
    words = ("serve", "--log-dir", tmp_path, "--listen", "SSL://0.0.0.0:0", "--advertise", "kafka.example:9095")
    assert "TLS needs a certificate: -c ssl.keystore.location=FILE" in run(*words).stderr
    key = ("-c", f"ssl.keystore.location={own}")
    assert "needs -c ssl.truststore.location=FILE" in run(*words, *key, "-c", "ssl.client.auth=required").stderr
    assert "expected PEM" in run(*words, *key, "-c", f"ssl.keystore.key.location={tmp_path}/authority.pem").stderr
    assert "is neither DEFAULT nor RULE" in run(*words, *key, "-c", "ssl.principal.mapping.rules=CN").stderr


def test_a_file_of_quotas_that_is_none_is_refused(run: Run, broker: Path, tmp_path: Path) -> None:
    (tmp_path / "quotas.json").write_text('{"format": 1, "quotas": [{"user": "alice"}]}')
    result = run("serve", "--log-dir", broker, "--listen", "127.0.0.1:0", "--quotas", tmp_path / "quotas.json")
    assert (bool(result.exit_code), "quotas.json" in result.stderr, "not a file of quotas" in result.stderr) == (True, True, True)


def test_a_file_of_acls_that_is_none_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "acls.json").write_text('{"format": 1, "acls": [{"resourceType": "TOPIC"}]}')
    result = run("serve", "--log-dir", tmp_path, "--listen", "127.0.0.1:0", "--acls", tmp_path / "acls.json")
    assert (bool(result.exit_code), "acls.json" in result.stderr, "not a file of ACLs" in result.stderr) == (True, True, True)


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        ("connection.max.reauth.ms=1", "did you mean connections.max.reauth.ms?"),
        ("connections.max.reauth.ms", "is no setting of the endpoint"),
        ("connections.max.reauth.ms=-1", "connections.max.reauth.ms: expected an integer from 0"),
        ("super.users=admin", "expected one or several principals such as User:admin"),
        ("allow.everyone.if.no.acl.found=yes", "expected one of true, false"),
        ("ssl.client.auth=maybe", "expected one of none, requested, required"),
        ("ssl.keystore.location=-----BEGIN PRIVATE KEY-----", "expected the path of a file"),
        ("ssl.keystore.type=JKS", "expected one of PEM"),
        ("sasl.enabled.mechanisms=GSSAPI", "sasl.enabled.mechanisms: expected one or several of PLAIN, SCRAM-SHA-256"),
    ],
)
def test_a_setting_that_is_none_is_refused(run: Run, tmp_path: Path, assignment: str, problem: str) -> None:
    result = run("serve", "--log-dir", tmp_path, "-c", assignment)
    assert (result.exit_code, problem in result.stderr) == (1, True), result.stderr


def test_an_address_that_stands_for_all_is_not_what_clients_are_told(run: Run, tmp_path: Path) -> None:
    for address in ("0.0.0.0:0", "[::]:0"):
        result = run("serve", "--log-dir", tmp_path, "--listen", address, "--insecure")
        assert result.exit_code == 2
        assert "say with --advertise which address they are to use" in result.stderr


@pytest.mark.parametrize("address", ["9095", ":9095", "localhost:", "localhost:x", "localhost:70000"])
def test_an_address_has_a_host_and_a_port(run: Run, tmp_path: Path, address: str) -> None:
    result = run("serve", "--log-dir", tmp_path, "--listen", address)
    assert result.exit_code == 2
    assert f"{address!r} is not HOST:PORT" in result.stderr


@pytest.mark.parametrize(
    ("brokers", "problem"),
    [
        (["2"], "'2' is not ID@HOST:PORT"),
        (["x@localhost:1"], "'x@localhost:1' is not ID@HOST:PORT"),
        (["2@localhost"], "'2@localhost' is not ID@HOST:PORT"),
        (["2@localhost:1", "2@localhost:2"], "two brokers have the same id"),
    ],
)
def test_a_list_of_brokers_that_is_none_is_refused_before_anything_is_opened(
    run: Run, tmp_path: Path, brokers: list[str], problem: str
) -> None:
    result = run("serve", "--archive", tmp_path / "nowhere", *(word for one in brokers for word in ("--broker", one)))
    assert (result.exit_code, problem in result.stderr) == (2, True), result.stderr


def test_something_is_to_be_served(run: Run) -> None:
    assert "give --archive, --log-dir or both" in run("serve").stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--log-dir", "broker"), "give --own-log-dir or --log-dir, not both"),
        (("--offsets-dir", "offsets"), "leave --offsets-dir out"),
        (("--archive", "archive", "--register"), "leave --register and --broker out"),
        (("--broker", "2@localhost:1"), "leave --register and --broker out"),
        (("-c", "log.segment.byte=1"), "-c:1: log.segment.byte: no such setting; did you mean log.segment.bytes?"),
        (("-c", "log.dirs=other"), "leave it out of -c"),
        (("--archive", "archive", "-c", "archive.url=other"), "archive.url is given besides, as archive: leave it out of -c"),
        (("-c", "log.segment.bytes=1"), "expected 1048576 to"),
        (("-c", "max.connections=-1"), "max.connections=-1: expected an integer from 0"),
    ],
)
def test_what_does_not_go_with_a_log_directory_of_its_own_is_refused(
    run: Run, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    result = run("serve", "--own-log-dir", tmp_path / "own", *words)
    assert (result.exit_code, problem in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "own").exists()


def test_the_unit_of_a_log_directory_of_its_own_may_write_there(run: Run, tmp_path: Path) -> None:
    own, archive = tmp_path / "own", tmp_path / "archive"
    words = ("serve", "--own-log-dir", own, "--archive", archive, "-c", "num.io.threads=2", "--print-unit")
    unit = run(*words).stdout
    assert f"serve --archive {archive} --own-log-dir {own} --set num.io.threads=2" in unit
    assert f"ReadWritePaths={own}\n" in unit
    assert "TimeoutStopSec=90" in unit
    assert "StateDirectory=kafka-tiering" in unit, "what the agent has seen outlives a restart"


def test_a_configuration_may_say_that_its_log_directories_are_its_own(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f'"own.log.dirs" = true\n"log.dirs" = ["{tmp_path}/a", "{tmp_path}/b"]\n')
    assert "leave --offsets-dir out" in run("serve", "--config", file, "--offsets-dir", tmp_path).stderr
    file.write_text(f'"log.dirs" = ["{tmp_path}/a", "{tmp_path}/b"]\n')
    assert "choose it with --log-dir" in run("serve", "--config", file).stderr


def test_a_port_that_is_taken_is_told(run: Run, broker: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("serve", "--log-dir", broker, "--listen", address)
    assert result.exit_code == 1
    assert f"cannot listen on {address}" in result.stderr


def test_settings_that_make_no_sense_are_refused_before_it_listens(run: Run, tmp_path: Path) -> None:
    for setting, reason in {
        "fetch.max.byte=2000": "did you mean fetch.max.bytes?",
        "fetch.max.bytes=1000": "fetch.max.bytes: expected an integer from 1024 to 2147483647",
    }.items():
        result = run("serve", "--log-dir", tmp_path, "-c", setting)
        assert result.exit_code == 1
        assert reason in result.stderr
    file = tmp_path / "tiering.toml"
    file.write_text('log.dirs = "/nowhere"\nnode.id = -1\n')
    result = run("serve", "--config", file)
    assert result.exit_code == 2
    assert "tiering.toml:2: node.id=-1: expected an integer from 0 to" in result.stderr


def test_the_unit_runs_the_same_command(run: Run, broker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tiering.toml"
    file.write_text(f'log.dirs = "{broker}"\n')
    typed = ("--config", "tiering.toml", "--archive", "s3://bucket/kafka", "--offsets-dir", "offsets", "--insecure")
    typed += ("--quotas", "quotas.json")
    result = run(
        "serve",
        *typed,
        "-c",
        "max.connections=5",
        "-c",
        "node.id=7",
        "--listen",
        "0.0.0.0:9",
        "--advertise",
        "h:9",
        "--print-unit",
    )
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    [start] = [line for line in lines if line.startswith("ExecStart=")]
    program, *words = start.removeprefix("ExecStart=").split()
    assert program == sys.executable
    assert sorted(words) == sorted(
        f"-m tiering serve --config {file} --archive s3://bucket/kafka --offsets-dir {tmp_path}/offsets --insecure "
        f"--quotas {tmp_path}/quotas.json "
        "--set max.connections=5 --set node.id=7 --listen 0.0.0.0:9 --advertise h:9".split()
    )
    assert f"ReadWritePaths={tmp_path}/offsets" in lines
    assert "$" not in result.stdout
    assert "TimeoutStopSec=20" in lines


def test_the_unit_may_write_what_is_changed_over_the_protocol(run: Run, tmp_path: Path) -> None:
    words = ("serve", "--archive", "s3://bucket/kafka", "--print-unit", "--quotas", tmp_path / "q" / "quotas.json")
    assert not [line for line in run(*words).stdout.splitlines() if line.startswith("ReadWritePaths")]
    lines = run(*words, "--acls", tmp_path / "a" / "acls.json").stdout.splitlines()
    assert {f"ReadWritePaths={tmp_path}/a", f"ReadWritePaths={tmp_path}/q"} <= set(lines)


def test_a_unit_is_printed_for_options_that_make_sense_only(run: Run) -> None:
    assert "give --archive, --log-dir or both" in run("serve", "--print-unit").stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(run: Run, broker: Path, tmp_path: Path) -> None:
    unit = tmp_path / "kafka-tiering-endpoint.service"
    unit.write_text(run("serve", "--log-dir", broker, "--print-unit").stdout)
    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}
    )
    assert [line for line in verified.stderr.splitlines() if unit.name in line and "Documentation" not in line] == []


@pytest.mark.slow
def test_it_serves_what_its_configuration_says(broker: Path, tmp_path: Path) -> None:
    file = tmp_path / "tiering.toml"
    file.write_text(f'log.dirs = "{broker}"\n"max.connections" = 1\nnode.id = 7\n')
    command = [sys.executable, "-m", "tiering", "serve", "--config", str(file), "--listen", "127.0.0.1:0", "-c", "node.id=8"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        port = int(process.stderr.readline().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client, socket.create_connection(("127.0.0.1", port)) as refused:
            assert refused.recv(1) == b""
            client.sendall(write_request(RequestHeader(METADATA, 2, 99, None), MetadataRequest(topics=())))
            answer = response_of(METADATA, 2, client.recv(1 << 16))
        assert answer.brokers[0].node_id == 8
        assert answer.cluster_id not in ("", "kafka-tiering")  # that of the log directory
        process.send_signal(signal.SIGTERM)
        assert "as many as max.connections allows" in process.stderr.read()
    assert process.returncode == 0


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_stop(broker: Path, archive: str) -> None:
    command = [sys.executable, "-m", "tiering", "serve", "--log-dir", str(broker), "--archive", archive]
    with subprocess.Popen([*command, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.readline()
        assert said.startswith("tiering: 15 topics at 127.0.0.1:")
        port = int(said.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(write_request(RequestHeader(METADATA, 1, 99, None), MetadataRequest(topics=None)))
            found = client.recv(1 << 16)
            while len(found) < 4 + int.from_bytes(found[:4], "big"):
                found += client.recv(1 << 16)
            answer = response_of(METADATA, 1, found)
            assert (answer.brokers[0].host, answer.brokers[0].port) == ("127.0.0.1", port)
            process.send_signal(signal.SIGTERM)
            assert client.recv(1) == b""
        assert process.stderr.read() == "tiering: stopped\n"
    assert process.returncode == 0


def test_a_directory_with_logs_is_not_one_for_offsets(run: Run, broker: Path) -> None:
    result = run("serve", "--log-dir", broker, "--offsets-dir", broker)
    assert result.exit_code == 1
    assert "choose a directory for committed offsets alone" in result.stderr
