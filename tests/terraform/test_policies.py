"""What the policies make of single requests: of unconditional puts, of plain connections, of topics with misleading names."""

from collections.abc import Mapping
from typing import Any

import pytest
from acting_as import s3_requests
from iam import Request, allowed, denied
from modules import ACCOUNT, BUCKET_KEY, DATA_KEY, REGION, rendered, templates

from remote.keys import ARCHIVE, PROBE_PREFIX, PartitionPath, WritePath, page_name, segment_name

ID = "0" * 32
PREFIXES = ["", "kafka/production"]
TOPICS = ["orders", "segments", "manifest", "pins", "archive.json.old", "probe-orders", "kafka", "production", "writes"]
TLS = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}
CONDITION = {"If-None-Match": "*"}


def keys_of(topic: str) -> dict[str, str]:
    """A key of each kind."""
    path = PartitionPath(topic, "A" * 22, 0)
    return {
        "segment": path.segment(segment_name(5, 0, ID, ".log")),
        "manifest": path.manifest(7),
        "page": path.page(page_name(0, 5, ID)),
        "pin": path.pin(ID),
        "write": WritePath(topic, "A" * 22, "rows").attempt(ID),
        "archive": ARCHIVE,
        "probe": f"{PROBE_PREFIX}{ID}",
    }


def url(key: str, prefix: str, query: str = "") -> str:
    return f"https://s3.{REGION}.amazonaws.com/archive/" + (f"{prefix}/" if prefix else "") + key + query


def of_role(role: str, prefix: str) -> list[dict[str, Any]]:
    more = {"archiver": ["archiver_keeps"], "pins": ["reader"]}.get(role, [])
    return [*(rendered("iam", policy, prefix=prefix) for policy in (role, *more)), rendered("bucket", "bucket", prefix=prefix)]


def may(role: str, operation: str, key: str, prefix: str, headers: Mapping[str, str] = CONDITION) -> bool:
    return all(allowed(of_role(role, prefix), request) for request in s3_requests(operation, url(key, prefix), dict(headers)))


