"""What a context prior is: the extension point of the context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import tokenize

from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hsreject.context.grid import Grid
    from hsreject.context.iteration import Iteration
    from hsreject.context.scene_image import SceneImage
    from hsreject.context.workers import Workers

    Array = NDArray[np.floating[Any]]


class Prior(ABC):
    r"""What is believed about neighbouring pixels: a term of the objective, to be bound to a scene.

    A prior holds its parameters; :meth:`bind` makes the :class:`Term` that the solvers work with.
    A new prior is these two classes, and one line in ``hsreject/context/priors/__init__.py`` (or
    ``PRIORS.register("smoothness", Smoothness)``) to name it in configurations. As an example,
    here is the whole of one that penalises squared differences along rows, :math:`weight \sum_{i
    \sim j} \|z_i - z_j\|^2`:

    >>> import numpy as np
    >>> class Smoothness(Prior):
    ...     '''Squared differences between neighbours of a row.'''
    ...
    ...     def __init__(self, weight=1.0):
    ...         self.weight = check_weight(weight)
    ...
    ...     def bind(self, grid):
    ...         return SmoothnessTerm(grid, self.weight)
    >>> class SmoothnessTerm(Term):
    ...     squared_norm = 4.0
    ...
    ...     def __init__(self, grid, weight):
    ...         super().__init__(grid)
    ...         self.weight = weight
    ...         self.has_edge = (grid.valid[:, :-1] & grid.valid[:, 1:])[:, np.newaxis]
    ...
    ...     def forward(self, field):
    ...         return np.diff(field, axis=-1) * self.has_edge
    ...
    ...     def adjoint(self, coefficients):
    ...         return -np.diff(coefficients * self.has_edge, axis=-1, prepend=0, append=0)
    ...
    ...     def value(self, coefficients):
    ...         return self.weight * float(np.sum(coefficients**2, dtype=float))
    ...
    ...     def prox(self, coefficients, step):
    ...         return coefficients / (1 + 2 * step * self.weight)
    ...
    ...     def conjugate(self, dual):
    ...         squared = float(np.sum(dual**2, dtype=float))
    ...         return squared / (4 * self.weight) if squared > 0 else 0.0

    It works at once:

    >>> from hsreject.context.segsalsa import SegSALSA
    >>> probability = np.array([0.9, 0.4, 0.9]).reshape(1, 1, 3)
    >>> probability = np.concatenate([probability, 1 - probability])
    >>> SegSALSA(Smoothness(weight=5.0)).solve(probability).label
    array([[1, 1, 1]], dtype=uint8)
    """

    @abstractmethod
    def bind(self, grid: Grid) -> Term:
        """Return the term of this prior on `grid`."""

    @property
    def reach(self) -> int | None:
        """How many pixels around a block decide its labels; None: the whole scene does.

        A scene can be solved in blocks if every prior says how wide a margin they need, so that at
        least 99.9 % of the labels are those of the whole scene. By default nothing is promised.
        """
        return None

    @property
    def working_size(self) -> int:
        """How many numbers a pixel and class a solver keeps for this prior, temporaries included.

        It bounds the blocks in which a scene is solved; too large a number costs little.
        """
        return 32

    def on_scene(self, scene: SceneImage) -> Prior:
        """Return this prior with everything fixed that it takes from the image as a whole.

        Blocks of one scene then agree on it. A prior that does not look at the image is itself.
        """
        return self

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same prior: of one class, with the same parameters."""
        return type(self) is type(other) and tokenize(vars(self)) == tokenize(vars(other))

    def __hash__(self) -> int:
        """Return the same number for the same priors."""
        return hash((type(self), tokenize(vars(self))))

    def __repr__(self) -> str:
        """Return the call that makes this prior. Results keep it: all, and no address."""
        options = {name: getattr(self, name, ...) for name in signature(type(self)).parameters}
        said = (f"{name}={value!r}" for name, value in options.items() if value is not ...)
        return f"{type(self).__name__}({', '.join(said)})"


