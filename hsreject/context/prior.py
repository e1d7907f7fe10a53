"""What a context prior is: the extension point of the context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import xarray as xr
from dask.base import tokenize
from numpy.typing import NDArray
from scipy.ndimage import label

from hsreject.context.preconditioned_admm import Iteration
from hsreject.context.problem import STRONGEST, Array
from hsreject.errors import InputError
from hsreject.schema.classes import ClassTable
from hsreject.threads import Threads

LAYER = "layer"  # the dimension of what priors take from the image of a whole scene


@dataclass(frozen=True)
class Grid:
    """The pixels on which a problem is solved: what a prior may know when it is bound to a scene.

    Fields are stored as **(y, category, x)**: rows of one class are contiguous, which is what the
    compiled loops need. A difference along y is along axis 0, along x along axis -1.

    Parameters
    ----------
    valid : array of bool, (y, x)
        Pixels that have data. A prior must not couple the others with anything.
    n_classes : int
        Number of classes of the field, those of rejection included.
    dtype : dtype
        Type of fields and coefficients: float32 or float64.
    image : array, (band, y, x), optional
        The image that the scene's probabilities came from.
    good_bands : array of bool, (band,), optional
        Which bands of the image may be used where none are named; by default all.
    n_rejection_classes : int
        How many of the classes, the last ones, are rejection: 0 except in joint rejection.
    classes : ClassTable, optional
        Values and names of the other classes, in the order of the field, where they are known.
    train : array of int, (y, x), optional
        The training labels, 0 where there is none, where they are known: not in blocks of a scene
        and not on another scene than that of the labels.

    See Also
    --------
    hsreject.Prior : is bound to one.

    Examples
    --------
    Three rows of four pixels, two of them on the other side of a gap:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> valid = np.ones((3, 4), dtype=bool)
    >>> valid[2, :2] = valid[1] = False
    >>> grid = hr.Grid(valid, n_classes=2, dtype=np.dtype("float32"))
    >>> grid.shape
    (3, 2, 4)
    >>> grid.regions
    array([[1, 1, 1, 1],
           [0, 0, 0, 0],
           [0, 0, 2, 2]], dtype=int32)
    """

    valid: NDArray[np.bool_]
    n_classes: int
    dtype: np.dtype[Any]
    image: Array | None = None
    _: KW_ONLY
    good_bands: NDArray[np.bool_] | None = None
    n_rejection_classes: int = 0
    classes: ClassTable | None = None
    train: NDArray[np.integer[Any]] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of a field: (y, category, x)."""
        return (self.valid.shape[0], self.n_classes, self.valid.shape[1])

    @cached_property
    def regions(self) -> NDArray[np.int32]:
        """The parts of the footprint that nodata keeps apart, (y, x): 1, 2, ..., 0 without data.

        Neighbors share a side. A prior that couples only pixels of the same region leaves the two
        sides of a gap independent of each other.
        """
        numbers: NDArray[np.int32] = label(self.valid, output=np.int32)[0]
        return numbers

    def required_image(self, *, wanted_by: str) -> Array:
        """Return the image, or say who needs it."""
        if self.image is None:
            raise InputError(
                f"{wanted_by} needs the image and none was given. "
                "Pass it: SegSALSA(...).solve(probability, image=cube)."
            )
        return self.image

    def components(self, count: int, *, wanted_by: str) -> NDArray[np.float64]:
        """Return the leading principal components of the good bands, (component, y, x)."""
        # scikit-learn comes with it, which takes half a second; most priors need no image
        from hsreject.features.components import principal_components  # noqa: PLC0415

        image = self.required_image(wanted_by=wanted_by)
        good = image if self.good_bands is None else image[self.good_bands]
        return principal_components(good, self.valid, count)


