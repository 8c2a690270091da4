"""What tests of several folders need: an S3 server on the loopback interface, a fresh bucket on it, the wheel installed."""

import itertools
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from subprocess import SubprocessError
from tempfile import TemporaryDirectory
from typing import Any

import fast_java
import forked_python
import memory
import pytest
import quick
import strict_s3
from hypothesis import settings
from installed_wheel import Installed, shared
from s3_servers import serving

# Assertions in these say as much as a test's own.
pytest.register_assert_rewrite(
    "archived_worlds",
    "disk_promises",
    "encodings_to_try",
    "lives",
    "made_manifests",
    "message_sets",
    "offloaded",
    "replaced",
    "segments_to_copy",
    "sound_logs",
    "store_promises",
    "validated_batches",
)

settings.register_profile("of any speed", settings.default, deadline=None)
settings.load_profile("of any speed")

_bucket_numbers = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What commands remember from one run to the next is not kept in the home of who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The URL of moto's S3 server, which boto3 finds through the environment for as long as the session lasts."""
    with serving() as url, pytest.MonkeyPatch.context() as patch:
        _lead_boto3_to(url, "test", "test", patch)
        yield url


def _lead_boto3_to(url: str, access_key: str, secret_key: str, patch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    patch.setenv("AWS_ENDPOINT_URL", url)
    patch.setenv("AWS_ACCESS_KEY_ID", access_key)
    patch.setenv("AWS_SECRET_ACCESS_KEY", secret_key)
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    patch.setenv("AWS_CONFIG_FILE", os.devnull)
    patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


@contextmanager
def _client() -> Iterator[Any]:
    import boto3.session
    import botocore.session

    session = botocore.session.get_session()
    session.register_component("data_loader", _services())
    client = boto3.session.Session(botocore_session=session).client("s3")
    yield client
    client.close()


@cache
def _services() -> Any:
    """What the SDK knows of AWS's services, which takes longer to read than all else that a client needs."""
    from botocore.loaders import create_loader

    return create_loader()


def _new_bucket(client: Any) -> str:
    bucket = f"archive-{next(_bucket_numbers)}"
    client.create_bucket(Bucket=bucket)
    return bucket


@pytest.fixture(scope="session")
def s3_client(s3_server: str) -> Iterator[Any]:
    """boto3's own client, to arrange and to look behind the store's back."""
    with _client() as client:
        yield client


@pytest.fixture
def s3_bucket(s3_client: Any) -> str:
    """The name of an empty bucket that no other test has."""
    return _new_bucket(s3_client)


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """An environment in which the wheel alone is installed."""
    with shared(tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="session")
def strict_s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a strict S3 server; `strict_client` and `strict_bucket` lead boto3 to it for one test."""
    if not strict_s3.available():
        pytest.skip("the strict S3 server is built by Go, which is not here")
    with strict_s3.serving(tmp_path_factory.mktemp("strict-s3")) as url:
        yield url


@pytest.fixture
def strict_client(strict_s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """boto3's own client of the strict server, which boto3 finds through the environment for as long as the test lasts."""
    _lead_boto3_to(strict_s3_server, strict_s3.ACCESS_KEY, strict_s3.SECRET_KEY, monkeypatch)
    with _client() as client:
        yield client


@pytest.fixture
def strict_bucket(strict_client: Any) -> str:
    """The name of an empty bucket on the strict server that no other test has. Mark its tests `strict_s3`."""
    return _new_bucket(strict_client)


_ORDER = ("spark", "airflow", "simulation", "end_to_end", "kafka", "docs", "faults")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only the tests that start no server and no Java and are not slow")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        quick.turn_on()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--quick") and quick.is_left_out(collection_path) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files that take minutes come first: what is left when one of two workers has nothing more to do is short then."""
    if config.getoption("--quick"):
        items[:] = [item for item in items if not quick.is_marked(item)]
    order = {name: rank for rank, name in enumerate(_ORDER)}
    items.sort(key=lambda item: order.get(quick.folder(item.path), len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadfile":
        return None
    import one_session

    return one_session.OneSession(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    with memory.kept():
        return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What takes minutes is made before tests, whose time is limited. All workers wait for it, and leave it the processors."""
    if session.config.option.collectonly:
        return
    makes = dict.fromkeys(make for item in session.items for mark in item.iter_markers("made_before") for make in mark.args)
    if any(item.get_closest_marker("strict_s3") for item in session.items):
        makes[strict_s3.built] = None
    for make in makes:
        with suppress(SubprocessError, OSError):  # the tests that need it tell
            make()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None or nextitem.path != item.path:
        memory.give_back()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture: Java and Python of Spark's start soon, also those of processes that a test starts."""
    if item.get_closest_marker("spark") and fast_java.VARIABLES[0] not in os.environ:
        with TemporaryDirectory() as folder:
            os.environ |= fast_java.spark_environment(Path(folder))
        os.environ["PYSPARK_PYTHON"] = forked_python.shared().path


@pytest.fixture(scope="session")
def spark(s3_server: str) -> Iterator[Any]:
    """The Spark session of all tests, with Spark's Kafka source where Maven is, which brings it.

    The S3 server comes first, since executors know the environment of when Java started.
    """
    import real_kafka

    from spark_jobs.session import session

    quick.starts_a_server()
    conf = {"spark.sql.shuffle.partitions": "4"}
    if real_kafka.maven() is not None:
        conf["spark.jars"] = ",".join(map(str, real_kafka.jars(real_kafka.SPARK_SOURCE)))
    running = session("tests", master="local[2]", conf=conf)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def spark_and_kafka(spark: Any) -> Any:
    """The same, for tests that need Spark's Kafka source."""
    import real_kafka

    if real_kafka.maven() is None:
        pytest.skip("Spark's Kafka source is brought by Maven, which is not here")
    return spark