def check_weight(weight: float) -> float:
    """Return `weight` if it is a number of at least 0."""
    number = np.asarray(weight)
    if number.ndim or number.dtype.kind not in "iuf" or not 0 <= number < np.inf:
        raise InputError(f"weight must be a finite number of at least 0 (got {weight!r}).")
    return float(weight)


class Term(ABC):
    r"""A prior on one grid: the convex function :math:`Z \mapsto g(H Z)`.

    H is linear, g is convex with :math:`g(0) = 0`. Fields Z are arrays (y, category, x); the
    shape of the coefficients H Z is the term's own affair. Everything a solver knows of a prior
    is here. How the abstract methods are written is shown in :class:`Prior`; the others follow
    from them and may be overridden where a faster way exists.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    @property
    @abstractmethod
    def squared_norm(self) -> float:
        r"""An upper bound of :math:`\|H\|^2`, the largest eigenvalue of H'H; tight is fast."""

    @abstractmethod
    def forward(self, field: Array) -> Array:
        """Return H Z."""

    @abstractmethod
    def adjoint(self, coefficients: Array) -> Array:
        """Return H' V, a field."""

    @abstractmethod
    def value(self, coefficients: Array) -> float:
        """Return g(V)."""

    @abstractmethod
    def prox(self, coefficients: Array, step: float) -> Array:
        r"""Return :math:`\arg\min_U g(U) + \|U - V\|^2 / (2\,step)`."""

    @abstractmethod
    def conjugate(self, dual: Array) -> float:
        r"""Return :math:`g^*(Y) = \sup_V \langle V, Y \rangle - g(V)`, which may be infinity.

        Where g* is 0 or infinity (norms), duals that are feasible up to rounding count as feasible.
        """

    def prox_conjugate(self, dual: Array, step: float) -> Array:
        r"""Return the prox of g*; by Moreau :math:`Y - step\,prox_{g/step}(Y / step)`."""
        return dual - step * self.prox(dual / step, 1.0 / step)

    def gram_spectrum(self) -> Array | None:
        """Return the eigenvalues of H'H, (y, x), if the DCT-II of each class diagonalises it."""
        return None

    @cached_property
    def strength(self) -> float:
        """How large duals get, which sets the step sizes: right within a factor of a few is enough.

        By default g(H Z) per pixel and unit of H Z, on a field of random labels.
        """
        coefficients = self.forward(self._random_labels())
        norm = float(np.linalg.norm(coefficients.astype(np.float64).ravel()))
        n_pixels = self.grid.valid.size
        return self.value(coefficients) / (norm * np.sqrt(n_pixels)) if norm > 0 else 0.0

    def _random_labels(self) -> Array:
        n_rows, n_classes, n_columns = self.grid.shape
        label = np.random.default_rng(0).integers(n_classes, size=(n_rows, 1, n_columns))
        one_hot = np.arange(n_classes)[:, None] == label
        return np.where(self.grid.valid[:, None], one_hot, 1 / n_classes).astype(self.grid.dtype)

    def fuse(self, probability: Array, field: Array, dual: Array) -> Iteration | None:
        """Return a faster whole iteration for a problem with this term alone, if there is one."""
        return None

    @property
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        """The compiled functions that the term calls; it must change arrays through `workers` then.

        On first use they are compiled beforehand, and the user is told.
        """
        return ()

    def value_of_field(self, field: Array, workers: Workers) -> float:
        """Return g(H Z)."""
        return self.value(self.forward(field))

    def new_dual(self) -> Array:
        """Return the dual from which a solver starts: zeros of the shape of H Z."""
        return np.zeros_like(self.forward(np.zeros(self.grid.shape, self.grid.dtype)))

    def add_adjoint(self, dual: Array, field: Array, workers: Workers) -> None:
        """Add H'Y to `field` in place."""
        field += self.adjoint(dual)

    def update_dual(
        self,
        dual: Array,
        field: Array,
        *,
        step: float,
        relaxation: float,
        workers: Workers,
    ) -> None:
        """Move Y in place towards the prox of g* at Y + step H Z, by `relaxation` of the way."""
        target = self.prox_conjugate(dual + step * self.forward(field), step)
        dual += relaxation * (target - dual)
