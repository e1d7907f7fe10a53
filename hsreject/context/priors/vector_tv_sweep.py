"""The preconditioned solver's iteration for vector TV alone, in one pass over the memory."""

from __future__ import annotations

from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.context.iteration import Iteration
from hsreject.context.kernels.site import new_multipliers
from hsreject.context.kernels.vector_tv_sweep import (
    JOINING,
    SWEEPING,
    Sweep,
    SweepScratch,
    certify_rows,
    new_sweep_scratch,
    sweep_bands,
)
from hsreject.context.problem import Array, Certificate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hsreject.context.kernels.site_row import Steps
    from hsreject.context.workers import Workers

ROWS_OF_A_BAND = 8  # at least; the result does not depend on threads because the bands do not
MOST_BANDS = 16  # their last rows are done by one thread


class VectorTVIteration(Iteration):
    """Z and Y of a problem whose only prior is vector TV; see the kernels for the order of work."""

    def __init__(
        self, probability: Array, field: Array, dual: Array, edge_weight: Array, weight: float
    ) -> None:
        n_rows, n_classes, n_columns = field.shape
        self.n_bands = min(max(n_rows // ROWS_OF_A_BAND, 1), MOST_BANDS)
        self.weight = weight
        self.scratches: dict[int, SweepScratch] = {}
        self.arrays = Sweep(
            field=field,
            dual=dual,
            probability=probability,
            edge_weight=edge_weight,
            multipliers=new_multipliers(field.shape, field.dtype),
            borders=np.zeros((self.n_bands, 2, n_classes, n_columns), field.dtype),
            bands=np.arange(self.n_bands + 1) * n_rows // self.n_bands,
        )
        self.other_multipliers = new_multipliers(field.shape, field.dtype)

    @property
    def unknowns(self) -> tuple[Array, ...]:
        """Z and the dual."""
        return (self.arrays.field, self.arrays.dual)

    @property
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        """The compiled functions that are called."""
        return (sweep_bands, certify_rows)

    def compile(self, steps: Steps, workers: Workers) -> None:
        """Have the kernels compiled, without a change of Z and Y."""
        self._sweep(steps, SWEEPING, 0, 0)
        self._certify_rows(np.empty((0, 3)), 0, 0)

    def step(self, steps: Steps, workers: Workers) -> None:
        """Update Z and Y in place."""
        before_last, self.other_multipliers = self.other_multipliers, self.arrays.multipliers
        self.arrays = self.arrays._replace(multipliers=before_last)
        workers.share(self.n_bands, partial(self._sweep, steps, SWEEPING))
        self._sweep(
            steps, JOINING, 0, self.n_bands
        )  # few rows: not worth a second round of threads

    def certify(self, workers: Workers) -> Certificate:
        """Return objective and gap of Z and Y as they are; g* of a projected Y is 0."""
        rows = np.empty((len(self.arrays.field), 3))
        workers.share(len(rows), partial(self._certify_rows, rows))
        data, bound, variation = rows.sum(axis=0)
        objective = float(data + self.weight * variation)
        return Certificate(objective, gap=float(objective - bound))

    def _sweep(self, steps: Steps, phase: int, first: int, last: int) -> None:
        sweep_bands(self.arrays, self.weight, steps, self._scratch(), first, last, phase)

    def _certify_rows(self, rows: NDArray[np.float64], first: int, last: int) -> None:
        certify_rows(self.arrays, self._scratch(), rows, first, last)

    def _scratch(self) -> SweepScratch:
        """Return the room of this thread."""
        thread = get_ident()
        if thread not in self.scratches:
            self.scratches[thread] = new_sweep_scratch(self.arrays.field)
        return self.scratches[thread]
