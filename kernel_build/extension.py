"""The extension module that has the kernels: its table of methods and its `PyInit_` function, as LLVM's IR."""

from collections.abc import Mapping
from typing import Final

from llvmlite import ir
from numba.core import cgutils

from kernel_build.face import FACE, I32, I64, PTR, declared

_METH_FASTCALL: Final = 0x80
_ABI: Final = 3  # PYTHON_ABI_VERSION, of the stable ABI
_WORDS_OF_DEFINITION: Final = 13
_NAME_AT, _SIZE_AT, _METHODS_AT = 5, 7, 8
_METHOD: Final = ir.LiteralStructType([PTR, PTR, I64, PTR])  # PyMethodDef: name, function, flags (an int and padding), docstring


def written(name: str, faces: Mapping[str, str], sources: str) -> ir.Module:
    """A module with `PyInit_name` for kernels with the faces of these names; `SOURCES` says what they were compiled from."""
    module = ir.Module(f"extension_{name}")
    module.triple = ""  # whoever links it with the kernels names the target
    methods = _array(module, "methods", _METHOD, [_method(module, kernel, face) for kernel, face in faces.items()])
    # PyModuleDef: reference count and type of an object, m_init, m_index, m_copy, m_name, m_doc, m_size, m_methods, and four more
    words = [I64(1), *[I64(0)] * (_WORDS_OF_DEFINITION - 1)]
    words[_NAME_AT], words[_SIZE_AT], words[_METHODS_AT] = _address(_text(module, name)), I64(-1), _address(methods)
    definition = _array(module, "definition", I64, words)
    start = ir.Function(module, ir.FunctionType(PTR, []), f"PyInit_{name}")
    build = ir.IRBuilder(start.append_basic_block("entry"))
    create = declared(module, "PyModule_Create2", PTR, PTR, I32)
    made = build.call(create, [build.bitcast(definition, PTR), I32(_ABI)])
    with build.if_then(build.icmp_unsigned("!=", made, PTR(None))):
        add = declared(module, "PyModule_AddStringConstant", I32, PTR, PTR, PTR)
        build.call(add, [made, _text(module, "SOURCES"), _text(module, sources)])
    build.ret(made)
    return module


def _method(module: ir.Module, kernel: str, face: str) -> ir.Constant:
    function = ir.Function(module, FACE, face)
    return ir.Constant(_METHOD, [_text(module, kernel), function.bitcast(PTR), I64(_METH_FASTCALL), PTR(None)])


def _array(module: ir.Module, name: str, kind: ir.Type, items: list[ir.Constant]) -> ir.GlobalVariable:
    end = [ir.Constant(kind, None)]  # of a table of methods; a definition has one word more than is read
    array = ir.GlobalVariable(module, ir.ArrayType(kind, len(items) + 1), name)
    array.initializer = ir.Constant(array.value_type, items + end)
    array.linkage = "internal"
    return array


def _text(module: ir.Module, text: str) -> ir.Constant:
    return cgutils.global_constant(module, "said", cgutils.make_bytearray(f"{text}\0".encode())).bitcast(PTR)


def _address(constant: ir.Constant) -> ir.Constant:
    return constant.ptrtoint(I64)
