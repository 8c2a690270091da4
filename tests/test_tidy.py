"""The house rules that a linter does not know: what stands where, and what stands nowhere."""

import ast
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("local_log", "remote", "tiering", "spark_jobs", "dags")
MODULES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))

DOORS = {"local_log/os_disk.py", "local_log/open_files.py", "remote/store/folder/store.py", "remote/store/folder/write_behind.py"}
DOORS |= {"remote/transforms/key_rings.py", "spark_jobs/common/target.py", "spark_jobs/common/staged_file.py"}
DOORS |= {"spark_jobs/sink/handover.py", "local_log/folder_lock.py"}
"""Where files are opened, renamed and listed."""

ENTRY_POINTS = {"tiering/__main__.py", "spark_jobs/source/data_source.py"}
ENTRY_POINTS |= {"remote/errors.py", "spark_jobs/sink/write_topic.py", "spark_jobs/live_tail.py", "spark_jobs/submit.py"}
ENTRY_POINTS |= {"tiering/local_tier/reads.py"}
"""Run, called or found by name: by Python, make, click, Spark and users' programs."""

OUTSIDE = {"local_log/kernel_library.py", "local_log/kernel_cache.py", "local_log/user_cache.py", "spark_jobs/java.py"}
"""Find and keep compiled code, look for a Java runtime, and play the user who makes and drops folders: not the product's data."""

FILE_CALLS = {"open", "os.open", "os.rename", "os.replace", "os.unlink", "os.remove", "os.listdir", "os.scandir", "os.fsync"}
FILE_CALLS |= {"os.link", "os.mkdir", "os.makedirs", "os.rmdir", "os.stat", "os.truncate", "os.walk", "mmap.mmap"}
FILE_METHODS = {"read_bytes", "read_text", "write_bytes", "write_text", "iterdir", "rglob", "mkdir", "unlink", "touch", "rmdir"}
"""Of pathlib: no other class here has methods of these names."""
LINES_MAX = 400
FUNCTION_LINES_MAX, PARAMETERS_MAX = 40, 6


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in MODULES}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    return name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def tracked_texts() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: nobody says which files are ours")
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return [p for p in paths if p.is_file() and p.suffix not in {".xz", ".gz", ".png"} and p != Path(__file__)]


def test_every_module_says_what_it_is_for():
    assert [name_of(p) for p, tree in trees().items() if not ast.get_docstring(tree)] == []


def touches_files(function: ast.expr) -> bool:
    method = function.attr if isinstance(function, ast.Attribute) else ""
    return ast.unparse(function) in FILE_CALLS or method in FILE_METHODS or ast.unparse(function).startswith("shutil.")


def test_files_are_touched_only_at_the_doors():
    touching = {
        name_of(path)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and touches_files(node.func)
    }
    assert touching <= DOORS | OUTSIDE


THIS_MACHINE_S = {"OsDisk", "OsWritableDisk", "OsFolderHolder", "open_store", "open_backend", "SystemClock", "RandomIds"}
THIS_MACHINE_S |= {"SystemRandomness"}


def test_one_module_of_tiering_knows_which_disk_store_clock_and_ids_are_used():
    knowing = {
        name_of(path)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(("local_log.", "remote."))
        and THIS_MACHINE_S & {alias.name for alias in node.names}
    }
    # Airflow's triggerer and its hooks import what they need inside their calls: they load as little as they can.
    lazy = {"tiering/airflow/hooks.py", "tiering/airflow/triggers.py"}
    assert {name for name in knowing if name.startswith("tiering/")} - lazy == {"tiering/machine.py"}


def test_no_module_is_an_orphan():
    used = {name for tree in trees().values() for name in imports_of(tree)}
    used |= imports_of(ast.parse((ROOT / "pyspark_tiering.py").read_text()))
    packages = {dotted(p) for p in MODULES if p.name == "__init__.py"}
    found_by_name = {dotted(p) for p in MODULES if p.parent.name in ("jobs", "cli", "dags")}
    orphans = {dotted(p) for p in MODULES if name_of(p) not in ENTRY_POINTS} - used - packages - found_by_name
    assert orphans == set()


def test_no_file_is_two_modules():
    lengths = {name_of(p): len(p.read_text().splitlines()) for p in MODULES}
    assert {name: n for name, n in lengths.items() if n > LINES_MAX} == {}


def is_large(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    parameters = [a for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg not in ("self", "cls")]
    return function.end_lineno - function.lineno + 1 > FUNCTION_LINES_MAX or len(parameters) > PARAMETERS_MAX


def test_no_two_files_of_tests_have_one_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == [], "pytest finds only one of them"


def test_a_large_function_has_its_reason_beside_it():
    without = []
    for path, tree in trees().items():
        lines = path.read_text().splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "kernels" not in path.parts and is_large(node):
                beside = lines[min(d.lineno for d in (node, *node.decorator_list)) - 2 : node.body[0].lineno]
                if not any("# " in line for line in beside):
                    without.append(f"{name_of(path)}:{node.lineno} {node.name}")
    assert without == []


def test_every_verb_of_the_command_line_has_a_file_and_the_other_way_round():
    from tiering.cli import _VERBS

    assert {p.stem for p in (ROOT / "tiering" / "cli").glob("*.py")} - {"__init__"} == {verb.replace("-", "_") for verb in _VERBS}


def test_the_project_speaks_only_of_itself():
    # Spelled in pieces, so that this file does not contain what it forbids.
    forbidden = [
        "pypi" + ".org",
        "python" + "hosted",
        "maven" + ".org",
        "registry" + ".npm",
        "/" + "root/",
        "/" + "work/",
        ".." + "/shared",
    ]
    found = [
        (str(p.relative_to(ROOT)), word) for p in tracked_texts() for word in forbidden if word in p.read_text(errors="ignore")
    ]
    assert found == []


def test_the_subject_of_the_last_commit_fits_on_a_line():
    last = subprocess.run(["git", "log", "-1", "--no-merges", "--format=%s"], cwd=ROOT, capture_output=True, text=True)
    if last.returncode:
        pytest.skip("not a git checkout: there is no last commit")
    assert len(last.stdout.strip()) <= 72
