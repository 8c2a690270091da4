"""Compiles the kernels to libraries for each processor, extension modules for Python's stable ABI.

Numba translates to LLVM's IR and optimises nothing; LLVM optimises for the processor; zig, which has a linker for each platform,
links. `python -m kernel_build.compile FOLDER` writes `local_log/kernel_libraries/linux_x86_64_v4.abi3.so` and so on to FOLDER.
"""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

os.environ["NUMBA_OPT"] = "0"  # before numba is loaded

from llvmlite import binding as llvm
from llvmlite import ir
from numba import njit
from numba.core import cgutils, compiler
from numba.core.registry import cpu_target

from kernel_build import extension
from kernel_build.face import Face
from local_log.kernel_library import FOLDER, SUFFIX, sources_digest, with_digest

_KERNELS: Final = Path(__file__).parents[1] / "local_log" / "formats" / "kernels"
_LEVEL: Final = 3


class _Target(NamedTuple):
    triple: str
    processor: str
    platform: str  # as zig names it, with the oldest glibc of manylinux


TARGETS: Final = {
    "linux_x86_64_v2": _Target("x86_64-unknown-linux-gnu", "x86-64-v2", "x86_64-linux-gnu.2.17"),
    "linux_x86_64_v4": _Target("x86_64-unknown-linux-gnu", "x86-64-v4", "x86_64-linux-gnu.2.17"),
    "linux_aarch64": _Target("aarch64-unknown-linux-gnu", "generic", "aarch64-linux-gnu.2.17"),
}


class _Package(NamedTuple):
    """A package that has libraries of its own: the modules of its kernels, and the one that they are declared with."""

    name: str
    declared_with: str
    modules: tuple[str, ...]


_PACKAGES: Final = (
    _Package(
        "local_log",
        "local_log.compiled",
        tuple(f"local_log.formats.kernels.{path.stem}" for path in sorted(_KERNELS.glob("*.py"))),
    ),
    _Package("tiering.endpoint", "tiering.endpoint.fetch_loop.compiled", ("tiering.endpoint.fetch_loop.kernel",)),
)


def _declared(package: _Package) -> list[tuple[Any, Any]]:
    """The kernels with their signatures. Numba compiles each for others only: its cache would keep what is not optimised."""
    found: list[tuple[Any, Any]] = []

    def record(*signature: Any, boundscheck: bool, inline: str = "never", **_: Any) -> Any:
        def of(kernel: Any) -> Any:
            found.extend((kernel, each) for each in signature)
            return njit(boundscheck=boundscheck, inline=inline)(kernel)

        return of

    import_module(package.declared_with).njit = record  # type: ignore[attr-defined]  # instead of numba's
    for module in package.modules:
        import_module(module)
    return found


def _translated(kernels: list[tuple[Any, Any]]) -> tuple[llvm.ModuleRef, dict[str, str]]:
    """All kernels and their faces in one module that is not optimised, and the name of the face of each kernel."""
    typing, context = cpu_target.typing_context, cpu_target.target_context
    whole, faces = llvm.parse_assembly(""), {}
    for kernel, signature in kernels:
        flags = compiler.Flags()
        flags.nrt, flags.no_cpython_wrapper, flags.no_cfunc_wrapper, flags.boundscheck = False, True, True, False
        result = compiler.compile_extra(typing, context, kernel, signature.args, signature.return_type, flags, {})
        module = ir.Module(f"face_{kernel.__name__}")
        module.triple = ""
        face = Face(module, context.subtarget(enable_nrt=False), result)
        face.write()
        faces[kernel.__name__] = face.name
        for text in (result.library.get_llvm_str(), cgutils.normalize_ir_text(str(module))):
            whole.link_in(llvm.parse_assembly(text))
    return whole, faces


def _object(text: str, shown: str, target: _Target) -> bytes:
    """The object file for a target; only `shown` can be seen from outside."""
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.processor, opt=_LEVEL, reloc="pic", codemodel="default"
    )
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration:
            one.linkage = "external" if one.name == shown else "internal"
    tuning = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return machine.emit_object(module)


def write(folder: Path) -> None:
    """Writes the library for each target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for package in _PACKAGES:
        into = folder.joinpath(*package.name.split("."), FOLDER)
        into.mkdir(parents=True)
        _write(into, package)


def _write(folder: Path, package: _Package) -> None:
    sources = sources_digest(import_module(package.declared_with).SOURCES)  # before they are read
    whole, faces = _translated(_declared(package))
    for name, target in TARGETS.items():
        init = llvm.parse_assembly(cgutils.normalize_ir_text(str(extension.written(name, faces, sources))))
        init.link_in(llvm.parse_assembly(str(whole)))
        code = folder / f"{name}.o"
        code.write_bytes(_object(str(init), f"PyInit_{name}", target))
        link = [sys.executable, "-m", "ziglang", "cc", "-target", target.platform, "-shared", "-nostdlib", "-Wl,-s"]
        library = folder / f"{name}{SUFFIX}"
        subprocess.run([*link, "-o", library.name, code.name], cwd=folder, check=True)
        library.write_bytes(with_digest(library.read_bytes()))
        code.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
