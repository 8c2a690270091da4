"""What starts cost: commands, completion, a first `status`, a wrong endpoint, the first kernel, Spark's first count.

With the wheel's kernels and with numba's.

The wheel is unpacked twice, once without its libraries of kernels, and compiled to bytecode. CPU seconds are the best of several
starts that take turns; those of Spark are of the clock, from a new session to its first count.
"""

import compileall
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import completions  # beside this file
import first_status  # beside this file
import wrong_endpoint  # beside this file
from built_wheel import built_wheel  # beside the tests
from endpoint_servers import served  # beside this file
from golden_logs import broker_logs  # beside the tests
from processes import cpu_seconds, environment_of, tiering  # beside this file
from real_kafka import TOOLS, jars  # beside the tests
from targets import Targets  # beside this file

from spark_jobs.java import java_home

TOPIC, PARTITION = "g-big", "g-big-0"
HELP_MAX, LOOK_MAX, READ_MAX = 0.10, 0.35, 0.40
FIRST_STATUS_MAX = 2.0
OTHER_ROUNDS = 2
"""Of what has no target of ours: numba's ways take most of the time."""
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
    kept = environment_of(plain, NUMBA_CACHE_DIR=str(out / "kept"))
    ways = {"the wheel's kernels": environment_of(compiled), "numba's, kept": kept}
    cpu_seconds(tiering("offload", "--log-dir", logs, "--archive", archive), kept)
    targets = Targets()
    print("CPU seconds of a start, the best of", rounds, *(f"  {way}" for way in ways))
    for name, (words, bound) in _commands(archive, config).items():
        turns = dict.fromkeys(ways, rounds) | {"numba's, kept": OTHER_ROUNDS}
        best = [min(cpu_seconds(tiering(*words), ways[way]) for _ in range(n)) for way, n in turns.items()]
        print(f"  {name:44}", *(f"{seconds:7.2f}" for seconds in best), flush=True)
        targets.at_most(f"CPU seconds of {name}", best[0], bound)
    _of_others(logs, OTHER_ROUNDS)
    print("CPU seconds of a completion, the best of", rounds)
    for what, seconds in completions.seconds(out / "completions", compiled, TOPIC, archive, config, rounds).items():
        print(f"  {what:44} {seconds:7.2f}", flush=True)
        if what != completions.S3_FIRST:
            targets.at_most(f"CPU seconds to complete {what}", seconds, completions.SECONDS_MAX)
    print(f"The first status of {first_status.PARTITIONS} partitions, seconds, the best of", rounds)
    for place, seconds in first_status.seconds(out / "status", compiled, rounds).items():
        print(f"  {place:44} {seconds:7.2f}", flush=True)
        targets.at_most(f"seconds of the first status, {place}", seconds, FIRST_STATUS_MAX)
    print("A wrong endpoint is told of after seconds, and the command has ended after")
    for what, said, ended in wrong_endpoint.seconds(compiled, logs):
        print(f"  {what:44} {said:7.2f} {f'{ended:7.2f}' if ended else '      -'}", flush=True)
        targets.at_most(f"seconds until a wrong endpoint is told of: {what}", said, wrong_endpoint.SECONDS_MAX)
    print("The first kernel of a new container, CPU seconds")
    for number in range(OTHER_ROUNDS):
        fresh = environment_of(plain, NUMBA_CACHE_DIR=str(out / f"fresh-{number}"))
        warm = {"the wheel's": environment_of(compiled), "numba's": fresh}
        print("  ", *(f"{way} {cpu_seconds([sys.executable, '-c', WARM_UP], how):.2f} " for way, how in warm.items()), flush=True)
    print("Spark's first count of a new session, seconds")
    ways["numba's, nothing kept"] = environment_of(plain, NUMBA_CACHE_DIR=str(out / "fresh-of-spark"))
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
            print(f"  {name:44} {min(cpu_seconds(command, os.environ) for _ in range(rounds)):7.2f}", flush=True)


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