class Prior(ABC):
    r"""What is believed about neighboring pixels: a term of the objective, to be bound to a scene.

    A prior holds its parameters; :meth:`bind` makes the :class:`~hsreject.Term` that the solvers
    work with. A new prior is these two classes; :func:`hsreject.check_prior` says what is wrong
    with them, and a file that holds them is a plugin, whose priors configurations name. As an
    example, here is the whole of one that penalises squared differences along rows,
    :math:`weight \sum_{i \sim j} \|z_i - z_j\|^2`:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> class Smoothness(hr.Prior):
    ...     '''Squared differences between neighbors of a row.'''
    ...
    ...     def __init__(self, weight=1.0):
    ...         self.weight = weight
    ...
    ...     def bind(self, grid):
    ...         return SmoothnessTerm(grid, self.weight)
    >>> class SmoothnessTerm(hr.Term):
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
    ...         padded = np.pad(coefficients * self.has_edge, ((0, 0), (0, 0), (1, 1)))
    ...         return -np.diff(padded, axis=-1)
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

    >>> hr.check_prior(Smoothness(weight=5.0))
    >>> probability = np.array([0.9, 0.4, 0.9]).reshape(1, 1, 3)
    >>> probability = np.concatenate([probability, 1 - probability])
    >>> hr.SegSALSA(Smoothness(weight=5.0)).solve(probability).label
    array([[1, 1, 1]], dtype=uint8)

    See Also
    --------
    hsreject.check_prior : says what is wrong with one.
    hsreject.Term : the prior on one scene.
    hsreject.VectorTV : one that is built in.
    """

    @abstractmethod
    def bind(self, grid: Grid) -> Term:
        """Return the term of this prior on `grid`: its pixels with data, image, classes, labels."""

    # A scene that is too large to be solved at once is solved in blocks, each with a halo of pixels
    # around it. A prior without a halo is solved on whole scenes only. One that has a halo
    # and looks at the image has a guide: blocks do not see the image.

    @property
    def halo(self) -> int | None:
        """Pixels around a block that decide 99.9 % of its labels; None: the whole scene does.

        It grows with the weight. 8 pixels per unit of weight, and at least 16, are a rule to start
        from for priors that tie direct neighbors like total variation; a prior that ties pixels d
        apart needs d times as many. :func:`hsreject.check_prior` tries it.
        """
        return None

    @property
    def working_size(self) -> int:
        """At most how many numbers per pixel and class solving takes: it bounds blocks."""
        return 32

    @property
    def n_guide_layers(self) -> int:
        """How many layers :meth:`guide` has; 0 if the prior does not look at the image."""
        return 0

    def guide(self, image: xr.DataArray) -> xr.DataArray:
        """Return what the prior takes from the image (band, y, x) of a whole scene: (layer, y, x).

        For example edge weights, whose scale is a mean over the whole scene and would differ from
        block to block. The guide is made once, lazy if the image is, and cut into blocks together
        with the scene.
        """
        raise NotImplementedError

    def in_block(self, layers: Array) -> Prior:
        """Return this prior for a block, which sees its part (layer, y, x) of the guide only."""
        return self

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same prior: of one class, with the same parameters."""
        return type(self) is type(other) and tokenize(vars(self)) == tokenize(vars(other))

    def __hash__(self) -> int:
        """Return the same number for the same priors."""
        return hash((type(self), tokenize(vars(self))))

    def __repr__(self) -> str:
        """Return the call that makes this prior; results keep it, so it has no address in it."""
        options = {name: getattr(self, name, ...) for name in signature(type(self)).parameters}
        words = (f"{name}={value!r}" for name, value in options.items() if value is not ...)
        return f"{type(self).__name__}({', '.join(words)})"


class Term(ABC):
    r"""A prior on one grid: the convex function :math:`Z \mapsto g(H Z)`.

    H is linear and g convex, 0 at 0 and not negative where H Z comes from distributions: the
    tolerance is a share of the objective. So a linear g is allowed (what a class costs at a place,
    at least 0), and so is a constraint, a g that is 0 or infinite, with :meth:`feasible`; it need
    not hold at 0. There are no variables beside Z: a g that is itself a minimum over others needs
    its own prox. Fields Z are arrays (y, category, x); coefficients H Z may have any shape. No
    method changes its arguments, except those that say so, and numbers keep the precision of the
    grid. Everything a solver knows of a prior is here. :class:`~hsreject.Prior` shows how the
    abstract methods are written; the others follow from them and may be overridden where a faster
    way exists.

    Parameters
    ----------
    grid : Grid
        What ``bind`` was given.

    See Also
    --------
    hsreject.Prior : makes terms.
    hsreject.check_prior : compares every method with its definition.

    Examples
    --------
    Total variation of a row with one edge; H takes differences along y and x:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> grid = hr.Grid(np.ones((1, 3), dtype=bool), 2, np.dtype(float))
    >>> term = hr.VectorTV(weight=2.0).bind(grid)
    >>> differences = term.forward(np.array([[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]))
    >>> round(term.value(differences), 6)  # weight times the length of (-1, 1)
    2.828427
    >>> float(np.abs(term.prox(differences, step=10.0)).max())  # so strong that nothing is left
    0.0
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

        Duals may miss its domain by rounding: the certificate then takes one inside of it. Room
        that this leaves beyond the domain is missing in the gap, so it should be some roundings of
        the type of `dual`.
        """

    def prox_conjugate(self, dual: Array, step: float) -> Array:
        r"""Return the prox of g*; by Moreau :math:`Y - step\,prox_{g/step}(Y / step)`."""
        return dual - step * self.prox(dual / step, 1.0 / step)

    def feasible(self, field: Array) -> Array:
        """Return a distribution field near `field` where g(H Z) is finite: itself, for most priors.

        A constraint (g is 0 or infinite) is met by the iterates of a solver in the limit only. The
        certificate is that of the field that this returns, and so is the answer.
        """
        return field

    def gram_spectrum(self) -> Array | None:
        """Return the eigenvalues of H'H, (y, x), if the DCT-II of each class diagonalises it."""
        return None

    @cached_property
    def strength(self) -> float:
        """How large duals get, which sets the step sizes: within a factor of a few is enough.

        By default g(H Z) per pixel and unit of H Z, on a field of random labels; where that is
        infinite, the largest that counts, because constraints balance any data.
        """
        n_rows, n_classes, n_columns = self.grid.shape
        drawn = np.random.default_rng(0).integers(n_classes, size=(n_rows, 1, n_columns))
        one_hot = np.arange(n_classes)[:, None] == drawn
        field = np.where(self.grid.valid[:, None], one_hot, 1 / n_classes)
        coefficients = self.forward(field.astype(self.grid.dtype))
        norm = float(np.linalg.norm(coefficients.astype(np.float64).ravel()))
        value = self.value(coefficients)
        if not np.isfinite(value):
            return STRONGEST
        return value / (norm * np.sqrt(self.grid.valid.size)) if norm > 0 else 0.0

    def in_double_precision(self) -> Term:
        """Return this term for arrays of double precision, with its own numbers as they are.

        Certificates are computed with it. Where numbers of the grid's precision meet arrays of
        double precision, the result is of double precision.
        """
        double = copy(self)
        double.grid = replace(self.grid, dtype=np.dtype(np.float64))
        return double

    def new_dual(self) -> Array:
        """Return the dual from which a solver starts: zeros of the shape of H Z."""
        return np.zeros_like(self.forward(np.zeros(self.grid.shape, self.grid.dtype)))

    def value_of_field(self, field: Array, threads: Threads) -> float:
        """Return g(H Z)."""
        return self.value(self.forward(field))

    def add_adjoint(self, dual: Array, field: Array, threads: Threads) -> None:
        """Add H'Y to `field` in place."""
        field += self.adjoint(dual)

    def update_dual(
        self, dual: Array, field: Array, *, step: float, relaxation: float, threads: Threads
    ) -> None:
        """Move Y in place towards the prox of g* at Y + step H Z, by `relaxation` of the way."""
        target = self.prox_conjugate(dual + step * self.forward(field), step)
        dual += relaxation * (target - dual)

    def fuse(self, probability: Array, field: Array, dual: Array) -> Iteration | None:
        """Return a faster whole iteration for a problem with this term alone, if there is one."""
        return None