RIGHTS = {
    "archiver": {"put": {"segment", "manifest", "page", "write", "archive", "probe"}, "delete": {"probe"}},
    "sweeper": {
        "put": {"manifest", "page", "write", "probe"},
        "delete": {"segment", "manifest", "page", "pin", "write", "probe"},
    },
    "reader": {"put": set(), "delete": set()},
    "pins": {"put": {"pin"}, "delete": {"pin"}},
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("role", RIGHTS)
def test_a_role_writes_and_deletes_its_kinds_of_objects_whatever_a_topic_is_called(role: str, topic: str, prefix: str) -> None:
    keys = keys_of(topic)
    rights = RIGHTS[role]
    deletable = {kind for kind, key in keys.items() if may(role, "DeleteObject", key, prefix)}
    puttable = {kind for kind, key in keys.items() if may(role, "PutObject", key, prefix)}
    if topic.startswith(PROBE_PREFIX) and "probe" in rights["put"]:
        # All of a topic that is named like a probe may be put, though over no other object, and the archiver deletes none of it.
        everything = keys.keys() - {"archive"}
        rights = {"put": everything | rights["put"], "delete": {"archiver": {"probe"}, "sweeper": everything}[role]}
    assert {"put": puttable, "delete": deletable} == rights


@pytest.mark.parametrize("role", RIGHTS)
def test_no_role_reaches_beyond_its_prefix_and_its_bucket(role: str) -> None:
    inside = of_role(role, "kafka/production")
    for key in keys_of("orders").values():
        for elsewhere in ("kafka/productions", "kafka", "other"):
            for operation in ("PutObject", "GetObject", "DeleteObject", "AbortMultipartUpload"):
                asked = s3_requests(operation, url(key, elsewhere), CONDITION)
                assert not allowed(inside, asked[0])
        other = f"arn:aws:s3:::archive2/kafka/production/{key}"
        assert not allowed(inside, Request("s3:GetObject", other, TLS))


@pytest.mark.parametrize("role", RIGHTS)
@pytest.mark.parametrize(
    "action",
    [
        "s3:DeleteObjectVersion",
        "s3:PutBucketPolicy",
        "s3:PutLifecycleConfiguration",
        "s3:PutObjectAcl",
        "s3:BypassGovernanceRetention",
    ],
)
def test_no_role_changes_the_bucket_or_ends_versions(role: str, action: str) -> None:
    for resource in ("arn:aws:s3:::archive", *(f"arn:aws:s3:::archive/{key}" for key in keys_of("orders").values())):
        assert not allowed(of_role(role, ""), Request(action, resource, TLS))


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("kind", keys_of("orders"))
def test_a_put_without_the_condition_is_denied_to_everybody_and_parts_of_uploads_are_not(kind: str, prefix: str) -> None:
    policy, key = [rendered("bucket", "bucket", prefix=prefix)], keys_of("orders")[kind]

    def verdict(operation: str, headers: dict[str, str]) -> str:
        return denied(policy, s3_requests(operation, url(key, prefix), headers)[0])

    for operation in ("PutObject", "CompleteMultipartUpload"):
        assert verdict(operation, {}) == "NoPutWithoutIfNoneMatch"
        assert verdict(operation, CONDITION) == ""
    for operation in ("CreateMultipartUpload", "UploadPart", "AbortMultipartUpload", "GetObject", "DeleteObject"):
        assert verdict(operation, {}) == ""


def test_what_lies_beside_the_archive_may_be_put_without_the_condition() -> None:
    policy = [rendered("bucket", "bucket", prefix="kafka")]
    assert denied(policy, s3_requests("PutObject", url("parquet/part-0", ""), {})[0]) == ""
    assert denied(policy, s3_requests("PutObject", url("archive.json", "kafka"), {})[0]) != ""


@pytest.mark.parametrize(
    ("change", "statement"),
    [({"aws:SecureTransport": "false"}, "OnlyByTls"), ({"s3:TlsVersion": "1.1"}, "OnlyByTlsOfToday")],
)
def test_plain_and_outdated_connections_are_denied(change: dict[str, str], statement: str) -> None:
    policy = [rendered("bucket", "bucket")]
    for action, resource in (("s3:GetObject", "arn:aws:s3:::archive/archive.json"), ("s3:ListBucket", "arn:aws:s3:::archive")):
        assert denied(policy, Request(action, resource, TLS)) == ""
        assert denied(policy, Request(action, resource, TLS | change)) == statement


@pytest.mark.parametrize(
    ("headers", "statement"),
    [
        ({"x-amz-server-side-encryption": "AES256"}, "NoOtherEncryption"),
        ({"x-amz-server-side-encryption-aws-kms-key-id": DATA_KEY}, "NoOtherKey"),
        ({"x-amz-server-side-encryption-customer-algorithm": "AES256"}, "NoKeyOfTheirOwn"),
        ({"x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": BUCKET_KEY}, ""),
        ({}, ""),
    ],
)
def test_objects_are_encrypted_by_the_buckets_key_or_not_put(headers: dict[str, str], statement: str) -> None:
    request = s3_requests("PutObject", url("archive.json", ""), CONDITION | headers)[0]
    assert denied([rendered("bucket", "bucket")], request) == statement


def test_the_buckets_key_is_used_through_s3_and_for_this_bucket_only() -> None:
    policy = [rendered("iam", "archiver")]
    right = {"kms:ViaService": f"s3.{REGION}.amazonaws.com", "kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::archive"}
    assert allowed(policy, Request("kms:Decrypt", BUCKET_KEY, right))
    for wrong in ({}, right | {"kms:ViaService": f"ec2.{REGION}.amazonaws.com"}):
        assert not allowed(policy, Request("kms:Decrypt", BUCKET_KEY, wrong))
    assert not allowed(
        policy, Request("kms:Decrypt", BUCKET_KEY, right | {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::other"})
    )
    assert not allowed(policy, Request("kms:Decrypt", DATA_KEY, right))


@pytest.mark.parametrize(("policy", "action"), [("wrap", "kms:Encrypt"), ("unwrap", "kms:Decrypt")])
def test_keys_of_data_keys_are_used_for_data_keys_only(policy: str, action: str) -> None:
    document = [rendered("iam", policy)]
    assert allowed(document, Request(action, DATA_KEY, {"kms:EncryptionContext:kafka-tiering": "data key"}))
    assert not allowed(document, Request(action, DATA_KEY))
    assert not allowed(document, Request(action, BUCKET_KEY, {"kms:EncryptionContext:kafka-tiering": "data key"}))


@pytest.mark.parametrize(("module", "policy"), [(m, p) for m in ("bucket", "iam") for p in templates(m)])
def test_every_policy_is_json_that_iam_takes(module: str, policy: str) -> None:
    document = rendered(module, policy)
    sids = [statement["Sid"] for statement in document["Statement"]]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids)
    is_on_a_resource = module == "bucket" or policy == "trust"
    assert all(("Principal" in statement) is is_on_a_resource for statement in document["Statement"])
    # IAM takes 6,144 characters of a managed policy and 20 KB of a bucket's, without the blanks.
    assert len("".join(str(document).split())) < 6_144


@pytest.mark.parametrize("policy", [p for p in templates("iam") if p != "trust"])
def test_no_right_is_on_all_resources_or_all_actions_of_a_service(policy: str) -> None:
    for statement in rendered("iam", policy)["Statement"]:
        for word in ("Action", "Resource"):
            words = [statement[word]] if isinstance(statement[word], str) else statement[word]
            assert not [w for w in words if w in ("*", "s3:*", "kms:*")]
            assert word != "Action" or not [w for w in words if "*" in w]


def test_the_key_is_administered_by_its_own_account_and_nobody_else() -> None:
    [statement] = rendered("bucket", "key")["Statement"]
    assert statement["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
