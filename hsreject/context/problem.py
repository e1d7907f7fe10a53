"""The convex problem of SegSALSA and what a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hsreject.context.priors.base import Term

Array = NDArray[np.floating[Any]]

WEAKEST, STRONGEST = 0.05, 15.0


@dataclass(frozen=True)
class Problem:
    r"""Minimise :math:`\sum_i -\log(p_i'z_i) + \sum_j g_j(H_j Z)` over fields on the simplex.

    Parameters
    ----------
    probability : array, (y, category, x)
        The likelihoods p; 1 in every class where there is no data, so that the data term is 0.
    terms : tuple of Term
        The priors, bound to the grid.
    """

    probability: Array
    terms: tuple[Term, ...]

    @property
    def strength(self) -> float:
        """How strongly all priors pull together; sets the step sizes.

        Within bounds: with weak priors longer steps gain nothing and cost digits; with strong ones
        the duals no longer grow with the weights, because what they balance is the data.
        """
        return min(max(sum(term.strength for term in self.terms), WEAKEST), STRONGEST)

    @property
    def rounding(self) -> float:
        """How exactly an objective can be known: the rounding of one number a pixel."""
        n_rows, _, n_columns = self.probability.shape
        return float(8 * np.finfo(self.probability.dtype).eps * n_rows * n_columns)


@dataclass(frozen=True)
class State:
    """A field on the simplex and the duals of all terms: from here a solver can go on.

    Attributes
    ----------
    field : array, (y, category, x)
    duals : tuple of arrays
        One a prior, in the order of the priors.
    """

    field: Array
    duals: tuple[Array, ...]


@dataclass(frozen=True)
class Certificate:
    """The objective F of a field, and how far at most it lies above the optimum.

    Attributes
    ----------
    objective : float
        F(Z).
    gap : float
        An upper bound of F(Z) - min F.
    """

    objective: float
    gap: float


@dataclass(frozen=True)
class Checkpoint:
    """Objective and gap after a number of iterations."""

    n_iterations: int
    objective: float
    gap: float

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective."""
        return self.gap / self.objective if self.objective > 0 else float(self.gap > 0)


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped, and the certificates on its way there (the last one is its own)."""

    state: State
    history: tuple[Checkpoint, ...]
    converged: bool
