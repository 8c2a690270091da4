"""The C face of a kernel, as LLVM's IR: METH_FASTCALL's `PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t n)`.

It checks the format, item size and dimensions of each buffer, releases the GIL, calls the kernel, and returns its numbers. It
uses nothing outside the stable ABI of Python 3.11, so one library does for all versions since.
"""

from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj

I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
PTR, VOID = ir.IntType(8).as_pointer(), ir.VoidType()
FACE: Final = ir.FunctionType(PTR, [PTR, PTR.as_pointer(), I64])

# Py_buffer in words of 8 bytes: buf, obj, len, itemsize, (readonly, ndim), format, shape, strides, suboffsets, internal
_PY_BUFFER: Final = ir.ArrayType(I64, 10)
_BUF, _ITEM_SIZE, _READONLY_AND_NDIM, _FORMAT, _SHAPE = 0, 3, 4, 5, 6
_WRITABLE, _WITH_FORMAT, _C_CONTIGUOUS = 0x1, 0x4, 0x38
_FORMATS: Final = {
    types.uint8: "B",
    types.boolean: "?",
    types.int32: "i",
    types.uint32: "I",
    types.int64: "lq",
    types.uint64: "LQ",
}
"""The letters of the struct module by which a buffer says that it has such items."""


def declared(module: ir.Module, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
    """A function of Python's C API."""
    return cgutils.get_or_insert_function(module, ir.FunctionType(result, arguments), name)


def imported(module: ir.Module, name: str, kind: ir.Type) -> ir.GlobalVariable:
    """A variable of Python's C API."""
    return module.globals.get(name) or ir.GlobalVariable(module, kind, name)


class Face:
    """The face of one kernel, written to `module`."""

    def __init__(self, module: ir.Module, context: Any, compiled: Any) -> None:
        self.module, self.context = module, context
        self.signature, self.kernel = compiled.signature, compiled.fndesc
        self.name = f"py_{compiled.fndesc.qualname}"
        self.function = ir.Function(module, FACE, self.name)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.fail, self.wrong = self.function.append_basic_block("fail"), self.function.append_basic_block("wrong")
        arrays = [n for n, kind in enumerate(self.signature.args) if isinstance(kind, types.Array)]
        self.buffers = {n: self.builder.alloca(_PY_BUFFER) for n in arrays}
        for buffer in self.buffers.values():
            self.builder.store(_PY_BUFFER(None), buffer)  # so that one that was not filled may be released, too

    def write(self) -> None:
        """Writes all of it."""
        build, signature = self.builder, self.signature
        self._require(build.icmp_signed("==", self.function.args[2], I64(len(signature.args))), self.wrong)
        values = [self._value(n, kind) for n, kind in enumerate(signature.args)]
        thread = build.call(declared(self.module, "PyEval_SaveThread", PTR), [])
        kernel = self.context.declare_function(self.module, self.kernel)
        status, result = self.context.call_conv.call_function(build, kernel, signature.return_type, signature.args, values)
        build.call(declared(self.module, "PyEval_RestoreThread", VOID, PTR), [thread])
        self._require(status.is_ok, self.wrong)
        self._release()
        build.ret(self._boxed(result, signature.return_type))
        self._write_failures()

    def _require(self, condition: ir.Value, otherwise: ir.Block) -> None:
        following = self.function.append_basic_block()
        self.builder.cbranch(condition, following, otherwise)
        self.builder.position_at_end(following)

    def _value(self, n: int, kind: types.Type) -> ir.Value:
        given = self.builder.load(self.builder.gep(self.function.args[1], [I32(n)]))
        if n in self.buffers:
            return self._array(given, self.buffers[n], kind)
        if kind == types.boolean:
            truth = self.builder.call(declared(self.module, "PyObject_IsTrue", I32, PTR), [given])
            self._require(self.builder.icmp_signed(">=", truth, I32(0)), self.fail)
            return self.builder.icmp_signed("!=", truth, I32(0))
        return self._integer(given)

    def _integer(self, given: ir.Value) -> ir.Value:
        build = self.builder
        number = build.call(declared(self.module, "PyLong_AsUnsignedLongLongMask", I64, PTR), [given])
        following, doubted = self.function.append_basic_block(), self.function.append_basic_block()
        build.cbranch(build.icmp_signed("==", number, I64(-1)), doubted, following)
        build.position_at_end(doubted)
        error = build.call(declared(self.module, "PyErr_Occurred", PTR), [])
        build.cbranch(build.icmp_unsigned("==", error, PTR(None)), following, self.fail)
        build.position_at_end(following)
        return number

    def _array(self, given: ir.Value, buffer: ir.Value, kind: types.Array) -> ir.Value:
        build, context = self.builder, self.context
        flags = _C_CONTIGUOUS | _WITH_FORMAT | (_WRITABLE if kind.mutable else 0)
        get = declared(self.module, "PyObject_GetBuffer", I32, PTR, PTR, I32)
        got = build.call(get, [given, build.bitcast(buffer, PTR), I32(flags)])
        self._require(build.icmp_signed("==", got, I32(0)), self.fail)
        item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        self._require(build.icmp_signed("==", self._word(buffer, _ITEM_SIZE), I64(item)), self.wrong)
        dimensions = build.lshr(self._word(buffer, _READONLY_AND_NDIM), I64(32))
        self._require(build.icmp_signed("==", dimensions, I64(kind.ndim)), self.wrong)
        if not isinstance(kind.dtype, types.Record):  # of records the size has to do: their formats name all fields
            self._require_format(buffer, _FORMATS[kind.dtype])
        sizes = build.inttoptr(self._word(buffer, _SHAPE), I64.as_pointer())
        shape = [build.load(build.gep(sizes, [I32(d)])) for d in range(kind.ndim)]
        strides = [I64(item)]
        for d in range(kind.ndim - 1, 0, -1):
            strides.insert(0, build.mul(strides[0], shape[d]))
        array = context.make_array(kind)(context, build)
        data = build.inttoptr(self._word(buffer, _BUF), context.get_data_type(kind.dtype).as_pointer())
        arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=I64(item), meminfo=None)
        return array._getvalue()

    def _require_format(self, buffer: ir.Value, letters: str) -> None:
        """Without it arrays of floats, or of big-endian numbers, would pass."""
        build = self.builder
        said = build.inttoptr(self._word(buffer, _FORMAT), PTR)
        is_unaligned = build.icmp_unsigned("==", build.load(said), I8(ord("=")))  # a field of a structured array
        letter = build.load(build.select(is_unaligned, build.gep(said, [I32(1)]), said))
        fits = [build.icmp_unsigned("==", letter, I8(ord(one))) for one in letters]
        self._require(fits[0] if len(fits) == 1 else build.or_(*fits), self.wrong)

    def _word(self, buffer: ir.Value, n: int) -> ir.Value:
        return self.builder.load(self.builder.gep(buffer, [I32(0), I32(n)]))

    def _release(self) -> None:
        release = declared(self.module, "PyBuffer_Release", VOID, PTR)
        for buffer in self.buffers.values():
            self.builder.call(release, [self.builder.bitcast(buffer, PTR)])

    def _boxed(self, result: ir.Value, kind: types.Type) -> ir.Value:
        build = self.builder
        if kind == types.boolean:
            return build.call(declared(self.module, "PyBool_FromLong", PTR, I64), [build.zext(result, I64)])
        if kind == types.none:
            none = build.bitcast(imported(self.module, "_Py_NoneStruct", I64), PTR)
            build.call(declared(self.module, "Py_IncRef", VOID, PTR), [none])
            return none
        if isinstance(kind, types.UniTuple):
            made = build.call(declared(self.module, "PyTuple_New", PTR, I64), [I64(len(kind))])
            put = declared(self.module, "PyTuple_SetItem", I32, PTR, I64, PTR)
            for n, value in enumerate(cgutils.unpack_tuple(build, result)):
                build.call(put, [made, I64(n), self._boxed(value, kind.dtype)])
            return made
        name = "PyLong_FromLongLong" if kind.signed else "PyLong_FromUnsignedLongLong"
        return build.call(declared(self.module, name, PTR, I64), [result])

    def _write_failures(self) -> None:
        build = self.builder
        build.position_at_end(self.wrong)
        says = cgutils.make_bytearray(f"{self.kernel.qualname}: bad arguments\0".encode())
        text = build.bitcast(cgutils.global_constant(self.module, ".says", says), PTR)
        error = build.load(imported(self.module, "PyExc_TypeError", PTR))
        build.call(declared(self.module, "PyErr_SetString", VOID, PTR, PTR), [error, text])
        build.branch(self.fail)
        build.position_at_end(self.fail)
        self._release()
        build.ret(PTR(None))
