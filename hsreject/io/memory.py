"""Whether an array that a file claims can be in memory, asked before it is made."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path


def check_memory(path: Path, shape: tuple[int, ...], itemsize: int) -> None:
    """Raise if an array is larger than the memory of this machine.

    Parameters
    ----------
    path : Path
        The file that claims it.
    shape : tuple of int
        Its axes.
    itemsize : int
        Bytes a value.
    """
    wanted = int(np.prod(shape, dtype=object)) * itemsize
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system: let the allocation decide
        return
    if wanted > there:
        raise FileError(
            f"{path} needs {wanted / 2**30:.0f} GiB for {' x '.join(map(str, shape))} values, this "
            f"machine has {there / 2**30:.0f}. Open it with chunks='auto'."
        )
