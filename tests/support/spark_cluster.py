"""A Spark standalone cluster on loopback: a master and two workers, whose Python has our requirements and not our code."""

import os
import subprocess
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from built_wheel import built_wheel
from real_kafka import free_ports, wait_for

from spark_jobs.java import java_home

SPARK_HOME = Path(pyspark.__file__).parent

_OURS = ("PYTHONPATH", "PYTHONHOME", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


@dataclass(frozen=True)
class Cluster:
    """Where its master listens, and the folder and the environment of its processes."""

    url: str
    folder: Path
    environment: Mapping[str, str]

    def submit(self, folder: Path, shipped: Path, program: Path, *args: object) -> "subprocess.CompletedProcess[str]":
        """What `spark-submit` says of a program that `folder` is the working directory of."""
        own = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
        own += ["--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"]
        command = [SPARK_HOME / "bin" / "spark-submit", "--master", self.url, *own, "--py-files", shipped, program, *args]
        return subprocess.run(
            [str(word) for word in command], cwd=folder, env=dict(self.environment), capture_output=True, text=True, timeout=400
        )


def wheel(folder: Path) -> Path:
    """What `make wheel` makes for `--py-files`: the wheel, as a zip."""
    return built_wheel(folder).rename(folder / "kafka_tiering.zip")


TWO_HOSTS = ("127.0.0.1", "127.0.0.2")
"""To Spark the workers are on two machines then, without which it starts no speculative twin. Linux has both addresses."""


@contextmanager
def cluster(folder: Path, hosts: tuple[str, str] = TWO_HOSTS) -> Iterator[Cluster]:
    """A master and two workers of one core each, who listen on `hosts`; they end with the block."""
    python = python_without_our_code(folder / "python")
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    environment |= {"JAVA_HOME": java_home(), "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    # Web pages listen there too; and a home of its own, so that nothing is found compiled.
    environment["JAVA_TOOL_OPTIONS"] = environment.pop("SPARK_SUBMIT_OPTS", "")  # executors read no other variable
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    port, page = free_ports()
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    with ExitStack() as running:
        master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", page]
        wait_for(port, running.enter_context(_daemon(folder, "master", environment, *master)), "the master")
        for name, host in zip(("one", "two"), hosts, strict=True):
            port, page = free_ports()
            worker = [f"{deploy}.worker.Worker", "--host", host, "--port", port, "--webui-port", page, "--cores", 1]
            worker += ["--memory", "1g", "--work-dir", folder / name, url]
            wait_for(port, running.enter_context(_daemon(folder, name, environment, *worker)), "a worker", host=host)
        yield Cluster(url, folder, environment)


def python_without_our_code(folder: Path) -> Path:
    """An environment with the packages of this one; what is installed here as editable, our code, is not found there."""
    venv.create(folder, symlinks=True)
    site = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    Path(site, "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


@contextmanager
def _daemon(folder: Path, name: str, environment: Mapping[str, str], *args: object) -> "Iterator[subprocess.Popen[bytes]]":
    command = [str(word) for word in (SPARK_HOME / "bin" / "spark-class", *args)]
    with open(folder / f"{name}.out", "wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=dict(environment), stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
