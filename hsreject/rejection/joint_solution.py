"""One solve of the joint problem, reduced to what rejection needs, and where it is kept."""

from __future__ import annotations

import math
import os
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.confidence import first_largest
from hsreject.errors import FileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_OPINION = 1e-3
"""Largest class value below which a field says nothing about the class of a rejected pixel."""

_NUMBERS = ("gap", "objective", "rejected_mass")

# what reading a file that is missing, cut or changed may raise; a wrong size may be claimed, too
_DAMAGE = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
)


@dataclass(frozen=True, eq=False)
class JointSolution:
    """What one solve says of each pixel.

    Attributes
    ----------
    category : array of int32 (y, x)
        Position of the largest of the K class values, -1 where the pixel is rejected beyond doubt
        (all are below `NO_OPINION`) or where there is no data.
    confidence : array of float32 (y, x)
        Largest class value minus the value of the rejection class; the pixel is rejected where it
        is negative. NaN where there is no data.
    gap : float
        Certified relative gap of the solve.
    n_iterations : int
    objective, rejected_mass : float
        See :class:`hsreject.rejection.joint_search.Probe`; NaN where they are not known.
    """

    category: NDArray[np.int32]
    confidence: NDArray[np.float32]
    gap: float
    n_iterations: int
    objective: float = math.nan
    rejected_mass: float = math.nan

    @classmethod
    def of_field(cls, field: NDArray[Any], *, n_classes: int, **known: Any) -> JointSolution:
        """Return the solution with that hidden field (category, y, x).

        Its first `n_classes` categories are classes; what remains, if anything, is rejection. The
        numbers that are `known` are handed on.
        """
        found = first_largest(field[:n_classes])
        category = found.position.astype(np.int32)
        unknown, confidence = np.isnan(found.value), found.value
        if len(field) > n_classes:
            confidence = confidence - reduce(np.add, field[n_classes:])
            unknown |= (found.value < NO_OPINION) & (confidence < 0)
        category[unknown] = -1
        return cls(category, confidence.astype(np.float32), **known)

    def fits(self, shape: tuple[int, ...], n_classes: int) -> bool:
        """Return whether this can be a solution of that size: what came from a file need not be."""
        return (
            self.category.shape == self.confidence.shape == shape
            and (self.category.dtype.kind, self.confidence.dtype.kind) == ("i", "f")
            and bool(((self.category >= -1) & (self.category < n_classes)).all())
        )

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Pixels that are rejected, (y, x); False where there is no data."""
        return self.confidence < 0


def rejected_mass(field: NDArray[Any], likelihood: NDArray[Any], n_classes: int) -> float:
    """Return the mean posterior probability of rejection over the pixels with data."""
    total = np.einsum("kyx,kyx->yx", field, likelihood)
    rejection = np.einsum("kyx,kyx->yx", field[n_classes:], likelihood[n_classes:])
    return float(np.nanmean(rejection / total, dtype=np.float64))


class SolutionStore:
    """Finished solves in a folder, one file each, so that an interrupted sweep can go on.

    A file is named after the fingerprint of everything that its solve depends on, and gets its name
    only when it is complete. A damaged file counts as none.

    Parameters
    ----------
    folder : str or Path
        Made when it does not exist.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"The folder for finished solves cannot be made: {error}. Choose another one."
            ) from error

    def load(self, key: str) -> JointSolution | None:
        """Return the solution kept under `key`, or None."""
        try:
            with self._path(key).open("rb") as file, np.load(file, allow_pickle=False) as kept:
                return JointSolution(
                    kept["category"],
                    kept["confidence"],
                    n_iterations=int(kept["n_iterations"]),
                    **{name: float(kept[name]) for name in _NUMBERS},
                )
        except _DAMAGE:
            return None

    def save(self, key: str, solution: JointSolution) -> None:
        """Keep a solution under `key`."""
        try:
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=f".{key[:16]}", suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    np.savez_compressed(
                        file,
                        category=solution.category,
                        confidence=solution.confidence,
                        n_iterations=solution.n_iterations,
                        **{name: getattr(solution, name) for name in _NUMBERS},
                    )
                Path(name).replace(self._path(key))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise FileError(
                f"A finished solve cannot be kept in {self.folder}: {error}. "
                "Make room there, or choose another folder."
            ) from error

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"
