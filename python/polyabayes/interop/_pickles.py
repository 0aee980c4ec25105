"""Pickles read as data, by an interpreter that knows numbers, words, containers and arrays only.

That of Python runs what a file asks for. Even where nothing but data may be named, it follows a
few bytes into any amount of memory, or down the stack until the process dies.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MalformedPickleError", "Stored", "read_pickle"]

_KINDS = "biuf"
_MOST_AXES = 8
_NUMBERS_OF_NUMPY = ("bool", "bool_", "float16", "float32", "float64", "int32", "int64")
# Operations that push their argument, which pickletools has read.
_PUSHED = (
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class MalformedPickleError(ValueError):
    """A pickle that is damaged, or holds what is no data."""


class Stored:
    """An object of a pickle: the name of its class and its attributes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.attributes: dict[Any, Any] = {}

    def build(self, state: Any) -> None:
        """Take the attributes; generators have a state that is no dict, which nobody asks for."""
        if isinstance(state, dict):
            self.attributes = state


class _Named:
    """A class or function that a pickle names, and what it is called for here."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make


class _DataType:
    """A type of NumPy, by its code and its byte order."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or code[:1] not in _KINDS or code[1:] not in "1248":
            raise MalformedPickleError(f"it holds an array of the type {str(code)[:20]!r}")
        self.order, self.code = "<", code

    def build(self, state: Any) -> None:
        """Take the byte order, the second entry of a state."""
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", ">", "|", "="):
            raise MalformedPickleError("the type of an array is damaged")
        self.order = state[1]

    def array(self, content: Any, shape: Any, is_column_major: Any) -> NDArray[Any]:
        """The array whose bytes are `content`."""
        dtype = np.dtype(self.order + self.code)
        sizes = shape if isinstance(shape, tuple) and len(shape) <= _MOST_AXES else (-1,)
        if not isinstance(content, (bytes, bytearray)) or not all(
            type(size) is int and 0 <= size <= len(content) for size in sizes
        ):
            raise MalformedPickleError("an array is damaged")
        if math.prod(sizes) * dtype.itemsize != len(content):
            raise MalformedPickleError(f"an array of the shape {sizes} has {len(content)} bytes")
        order: Any = "F" if is_column_major else "C"
        return np.frombuffer(content, dtype).reshape(sizes, order=order)


class _Array:
    """An array of NumPy that is empty until its state is known."""

    def __init__(self, *_: Any) -> None:
        self.value: NDArray[Any] | None = None

    def build(self, state: Any) -> None:
        """Take version, shape, type, order and bytes."""
        if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[2], _DataType):
            raise MalformedPickleError("an array is damaged")
        self.value = state[2].array(state[4], state[1], state[3])


def _scalar(kind: Any, content: Any) -> Any:
    if not isinstance(kind, _DataType):
        raise MalformedPickleError("a number is damaged")
    return kind.array(content, (), False).item()


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> NDArray[Any]:
    if not isinstance(kind, _DataType):
        raise MalformedPickleError("an array is damaged")
    return kind.array(content, shape, order == "F")


def _a_list(values: Any = None) -> list[Any]:
    """Entries of a list or a set, which is no set here: hashes follow tuples down the stack."""
    if values is not None and not isinstance(values, list):
        raise MalformedPickleError("a list or set is damaged")
    return [] if values is None else values


def _a_dict(*_: Any) -> dict[Any, Any]:
    return {}


_NUMPY: dict[str, Callable[..., Any]] = {
    "_reconstruct": _Array,
    "_frombuffer": _from_buffer,
    "scalar": _scalar,
    "dtype": _DataType,
}
_PLAIN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "defaultdict"): _a_dict,
    ("collections", "OrderedDict"): _a_dict,
    ("builtins", "dict"): _a_dict,
    ("builtins", "list"): _a_list,
    ("builtins", "set"): _a_list,
    ("builtins", "frozenset"): _a_list,
    ("builtins", "int"): int,
    ("builtins", "float"): float,
}


