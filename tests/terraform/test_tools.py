"""What Terraform and the linters say of the modules, where they are at hand.

Without a provider Terraform still checks variables and works out policies: both stand in files of their own, which are tried
beside no other. A folder of providers (`terraform providers mirror`) is found by TERRAFORM_PLUGIN_DIR.
"""

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from modules import ACCOUNT, BUCKET_KEY, DATA_KEY, EXAMPLES, MODULES, ROOT, folder, rendered

ALL = [*MODULES, *EXAMPLES]
NO_TERRAFORM = "neither terraform nor tofu is here"


@cache
def terraform() -> str:
    """The program, OpenTofu's or HashiCorp's."""
    return shutil.which("tofu") or shutil.which("terraform") or ""


def run(*args: object, cwd: Path, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("TF_")} | {"CHECKPOINT_DISABLE": "1"}
    return subprocess.run([str(a) for a in args], cwd=cwd, input=given, capture_output=True, text=True, env=quiet, timeout=240)


def ask(*args: object, cwd: Path, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    """Terraform's answer."""
    return run(terraform(), *args, cwd=cwd, given=given)


needs_terraform = pytest.mark.skipif(not terraform(), reason=NO_TERRAFORM)


@pytest.fixture(params=MODULES)
def module(request: pytest.FixtureRequest) -> str:
    """Each module in turn."""
    name: str = request.param
    return name


def alone(name: str, tmp_path: Path, *files: str) -> Path:
    """A folder with these files of a module and its policies, none of which needs a provider."""
    for file in files:
        shutil.copy(folder(name) / file, tmp_path)
    if (folder(name) / "policies").is_dir():
        shutil.copytree(folder(name) / "policies", tmp_path / "policies")
    return tmp_path


@needs_terraform
def test_files_are_formatted() -> None:
    result = ask("fmt", "-check", "-diff", "-recursive", cwd=ROOT)
    assert (result.returncode, result.stdout) == (0, "")


RIGHT: dict[str, dict[str, Any]] = {
    "bucket": {"name": "my-archive"},
    "iam": {
        "bucket_arn": "arn:aws:s3:::my-archive",
        "bucket_key_arn": BUCKET_KEY,
        "trusted": {"archiver": {"services": ["ec2.amazonaws.com"]}},
    },
    "monitoring": {"bucket": "my-archive"},
}
METRIC = {"metric_name": "Lag", "description": "Lags.", "threshold": 1}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("bucket", {"name": "My_Archive"}, "small letters"),
    ("bucket", {"name": "a..b"}, "small letters"),
    ("bucket", {"prefix": "/kafka"}, "single slashes"),
    ("bucket", {"prefix": "kafka/"}, "single slashes"),
    ("bucket", {"prefix": "kafka//a"}, "single slashes"),
    ("bucket", {"prefix": "kafka/*"}, "single slashes"),
    ("bucket", {"kms_key": {"arn": f"arn:aws:kms:eu-central-1:{ACCOUNT}:alias/archive"}}, "ARN of a key"),
    ("bucket", {"noncurrent_days": 0}, "1 or more"),
    ("bucket", {"abort_uploads_days": 1.5}, "whole days"),
    ("bucket", {"transitions": [{"days": 30, "storage_class": "GLACIER"}]}, "read at once"),
    ("bucket", {"transitions": [{"days": 30, "storage_class": "DEEP_ARCHIVE"}]}, "read at once"),
    ("bucket", {"transitions": [{"days": 7, "storage_class": "STANDARD_IA"}]}, "30 days"),
    ("bucket", {"transitions": [{"days": 0.5, "storage_class": "GLACIER_IR"}]}, "whole days"),
    ("bucket", {"transition_bytes_min": 131072}, "16777216"),
    ("iam", {"name": "kafka archive"}, "letters"),
    ("iam", {"bucket_arn": "my-archive"}, "bucket's ARN"),
    ("iam", {"bucket_arn": "arn:aws:s3:::my-archive/*"}, "bucket's ARN"),
    ("iam", {"prefix": "kafka/"}, "single slashes"),
    ("iam", {"bucket_key_arn": "alias/archive"}, "ARN of a key"),
    ("iam", {"data_key_arns": ["*"]}, "ARNs of keys"),
    ("iam", {"trusted": {"deleter": {"services": ["ec2.amazonaws.com"]}}}, "archiver, sweeper and reader"),
    ("iam", {"trusted": {"reader": {}}}, "at least one"),
    ("iam", {"trusted": {"reader": {"aws": ["*"]}}}, "everybody"),
    ("iam", {"instance_profiles": ["writer"]}, "archiver, sweeper and reader"),
    ("iam", {"max_session_seconds": 60}, "3600"),
    ("monitoring", {"name": "a b"}, "letters"),
    ("monitoring", {"prefix": "kafka/"}, "no slashes"),
    ("monitoring", {"alarm_actions": ["me"]}, "ARNs"),
    ("monitoring", {"server_errors_percent_max": 100}, "percentage"),
    ("monitoring", {"client_errors_percent_max": -1}, "percentage"),
    ("monitoring", {"namespace": "AWS/S3"}, "Amazon's"),
    ("monitoring", {"metrics": {"lag": METRIC | {"statistic": "p99"}}}, "Average"),
    ("monitoring", {"metrics": {"lag": METRIC | {"period_seconds": 90}}}, "whole minutes"),
    ("monitoring", {"metrics": {"lag": METRIC | {"period_seconds": 3600, "periods": 25}}}, "86400"),
]


