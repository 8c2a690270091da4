"""What tests of several rooms need: an S3 server on the loopback interface, and a fresh bucket on it."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from s3_servers import serving

# Assertions in these say as much as a test's own.
pytest.register_assert_rewrite(
    "archived_worlds",
    "disk_promises",
    "lives",
    "made_manifests",
    "message_sets",
    "offloaded",
    "segments_to_copy",
    "sound_logs",
    "store_promises",
    "validated_batches",
)

_bucket_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The URL of moto's S3 server, which boto3 finds through the environment for as long as the session lasts."""
    with serving() as url, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", url)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield url


@pytest.fixture(scope="session")
def s3_client(s3_server: str) -> Iterator[Any]:
    """boto3's own client, to arrange and to look behind the store's back."""
    import boto3.session

    client = boto3.session.Session().client("s3")
    yield client
    client.close()


@pytest.fixture
def s3_bucket(s3_client: Any) -> str:
    """The name of an empty bucket that no other test has."""
    bucket = f"archive-{next(_bucket_numbers)}"
    s3_client.create_bucket(Bucket=bucket)
    return bucket
