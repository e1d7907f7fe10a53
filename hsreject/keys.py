"""Keys of what is kept on disk: hashes of objects that also change with the code behind them."""

from __future__ import annotations

import hashlib
import pickle
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import (
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

from hsreject import __version__

_OWN = __name__.partition(".")[0]
_STANDARD = Path(sysconfig.get_path("stdlib"))
_PACKAGES = {"site-packages", "dist-packages"}


def key_of(*parts: object) -> str | None:
    """Return a hash of objects and of their code, the same in every process; None if there is none.

    Pickle tells functions and classes apart by name: results of yesterday's code would be taken for
    those of today's. Here the code of whoever calls hsreject counts itself, with all that it names
    (constants, other functions, values in closures); code of installed packages counts by the time
    at which its file was installed, hsreject by its version. What cannot be pickled has no key, so
    that nothing which depends on it is kept.

    Examples
    --------
    >>> key_of(lambda x: x + 1) == key_of(lambda x: x + 2)
    False
    >>> key_of(number for number in range(3)) is None
    True
    """
    digest = _Digest()
    try:
        _CodePickler(digest).dump((__version__, parts))
    except Exception:  # noqa: BLE001  # whatever an object raises that cannot be pickled
        return None
    return digest.hash.hexdigest()


class _Digest:
    """A file that keeps nothing but the hash of what is written."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.hash.update(data)


class _CodePickler(pickle.Pickler):
    """Pickles objects for a hash, never to be read again: code by what it does."""

    def __init__(self, file: _Digest) -> None:
        super().__init__(file, protocol=5)
        self.fast = True  # else it would count whether equal texts are one object or two
        self._order: dict[int, int] = {}  # of code that was met: functions may call each other

    def reducer_override(self, part: Any) -> Any:
        """Return what stands for code, or leave the rest to pickle."""
        if "py_func" in getattr(part, "__dict__", ()):
            part = part.py_func  # compiled by numba
        if isinstance(part, FunctionType | type):
            return self._of_code(part)
        described = _described(part)
        return NotImplemented if described is None else (tuple, (described,))

    def _of_code(self, part: FunctionType | type) -> Any:
        """Return what stands for a function or a class."""
        local = "<" in part.__qualname__  # made inside a function: what it encloses counts
        age = None if local else _age(part.__module__)
        if age == 0:
            return NotImplemented
        if age is not None:
            return tuple, ((part.__module__, part.__qualname__, age),)
        if id(part) in self._order:
            return tuple, (("met before", self._order[id(part)]),)
        self._order[id(part)] = len(self._order)
        return tuple, (_of_class(part) if isinstance(part, type) else _of_function(part),)


def _described(part: Any) -> tuple[Any, ...] | None:
    """Return what distinguishes pieces of code that pickle does not take; None for all else."""
    found: tuple[Any, ...] | None = None
    match part:
        case CodeType():
            found = part.co_code, part.co_names, tuple(map(_in_order, part.co_consts))
        case ModuleType():
            found = (part.__name__,)
        case property():
            found = part.fget, part.fset
        case classmethod() | staticmethod():
            found = (part.__func__,)
        case cached_property():
            found = (part.func,)
        case MappingProxyType():
            found = (dict(part),)
    return found


def _in_order(constant: Any) -> Any:
    """Return a constant of a function; the order of a set differs from process to process."""
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant


def _of_function(function: FunctionType) -> tuple[Any, ...]:
    cells = [cell for cell in function.__closure__ or () if cell != CellType()]  # but empty ones
    return (
        function.__code__,
        function.__defaults__,
        function.__kwdefaults__,
        [cell.cell_contents for cell in cells],
        dict(_named_globals(function.__code__, function.__globals__)),
    )


def _named_globals(code: CodeType, place: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function and those inside it name, attributes of modules too."""
    for name in code.co_names:
        if name not in place:
            continue
        value = place[name]
        yield name, value
        if isinstance(value, ModuleType) and _age(value.__name__) is None:
            inside = [other for other in code.co_names if hasattr(value, other)]
            yield from ((f"{name}.{other}", getattr(value, other)) for other in inside)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named_globals(constant, place)


def _of_class(kind: type) -> tuple[Any, ...]:
    slots = MemberDescriptorType | GetSetDescriptorType
    own = {
        name: value
        for name, value in vars(kind).items()
        if name != "_abc_impl"
        and not isinstance(value, slots)
        and (isinstance(value, FunctionType) or not name.startswith("__"))
    }
    return kind.__qualname__, kind.__bases__, own


def _age(module: str) -> int | None:
    """Return when the code of a module was installed; 0 if its name says all, None if a user's."""
    if module.partition(".")[0] == _OWN:
        return 0
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None if module == "__main__" else 0
    path = Path(file)
    if _STANDARD in path.parents or _PACKAGES.intersection(path.parts):
        return path.stat().st_mtime_ns
    return None
