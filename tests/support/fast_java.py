"""Options with which the Java of tests starts in a third of its time.

Such a Java lives for seconds: the optimising compiler costs more than it saves, and classes come parsed and verified from
an archive (JEP 350), which a first run of the same program leaves behind. Spark's start and first job took 17 s of CPU, and
take 5; a broker's start 6 and 2.
"""

import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kept import cache, made_once

from spark_jobs.java import java_home

Run = Callable[[Sequence[str]], None]
"""Runs a program to its end, by a Java with these options more."""

VARIABLES = ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS")
"""In which Spark's scripts and its launcher look for options of their Java."""

ARCHIVES_MAX = 8
"""In a folder. One of Spark has 190 MB, and each checkout its own, as Java notes where the jars lie."""

_C1 = "-XX:TieredStopAtLevel=1"
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")  # an archive that does not fit is passed over without a word
_SPARK = """
import sys
from spark_jobs.session import session

spark = session("classes", master="local[2]", conf={"spark.driver.extraJavaOptions": sys.argv[1]})
spark.range(100).selectExpr("id % 3 as k").groupBy("k").count().collect()
spark.createDataFrame([(1, "a")], "a int, b string").write.parquet(sys.argv[2] + "/rows")
rows = spark.readStream.schema("a int, b string").parquet(sys.argv[2] + "/rows").writeStream.format("memory").queryName("rows")
rows.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""


def options(jars: Iterable[Path], folder: Path, run: Run) -> list[str]:
    """The options of a program whose class path begins with `jars`; `run` makes the archive, in `folder`, if it is not there.

    Java itself refuses an archive whose jars have changed since. Where none can be written, it starts without.
    """
    archive = folder / f"classes-{_key(jars)}.jsa"

    def make(arriving: Path) -> None:
        others = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime)
        for oldest in others[: 1 - ARCHIVES_MAX]:
            oldest.unlink()
        run([_C1, f"-XX:ArchiveClassesAtExit={arriving}", *_QUIET])

    try:
        made_once(archive, make, folder / "classes.lock")
    except OSError:
        return [_C1]
    return [_C1, f"-XX:SharedArchiveFile={archive}", *_QUIET]


def spark_environment(folder: Path) -> dict[str, str]:
    """Variables for launchers and drivers of Spark, and no other Java. `folder` takes what a first run writes."""
    import pyspark

    def run(more: Sequence[str]) -> None:
        words = [sys.executable, "-c", _SPARK, " ".join(more), str(folder)]
        subprocess.run(words, check=True, capture_output=True)  # until Java, too, has closed its end

    jars = sorted(Path(pyspark.__file__).parent.glob("jars/*.jar"))
    return dict.fromkeys(VARIABLES, " ".join(options(jars, cache() / "spark", run)))


def compiled(source: Path, jars: Sequence[Path], folder: Path) -> Path:
    """The folder with the classes of a Java source, compiled once for these jars."""
    key = hashlib.sha256(source.read_bytes() + _key(jars).encode()).hexdigest()[:16]

    def compile_to(to: Path) -> None:
        compiler = [f"{java_home()}/bin/java", "-m", "jdk.compiler/com.sun.tools.javac.Main"]
        words = [*compiler, "-cp", ":".join(map(str, jars)), "-d", to, source]
        subprocess.run(words, check=True, capture_output=True)

    return made_once(folder / f"{source.stem}-{key}", compile_to, folder / "classes.lock")


def _key(jars: Iterable[Path]) -> str:
    """What an archive depends on: the Java, and the jars, of which Java notes size and time."""
    home = Path(java_home())
    stats = [(str(jar), jar.stat()) for jar in jars]
    told = [str(home), (home / "release").read_text(), *(f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in stats)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