def planned(name: str, values: dict[str, Any], tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    """What a plan says of these values, of the module's variables alone."""
    place = alone(name, tmp_path, "variables.tf")
    (place / "given.auto.tfvars.json").write_text(json.dumps(values))
    return ask("plan", "-no-color", "-input=false", "-lock=false", cwd=place)


@needs_terraform
def test_the_values_that_have_to_be_given_are_enough(module: str, tmp_path: Path) -> None:
    result = planned(module, RIGHT[module], tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


@needs_terraform
@pytest.mark.parametrize(("name", "values", "word"), WRONG)
def test_wrong_values_are_refused_before_anything_is_made(name: str, values: dict[str, Any], word: str, tmp_path: Path) -> None:
    result = planned(name, RIGHT[name] | values, tmp_path)
    assert result.returncode == 1
    assert "Invalid value for variable" in result.stderr
    assert word in " ".join(result.stderr.replace("│", " ").split())


@needs_terraform
@pytest.mark.parametrize("prefix", ["", "kafka/production"])
def test_terraform_renders_policies_as_these_tests_do(prefix: str, tmp_path: Path) -> None:
    place = alone("iam", tmp_path, "variables.tf", "policies.tf")
    values = {
        "bucket_arn": "arn:aws:s3:::my-archive",
        "prefix": prefix,
        "bucket_key_arn": BUCKET_KEY,
        "data_key_arns": [DATA_KEY],
        "readers_pin": True,
        "trusted": {"archiver": {"services": ["ec2.amazonaws.com"]}, "reader": {"aws": [f"arn:aws:iam::{ACCOUNT}:role/spark"]}},
    }
    (place / "given.auto.tfvars.json").write_text(json.dumps(values))
    wanted = "{policies = local.policies, keeps = local.archiver_keeps, trust = local.trust, attached = keys(local.attachments)}"
    result = ask("console", cwd=place, given=f"jsonencode({wanted})\n")
    assert result.returncode == 0, result.stderr
    found = json.loads(json.loads(result.stdout))
    for name, text in (found["policies"] | {"archiver_keeps": found["keeps"]}).items():
        assert json.loads(text) == rendered("iam", name, "my-archive", prefix)
    assert found["policies"].keys() == {"archiver", "sweeper", "reader", "pins", "wrap", "unwrap"}
    trusted = {role: json.loads(text)["Statement"][0]["Principal"] for role, text in found["trust"].items()}
    assert trusted == {"archiver": {"Service": ["ec2.amazonaws.com"]}, "reader": {"AWS": [f"arn:aws:iam::{ACCOUNT}:role/spark"]}}
    assert set(found["attached"]) == {
        *(f"archiver-{policy}" for policy in ("archiver", "wrap", "unwrap")),
        *(f"reader-{policy}" for policy in ("reader", "pins", "unwrap")),
    }


@needs_terraform
def test_what_is_not_asked_for_is_not_made(tmp_path: Path) -> None:
    place = alone("iam", tmp_path, "variables.tf", "policies.tf")
    (place / "given.auto.tfvars.json").write_text(json.dumps(RIGHT["iam"]))
    result = ask("console", cwd=place, given="jsonencode([keys(local.policies), keys(local.attachments), keys(local.trust)])\n")
    assert json.loads(json.loads(result.stdout)) == [["archiver", "reader", "sweeper"], ["archiver-archiver"], ["archiver"]]


@needs_terraform
@pytest.mark.parametrize("name", ALL)
def test_terraform_finds_every_name_and_argument(name: str, tmp_path: Path) -> None:
    providers = os.environ.get("TERRAFORM_PLUGIN_DIR")
    if not providers:
        pytest.skip("no AWS provider is here; TERRAFORM_PLUGIN_DIR says where one is")
    shutil.copytree(ROOT, tmp_path / "terraform", ignore=shutil.ignore_patterns(".terraform*"))
    place = tmp_path / "terraform" / folder(name).relative_to(ROOT)
    made = ask("init", "-backend=false", "-input=false", "-no-color", f"-plugin-dir={providers}", cwd=place)
    assert made.returncode == 0, made.stderr
    result = ask("validate", "-no-color", cwd=place)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(not shutil.which("tflint"), reason="tflint is not here")
def test_tflint_finds_nothing() -> None:
    result = run("tflint", "--recursive", "--no-color", cwd=ROOT)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.skipif(not shutil.which("checkov"), reason="checkov is not here")
def test_checkov_finds_nothing() -> None:
    result = run("checkov", "-d", ".", "--framework", "terraform", "--compact", "--quiet", "--skip-download", cwd=ROOT)
    assert result.returncode == 0, result.stdout
    assert "Failed checks: 0" in result.stdout
