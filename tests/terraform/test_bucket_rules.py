"""The bucket as Terraform makes it: what `tiering doctor` says of its rules, and that manifests are read at once."""

from typing import Any

import pytest
from click.testing import CliRunner
from made_manifests import entry, manifest, paged
from modules import labelled, parsed, resource

from local_log.formats.checkpoints import EpochEntry
from remote.manifest import codec
from remote.manifest.model import LIMITS, Deleting, PageRef
from remote.manifest.segment_entry import EncodingInfo, SegmentEntry
from tiering.cli import main

CLASSES = ("STANDARD_IA", "GLACIER_IR")


def default(name: str) -> Any:
    return labelled("bucket", "variable")[name]["default"]


def number(value: Any) -> int:
    """What a number in a rule is by default: itself, or that of the variable that it names."""
    return value if isinstance(value, int) else int(default(value.removeprefix("${var.").removesuffix("}")))


def lifecycle(classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """The bucket's rules as S3 takes them, with a transition to each of the classes."""
    found = resource("bucket", "aws_s3_bucket_lifecycle_configuration")
    [moving] = [block["rule"]["content"][0] for block in found["dynamic"]]
    rules: list[dict[str, Any]] = []
    for rule in found["rule"] + ([moving] if classes else []):
        [chosen] = rule["filter"]
        made: dict[str, Any] = {"ID": rule["id"], "Status": rule["status"], "Filter": {"Prefix": ""}}
        for name, value in chosen.items():
            made["Filter"] = {{"object_size_greater_than": "ObjectSizeGreaterThan"}[name]: number(value)}
        for name, [what] in ((n, v) for n, v in rule.items() if n not in ("id", "status", "filter", "dynamic")):
            made |= {
                "abort_incomplete_multipart_upload": lambda w: {
                    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": number(w["days_after_initiation"])}
                },
                "noncurrent_version_expiration": lambda w: {
                    "NoncurrentVersionExpiration": {"NoncurrentDays": number(w["noncurrent_days"])}
                },
                "expiration": lambda w: {"Expiration": {"ExpiredObjectDeleteMarker": w["expired_object_delete_marker"]}},
            }[name](what)
        if rule is moving:
            made["Transitions"] = [{"Days": 30 * n, "StorageClass": c} for n, c in enumerate(classes, 1)]
        rules.append(made)
    return rules


@pytest.mark.parametrize("classes", [(), CLASSES])
def test_doctor_finds_nothing_wrong_with_the_buckets_rules(s3_client: Any, s3_bucket: str, classes: tuple[str, ...]) -> None:
    versioning = resource("bucket", "aws_s3_bucket_versioning")["versioning_configuration"][0]["status"]
    s3_client.put_bucket_versioning(Bucket=s3_bucket, VersioningConfiguration={"Status": versioning})
    s3_client.put_bucket_lifecycle_configuration(Bucket=s3_bucket, LifecycleConfiguration={"Rules": lifecycle(classes)})
    result = CliRunner().invoke(main, ["doctor", "--archive", f"s3://{s3_bucket}/kafka"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "no rule of the bucket deletes, hides or keeps what it should not" in result.stdout


def test_doctor_would_tell_of_a_rule_that_hides_or_loses_objects(s3_client: Any, s3_bucket: str) -> None:
    rules = lifecycle(("GLACIER",))
    rules[1]["Expiration"] = {"Days": 400}
    s3_client.put_bucket_lifecycle_configuration(Bucket=s3_bucket, LifecycleConfiguration={"Rules": rules})
    result = CliRunner().invoke(main, ["doctor", "--archive", f"s3://{s3_bucket}/kafka"], catch_exceptions=False)
    assert "moves objects to a storage class that cannot be read directly" in result.stdout
    assert "will delete archived segments" in result.stdout


def longest_entry(number: int) -> SegmentEntry:
    """An entry of a segment of 2 GiB that is encoded in chunks of 4 MiB, with offsets and sizes as long as they come."""
    far = 10**15
    encoded = EncodingInfo("x" * 2_600, (10**6,) * 5, 2**31, 2**32 - 1, 10**7, 2**32 - 1, "k" * 100, "w" * 300, "n" * 16)
    return entry(
        far + 10 * number,
        far + 10 * number + 10,
        encoding="zstd+aes-256-gcm",
        log_size=2**31,
        log_crc32c=2**32 - 1,
        leader_epochs=tuple(EpochEntry(n, far + 10 * number + n) for n in range(4)),
        encoded=encoded,
    )


def longest_ref(number: int) -> PageRef:
    return paged(longest_entry(2 * number), longest_entry(2 * number + 1))


def test_no_manifest_is_so_long_that_it_would_move_to_another_storage_class() -> None:
    entries = [longest_entry(n) for n in range(LIMITS.inline_max)]
    waiting = tuple(Deleting(longest_entry(LIMITS.inline_max + n), 10**13) for n in range(LIMITS.deleting_max))
    refs = tuple(longest_ref(2 * LIMITS.inline_max + n) for n in range(8)) * (LIMITS.fan_out // 8)
    size = len(codec.encode(manifest(*entries, log_start_offset=10**15, deleting=waiting, pages=refs)))
    assert 6 << 20 < size < default("transition_bytes_min")  # it is a long one
    [rule] = labelled("bucket", "variable")["transition_bytes_min"]["validation"]
    assert f"var.transition_bytes_min >= {default('transition_bytes_min')}" in rule["condition"]


def test_current_objects_never_expire() -> None:
    for rule in lifecycle(CLASSES):
        assert rule.get("Expiration", {}).keys() <= {"ExpiredObjectDeleteMarker"}


def test_only_storage_classes_that_are_read_at_once_are_taken() -> None:
    conditions = " ".join(v["condition"] for v in labelled("bucket", "variable")["transitions"]["validation"])
    assert '"STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"' in conditions
    assert '"GLACIER"' not in conditions
    assert "DEEP_ARCHIVE" not in conditions


def test_the_public_is_kept_out_and_everything_is_encrypted_and_versioned() -> None:
    block = resource("bucket", "aws_s3_bucket_public_access_block")
    names = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
    assert [block[name] for name in names] == [True] * 4
    [rule] = resource("bucket", "aws_s3_bucket_server_side_encryption_configuration")["rule"]
    assert rule["apply_server_side_encryption_by_default"] == [
        {"sse_algorithm": "aws:kms", "kms_master_key_id": "${local.key_arn}"}
    ]
    assert rule["bucket_key_enabled"] is True
    [ownership] = resource("bucket", "aws_s3_bucket_ownership_controls")["rule"]
    assert ownership == {"object_ownership": "BucketOwnerEnforced"}
    key = resource("bucket", "aws_kms_key")
    assert key["enable_key_rotation"] is True


def test_the_bucket_and_its_key_outlive_a_destroy() -> None:
    guarded = {
        kind: body.get("lifecycle", [{}])[0].get("prevent_destroy")
        for block in parsed("bucket")["resource"]
        for kind, bodies in block.items()
        for body in bodies.values()
        if kind in ("aws_s3_bucket", "aws_kms_key")
    }
    assert guarded == {"aws_s3_bucket": True, "aws_kms_key": True}
    assert resource("bucket", "aws_s3_bucket")["force_destroy"] is False
