"""The preconditioned solver's iteration for vector TV alone, in one pass over the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.iteration import Iteration
from hsreject.context.kernels.site import new_multipliers
from hsreject.context.kernels.vector_tv_sweep import (
    Sweep,
    certify_rows,
    join_bands,
    new_sweep_scratch,
    sweep_bands,
)
from hsreject.context.problem import Array, Certificate

if TYPE_CHECKING:
    from hsreject.context.kernels.site_row import Steps
    from hsreject.context.workers import Workers

ROWS_OF_A_BAND = 8  # at least; the result does not depend on threads because the bands do not
MOST_BANDS = 64


class VectorTVIteration(Iteration):
    """Z and Y of a problem whose only prior is vector TV; see the kernels for the order of work."""

    def __init__(
        self, probability: Array, field: Array, dual: Array, edge_weight: Array, weight: float
    ) -> None:
        n_rows, n_classes, n_columns = field.shape
        self.n_bands = min(max(n_rows // ROWS_OF_A_BAND, 1), MOST_BANDS)
        self.weight = weight
        self.arrays = Sweep(
            field=field,
            dual=dual,
            probability=probability,
            edge_weight=edge_weight,
            multipliers=new_multipliers(field.shape, field.dtype),
            borders=np.zeros((self.n_bands, 2, n_classes, n_columns), field.dtype),
            bands=np.arange(self.n_bands + 1) * n_rows // self.n_bands,
        )

    def step(self, steps: Steps, workers: Workers) -> None:
        """Update Z and Y in place."""
        workers.share(
            self.n_bands,
            lambda first, last: sweep_bands(
                self.arrays, self.weight, steps, new_sweep_scratch(self.arrays.field), first, last
            ),
        )
        join_bands(self.arrays, self.weight, steps, new_sweep_scratch(self.arrays.field))

    def certify(self, workers: Workers) -> Certificate:
        """Return objective and gap of Z and Y as they are; g* of a projected Y is 0."""
        rows = np.empty((self.arrays.field.shape[0], 3))
        workers.share(
            len(rows),
            lambda first, last: certify_rows(
                self.arrays, new_sweep_scratch(self.arrays.field), rows, first, last
            ),
        )
        data, bound, variation = rows.sum(axis=0)
        objective = float(data + self.weight * variation)
        return Certificate(objective, gap=float(objective - bound))
