"""What starts cost: commands, a first `status`, the first kernel, Spark's first count; with the wheel's kernels and numba's.

The wheel is unpacked twice, once without its libraries of kernels, and compiled to bytecode. CPU seconds are the best of several
starts that take turns; those of Spark are of the clock, from a new session to its first count.
"""

import compileall
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import first_status  # beside this file
from built_wheel import built_wheel  # beside the tests
from endpoint_servers import served  # beside this file
from golden_logs import broker_logs  # beside the tests
from real_kafka import TOOLS, jars  # beside the tests
from targets import Targets  # beside this file

from spark_jobs.java import java_home

TOPIC, PARTITION = "g-big", "g-big-0"
HELP_MAX, LOOK_MAX, READ_MAX = 0.10, 0.35, 0.40
FIRST_STATUS_MAX = 2.0
WARM_UP = "import local_log.formats.record_batch.columns as columns; columns.warm_up()"
FIRST_COUNT = """
import sys, time
from spark_jobs.session import session
spark = session("start", master="local[2]")
began = time.perf_counter()
spark.read.format("tiering").options(archive=sys.argv[1], subscribe=sys.argv[2]).load().filter("length(value) >= 0").count()
print(time.perf_counter() - began)
spark.stop()
"""


def run(out: Path, rounds: int) -> None:
    """Prints all of it, and which targets are met."""
    out.mkdir(parents=True)
    logs, archive, config = broker_logs(out / "logs", PARTITION), out / "archive", out / "tiering.toml"
    config.write_text(f'[log]\ndirs = ["{logs}"]\n[archive]\nurl = "{archive}"\n')
    compiled, plain = _unpacked(out)
    kept = _environment(plain, NUMBA_CACHE_DIR=str(out / "kept"))
    ways = {"the wheel's kernels": _environment(compiled), "numba's, kept": kept}
    _cpu(_tiering("offload", "--log-dir", logs, "--archive", archive), kept)
    targets = Targets()
    print("CPU seconds of a start, the best of", rounds, *(f"  {way}" for way in ways))
    for name, (words, bound) in _commands(archive, config).items():
        best = [min(_cpu(_tiering(*words), environment) for _ in range(rounds)) for environment in ways.values()]
        print(f"  {name:44}", *(f"{seconds:7.2f}" for seconds in best), flush=True)
        targets.at_most(f"CPU seconds of {name}", best[0], bound)
    _of_others(logs, rounds)
    print(f"The first status of {first_status.PARTITIONS} partitions, seconds")
    for place, seconds in first_status.seconds(out / "status", _environment(compiled)).items():
        print(f"  {place:44} {seconds:7.2f}", flush=True)
        targets.at_most(f"seconds of the first status, {place}", seconds, FIRST_STATUS_MAX)
    print("The first kernel of a new container, CPU seconds")
    for number in range(rounds):
        fresh = _environment(plain, NUMBA_CACHE_DIR=str(out / f"fresh-{number}"))
        warm = {"the wheel's": _environment(compiled), "numba's": fresh}
        print("  ", *(f"{way} {_cpu([sys.executable, '-c', WARM_UP], how):.2f} " for way, how in warm.items()), flush=True)
    print("Spark's first count of a new session, seconds")
    ways["numba's, nothing kept"] = _environment(plain, NUMBA_CACHE_DIR=str(out / "fresh-of-spark"))
    for way, environment in ways.items():
        command = [sys.executable, "-c", FIRST_COUNT, str(archive), TOPIC]
        counted = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        print(f"  {way:44} {float(counted.stdout.split()[-1]):7.2f}", flush=True)
    targets.show()


def _commands(archive: Path, config: Path) -> dict[str, tuple[Sequence[object], float]]:
    of, one = ("--archive", archive), ("--topic", TOPIC, "--partition", 0)
    return {
        "--help": (("--help",), HELP_MAX),
        "offload --help": (("offload", "--help"), HELP_MAX),
        "describe": (("describe", *of), LOOK_MAX),
        "status": (("status", "--config", config), LOOK_MAX),
        "config show": (("config", "show", config), LOOK_MAX),
        "manifest show": (("manifest", "show", *of, "--topic", TOPIC), LOOK_MAX),
        "offsets --time latest": (("offsets", *of, "--topic", TOPIC), READ_MAX),
        "offsets by time": (("offsets", *of, "--topic", TOPIC, "--time", 1), READ_MAX),
        "fetch of a record": (("fetch", *of, *one, "--offset", 0, "--max-records", 1), READ_MAX),
    }


def _of_others(logs: Path, rounds: int) -> None:
    with served(["--log-dir", str(logs)]) as (address, _, _):
        others = {}
        if kcat := shutil.which("kcat"):
            others["kcat: the offset of a time"] = [kcat, "-Q", "-m", "60", "-b", address, "-t", f"{TOPIC}:0:1"]
            others["kcat: a record"] = [kcat, "-C", "-b", address, "-t", TOPIC, "-p", "0", "-o", "0", "-c", "1", "-e"]
        classes = ":".join(map(str, jars(TOOLS)))
        tool = [f"{java_home()}/bin/java", "-cp", classes, "org.apache.kafka.tools.GetOffsetShell"]
        others["kafka-get-offsets.sh"] = [*tool, "--bootstrap-server", address, "--topic", TOPIC]
        for name, command in others.items():
            print(f"  {name:44} {min(_cpu(command, os.environ) for _ in range(rounds)):7.2f}", flush=True)


def _unpacked(out: Path) -> tuple[Path, Path]:
    """Folders with the wheel's modules: with its libraries of kernels, and without."""
    wheel, folders = built_wheel(out), (out / "with", out / "without")
    for folder in folders:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
    for package in ("local_log", "tiering/endpoint"):
        shutil.rmtree(folders[1] / package / "kernel_libraries")
    for folder in folders:
        compileall.compile_dir(folder, quiet=1, workers=0)
    return folders


def _environment(modules: Path, **more: str) -> dict[str, str]:
    # Python would take the modules of the working directory first, which are the checkout's.
    return {**os.environ, "PYTHONPATH": str(modules), "PYTHONSAFEPATH": "1", **more}


def _tiering(*words: object) -> list[str]:
    return [sys.executable, "-m", "tiering", *map(str, words)]


def _cpu(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """CPU seconds of a process that has to end well."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=dict(environment), **quiet)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"{command} has ended with {process.returncode}")
    return used.ru_utime + used.ru_stime