def _named(module: Any, name: Any, package: str) -> Callable[..., Any]:
    """What a pickle may name: classes of its package as attributes, and what makes arrays."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise MalformedPickleError("the name of a class is damaged")
    module = "builtins" if module == "__builtin__" else module
    root = module.partition(".")[0]
    if root == "numpy" and name in _NUMPY:
        return _NUMPY[name]
    is_kept = root == package or module.startswith("numpy.random")
    if is_kept or (root == "numpy" and name in (*_NUMBERS_OF_NUMPY, "ndarray")):
        return lambda *_: Stored(name)
    if (module, name) in _PLAIN:
        return _PLAIN[module, name]
    raise MalformedPickleError(f"it holds {module[:60]}.{name[:60]}, which is no data of {package}")


class _Machine:
    """The stack, the marks and the memo of a pickle."""

    def __init__(self, package: str, n_bytes: int) -> None:
        self.package = package
        # Text that protocol 2 has for bytes stands in the file once, so it is decoded once.
        self.n_bytes_left = n_bytes
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        """The last value, above the last mark."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise MalformedPickleError("a value is missing")
        return self.stack.pop()

    def top(self) -> Any:
        """The last value, which stays."""
        value = self.pop()
        self.stack.append(value)
        return value

    def above_mark(self) -> list[Any]:
        """All values above the last mark, which goes."""
        if not self.marks:
            raise MalformedPickleError("a mark is missing")
        place = self.marks.pop()
        values = self.stack[place:]
        del self.stack[place:]
        return values

    def put(self, key: Any) -> None:
        """Keep the last value in the memo."""
        self.memo[key] = self.top()

    def get(self, key: Any) -> None:
        """Push a value of the memo."""
        if key not in self.memo:
            raise MalformedPickleError("a reference leads nowhere")
        self.stack.append(self.memo[key])

    def extend(self, values: list[Any]) -> None:
        """Add values to the list below them."""
        target = self.top()
        if not isinstance(target, list):
            raise MalformedPickleError("values have no list")
        target.extend(map(_whole, values))

    def fill(self, pairs: list[Any]) -> None:
        """Add keys and values to the dict below them."""
        target = self.top()
        if not isinstance(target, dict) or len(pairs) % 2:
            raise MalformedPickleError("values have no dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, (str, int, float)):
                raise MalformedPickleError("a key is neither word nor number")
            target[key] = _whole(value)

    def call(self, arguments: Any) -> None:
        """Call what is named below its arguments."""
        named = self.pop()
        if not isinstance(named, _Named) or not isinstance(arguments, tuple):
            raise MalformedPickleError("something is called that cannot be")
        try:
            self.stack.append(named.make(*arguments))
        except TypeError as error:
            raise MalformedPickleError("something is called with other arguments") from error

    def build(self) -> None:
        """Give the object below its state."""
        state, target = self.pop(), self.top()
        if isinstance(target, (Stored, _DataType, _Array)):
            target.build(state)
        elif not isinstance(target, dict):
            raise MalformedPickleError("a state has no object")

    def step(self, name: str, value: Any) -> None:
        """Do one operation."""
        if name in _PUSHED:
            self.stack.append(value)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            values = [self.pop() for _ in range(_TUPLES[name])]
            self.stack.append(tuple(map(_whole, reversed(values))))
        elif name in _OPERATIONS:
            _OPERATIONS[name](self, value)
        else:
            raise MalformedPickleError(f"it holds the operation {name}")

    def reduce_extended(self) -> None:
        """Call a class with arguments, those by keyword included, which are left out."""
        self.pop()
        self.call(self.pop())

    def name(self, module: Any, name: Any) -> None:
        """Push a class or a function."""
        is_bytes = (module, name) == ("_codecs", "encode")
        make = self.encoded if is_bytes else _named(module, name, self.package)
        self.stack.append(_Named(make))

    def encoded(self, text: Any, encoding: Any) -> bytes:
        """Bytes, as protocol 2 writes them."""
        if not isinstance(text, str) or encoding != "latin1" or len(text) > self.n_bytes_left:
            raise MalformedPickleError("bytes are damaged")
        self.n_bytes_left -= len(text)
        return text.encode("latin-1")


def _whole(value: Any) -> Any:
    """An array in place of what it was made from."""
    return value.value if isinstance(value, _Array) and value.value is not None else value


def _stack_global(machine: _Machine, _: Any) -> None:
    name, module = machine.pop(), machine.pop()
    machine.name(module, name)


_OPERATIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda _, __: None,
    "FRAME": lambda _, __: None,
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "POP": lambda machine, _: (machine.pop(), None)[1],
    "POP_MARK": lambda machine, _: (machine.above_mark(), None)[1],
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_SET": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(map(_whole, machine.above_mark()))),
    "LIST": lambda machine, _: machine.stack.append(list(map(_whole, machine.above_mark()))),
    "FROZENSET": lambda machine, _: machine.stack.append(machine.above_mark()),
    "APPEND": lambda machine, _: machine.extend([machine.pop()]),
    "APPENDS": lambda machine, _: machine.extend(machine.above_mark()),
    "ADDITEMS": lambda machine, _: machine.extend(machine.above_mark()),
    "SETITEM": lambda machine, _: machine.fill([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.fill(machine.above_mark()),
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": lambda machine, _: machine.put(len(machine.memo)),
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "GLOBAL": lambda machine, value: machine.name(*value.partition(" ")[::2]),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": lambda machine, _: machine.call(machine.pop()),
    "NEWOBJ": lambda machine, _: machine.call(machine.pop()),
    "NEWOBJ_EX": lambda machine, _: machine.reduce_extended(),
    "BUILD": lambda machine, _: machine.build(),
}


def read_pickle(content: bytes, package: str) -> Any:
    """The value that a pickle holds; objects of `package` become :class:`Stored`.

    Work and memory are in proportion to the bytes; no value is followed in depth.

    Raises
    ------
    MalformedPickleError
        If it is cut, damaged, or names anything but numbers, words, containers and arrays.
    """
    machine = _Machine(package, len(content))
    try:
        for operation, value, _ in pickletools.genops(content):
            if operation.name == "STOP":
                return _whole(machine.pop())
            machine.step(operation.name, value)
    except MalformedPickleError:
        raise
    except (ValueError, OverflowError) as error:
        raise MalformedPickleError(str(error)[:200]) from error
    raise MalformedPickleError("it is cut")
