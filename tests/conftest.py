"""What tests of several rooms need: an S3 server on the loopback interface, and a fresh bucket on it."""

import itertools
import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

# Assertions in these say as much as a test's own.
pytest.register_assert_rewrite("made_manifests", "segments_to_copy", "store_promises")

_bucket_numbers = itertools.count(1)


class OneAtATime:
    """A WSGI application whose requests take turns.

    moto looks for a key and then writes it, so two threads of its server can both create one (9 rounds of 200 with 32
    clients and a switch interval of 50 µs). S3 does it in one step, and so must what stands in for it.
    """

    def __init__(self, application: Any) -> None:
        self.application = application
        self.turn = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        with self.turn:
            return list(self.application(environ, start_response))


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The URL of moto's S3 server, which boto3 finds through the environment for as long as the session lasts."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else a line for each request
    server = make_server("127.0.0.1", 0, OneAtATime(DomainDispatcherApplication(create_backend_app)), threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="s3-server")
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    with pytest.MonkeyPatch.context() as patch:
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
    server.shutdown()
    server.server_close()
    thread.join()


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
