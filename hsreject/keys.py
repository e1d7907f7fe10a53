"""Keys of results on disk: hashes of objects whose code cannot change unnoticed."""

from __future__ import annotations

import hashlib
import pickle
import sys
import sysconfig
from io import BytesIO
from pathlib import Path
from types import FunctionType
from typing import Any

from hsreject import __version__

_OWN = (Path(sysconfig.get_path("stdlib")), Path(__file__).parent)  # of Python, and of hsreject
_OF_PACKAGES = {"site-packages", "dist-packages"}  # of this environment, its base, or the user


def key_of(*parts: object) -> str | None:
    """Return a hash of objects, the same in every process; None where it could miss a change.

    Pickle stores functions and classes by name only: after an edit of their code, the results of
    yesterday would be taken for today's. So whatever depends on code outside installed packages has
    no key, and is not kept.

    Examples
    --------
    >>> from hsreject.keys import key_of
    >>> key_of(1.0, "margin") == key_of(1.0, "margin") != key_of(2.0, "margin")
    True
    >>> key_of(lambda x: x + 1) is None
    True
    """
    stream = BytesIO()
    pickler = _InstalledPickler(stream, protocol=5)
    pickler.fast = True  # no back references: equal texts give equal bytes, shared or not
    try:
        pickler.dump((__version__, parts))
    except Exception:  # noqa: BLE001  # whatever an object raises that cannot be pickled
        return None
    return hashlib.sha256(stream.getbuffer()).hexdigest()


class _InstalledPickler(pickle.Pickler):
    """Pickles objects unless they name code that is not installed."""

    def reducer_override(self, part: Any) -> Any:
        if isinstance(part, FunctionType | type) and not _is_installed(part.__module__):
            raise pickle.PicklingError
        return NotImplemented


def _is_installed(module: str) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module != "__main__"  # compiled into Python
    folders = Path(file).parents
    return any(folder in _OWN or folder.name in _OF_PACKAGES for folder in folders)
