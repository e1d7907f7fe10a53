"""Random walkers: the classes of training pixels, carried over a scene but not across its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from dask.base import tokenize
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hsreject import __version__, schema
from hsreject.errors import InputError
from hsreject.features.chains import CHAINS, fit_chain
from hsreject.features.diffusion import N_GUIDES, EdgeGraph, Solver, data_pixels, linear_solver
from hsreject.features.pixels import located_samples, on_the_grid_of
from hsreject.features.spatial import Smooth
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_choice, check_count, check_number
from hsreject.sampling.draws import deal_folds
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classes import ClassTable

GRAPHS = ((3.0, 0.0), (10.0, 1.0))

LEAK = 1e-4

_COLUMNS_AT_ONCE = 32  # right-hand sides solved together: bounds the memory
_LEAST_SINGLE = 1e-5  # leak from which single precision will do: at 1e-4 it errs by 5e-5


HeldOut = tuple[xr.DataArray, "NDArray[np.bool_]"]
"""Probabilities (category, y, x) without the training pixels of a fold, and their mask (y, x)."""


def node_map(
    scene: xr.DataArray,
    pixels: NDArray[np.intp],
    probability: NDArray[np.floating[Any]],
    classes: ClassTable,
) -> xr.DataArray:
    """Return probabilities (node, category) of some pixels as a map (category, y, x)."""
    data = np.full((probability.shape[1], scene[0].size), np.nan, dtype=np.float32)
    data[:, pixels] = probability.T
    coords = {schema.CATEGORY: np.asarray(classes.values)}
    data = data.reshape(len(data), *scene.shape[1:])
    on_grid = on_the_grid_of(scene, data, dim=schema.CATEGORY, coords=coords)
    return schema.attach_classes(on_grid, classes).rename("probability")


def scene_graphs(
    *guides: xr.DataArray, graphs: Iterable[tuple[float, float]] = GRAPHS
) -> Iterator[EdgeGraph]:
    """Yield an edge graph of sets of guides (band, y, x) per pair of contrast and smoothing."""
    for contrast, sigma in graphs:
        smooth = [Smooth(sigma).fit_transform(one) if sigma else one for one in guides]
        yield EdgeGraph.of(*(one.values for one in smooth), contrast=contrast)


def walk(
    laplacian: sparse.csr_array,
    seeds: NDArray[np.intp],
    target: NDArray[np.float64],
    fold: NDArray[np.intp],
    *,
    leak: float = LEAK,
) -> Iterator[NDArray[np.float32]]:
    """Yield which class's seed a walker from each node meets first, fields (node, category).

    The first field walks to all seeds, field 1 + f to those outside fold f. `target` (seed,
    category) holds the classes of the seeds, `fold` their folds, -1 for a seed that is always kept.

    A field solves (L + leak I) R = 0 but at the seeds, where its values are fixed. Seeds that are
    always kept are eliminated. With G the inverse of what is left of L + leak I, a field is G times
    charges at the other seeds, plus what the eliminated ones give, and the charges follow from the
    values at the seeds in use: one factorisation serves all folds, and leaving one out is a small
    dense system.
    """
    dealt = fold >= 0
    free = np.ones(laplacian.shape[0], dtype=bool)
    free[seeds[~dealt]] = False
    precision = np.float32 if leak >= _LEAST_SINGLE else np.float64
    matrix = (laplacian + leak * sparse.eye_array(free.size)).astype(precision).tocsr()[free]
    solve = linear_solver(matrix[:, free])
    source = -(matrix[:, seeds[~dealt]] @ target[~dealt].astype(precision))
    at = (np.cumsum(free) - 1)[seeds[dealt]]
    inverse = _inverse_at(solve, at, len(source))
    given = solve(source)[at] if 0 < len(at) < len(seeds) else np.zeros((len(at), target.shape[1]))
    for left_out in range(-1, fold.max(initial=-1) + 1):
        used = np.flatnonzero(fold[dealt] != left_out)
        charge = np.linalg.solve(inverse[np.ix_(used, used)], (target[dealt] - given)[used])
        sides = source.copy()
        sides[at[used]] += charge
        field = np.empty((free.size, target.shape[1]), dtype=np.float32)
        field[free] = solve(sides)
        field[seeds[~dealt]] = target[~dealt]
        _share_rest(field)
        yield field


def _inverse_at(solve: Solver, at: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Return rows and columns `at` of the inverse of a system with so many nodes."""
    inverse = np.empty((len(at), len(at)))
    for first in range(0, len(at), _COLUMNS_AT_ONCE):
        some = at[first : first + _COLUMNS_AT_ONCE]
        unit = np.zeros((count, len(some)), dtype=np.float32, order="F")
        unit[some, np.arange(len(some))] = 1.0
        inverse[:, first : first + len(some)] = solve(unit)[at]
    return inverse


def _share_rest(field: NDArray[np.float32]) -> None:
    """Give all classes of (node, category) an equal share of the walkers that met no seed."""
    np.maximum(field, 0, out=field)
    field += np.maximum(1 - field.sum(axis=1, keepdims=True), 0) / field.shape[1]
    field /= field.sum(axis=1, keepdims=True)  # a solver's error may have made it more than one


def walk_graphs(
    graphs: Iterable[EdgeGraph],
    positions: NDArray[np.intp],
    target: NDArray[np.float64],
    fold: NDArray[np.intp],
    *,
    leak: float = LEAK,
    progress: Callable[[int], object],
) -> NDArray[np.float32]:
    """Return the mean over graphs of :func:`walk` from seeds at these positions of the image.

    All of its fields in one array (1 + n_folds, node, category).
    """
    total = np.empty(0, dtype=np.float32)
    for done, graph in enumerate(graphs, start=1):
        node = np.empty(graph.pixels.max() + 1, dtype=np.intp)
        node[graph.pixels] = np.arange(graph.pixels.size)
        if not total.size:
            shape = (fold.max(initial=-1) + 2, graph.pixels.size, target.shape[1])
            total = np.zeros(shape, dtype=np.float32)
        with one_blas_thread():
            fields = walk(graph.laplacian, node[positions], target, fold, leak=leak)
            for number, field in enumerate(fields):
                total[number] += field
        progress(done)
    total /= done
    return total


class RandomWalker(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Probabilities of meeting the training pixels of a class first, on a random walk.

    A walker starts at a pixel and steps to one of its four neighbours, the more likely the more
    alike they are (the weights of :class:`~hsreject.Diffuse`), until it stands on a training pixel
    or gives up. The probability of a class is that of ending on one of its training pixels. With
    the Laplacian L of the graph, :math:`G = (L + \epsilon I)^{-1}`, the training pixels A, their
    classes :math:`Y_A` and the leak :math:`\epsilon`,

    .. math:: R = G_{\cdot A} \, G_{AA}^{-1} \, Y_A

    averaged over graphs of different contrast and smoothing. What is missing to a sum of one,
    the walkers that gave up, is shared equally by all classes: a field without a training pixel is
    left by few walkers, so it does not take the class of the fields around it but stays uncertain.
    The method knows where training pixels lie, not what their spectra are: it maps the scene that
    holds them and no other.

    Parameters
    ----------
    chain : {"mnf", "raw", "normalized"}, default "mnf"
        What tells where edges are: components in units of noise, of scaled bands, or of scaled
        spectra of unit length.
    n_guides : int, default 10
        How many components.
    graphs : sequence of pairs of float, default ((3, 0), (10, 1))
        For each graph, how much an edge of average height holds walkers back, and by how many
        pixels the components are smoothed before edges are measured; 0 or larger.
    leak : float, default 1e-4
        How readily walkers give up, above 0, in units of the weight of an edge between equal
        pixels.

    Attributes
    ----------
    classes_ : ndarray of int
        The label values that had a training pixel with data, ascending.
    class_table_ : ClassTable
        Their names and colours.
    n_training_pixels_ : int
        Number of labelled pixels that had data.

    References
    ----------
    L. Grady, "Random walks for image segmentation", IEEE TPAMI 28(11), 2006.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import RandomWalker
    >>> values = np.where(np.arange(8) < 4, 0.0, 9.0) * np.ones((1, 6, 1))
    >>> cube = xr.DataArray(values, dims=("band", "y", "x"))
    >>> labels = xr.zeros_like(cube[0], dtype="uint8")
    >>> labels[2, 1], labels[3, 6] = 1, 2
    >>> probability = RandomWalker("raw").fit_predict_proba(cube, labels)
    >>> probability.idxmax("category").values[0]
    array([1., 1., 1., 1., 2., 2., 2., 2.])
    """

    def __init__(
        self,
        chain: str = "mnf",
        *,
        n_guides: int = N_GUIDES,
        graphs: Sequence[tuple[float, float]] = GRAPHS,
        leak: float = LEAK,
    ) -> None:
        self.chain = chain
        self.n_guides = n_guides
        self.graphs = graphs
        self.leak = leak

    def fit(self, cube: xr.DataArray, labels: xr.DataArray) -> Self:
        """Walk over a scene.

        Parameters
        ----------
        cube : DataArray (band, y, x)
            The scene; NaN is no data. Its components are held in memory.
        labels : DataArray (y, x) of integers
            The training pixels, 0 where there is none.
        """
        self.fit_predict_proba(cube, labels)
        return self

    def fit_predict_proba(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        *,
        progress: ProgressCallback = no_progress,
    ) -> xr.DataArray:
        """Walk over a scene and return its class probabilities.

        Parameters
        ----------
        cube, labels
            As for :meth:`fit`.
        progress : callable, optional
            Told how many graphs are done.

        Returns
        -------
        DataArray (category, y, x) of float32
            NaN where there is no data.
        """
        values = schema.reference_labels(labels)
        (probability,) = self._maps(cube, labels, np.full(values.shape, -1), progress)
        self.probability_, self.scene_ = probability, tokenize(cube.data)
        return probability

    def predict_proba(
        self, cube: xr.DataArray, *, progress: ProgressCallback = no_progress
    ) -> xr.DataArray:
        """Return the class probabilities of the scene that was fitted; no other can be mapped."""
        check_is_fitted(self, "probability_")
        if tokenize(cube.data) != self.scene_:
            raise InputError(
                "RandomWalker maps only the scene that holds its training pixels, and this is "
                "another one. Fit it to this scene, or use AutoClassifier, whose spectral part can "
                "be carried."
            )
        progress("walkers", 1, 1)
        return self.probability_

    def held_out_proba(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5, seed: int = 0
    ) -> Iterator[HeldOut]:
        """Yield per fold the probabilities without its training pixels, and the mask of these.

        As :meth:`SceneClassifier.held_out_proba`; each graph is factorised once for all folds.
        """
        with_data = schema.valid_pixels(cube).values
        values = np.where(with_data, schema.reference_labels(labels), schema.NO_REFERENCE)
        fold = deal_folds(values, n_folds, seed=seed)
        _, *without_fold = self._maps(cube, labels, fold, no_progress)
        for number, probability in enumerate(without_fold):
            yield probability, fold == number

    @property
    def halo(self) -> None:
        """None: the whole scene decides about every pixel."""
        return

    def _maps(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        fold: NDArray[np.intp],
        progress: ProgressCallback,
    ) -> list[xr.DataArray]:
        """Return the probabilities from all training pixels and, per fold, from the others."""
        self._check_options()
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        labels = schema.check_labels(labels)
        schema.check_same_grid(cube, labels, names=("cube", "labels"))
        _, guides = fit_chain(self.chain, cube, self.n_guides)
        guides = guides.compute()
        _, values, positions = located_samples(guides, labels)
        self.classes_, codes = np.unique(values, return_inverse=True)
        self.class_table_ = schema.class_table(labels).subset(self.classes_)
        self.n_training_pixels_ = len(values)
        self.hsreject_version_ = __version__
        fields = walk_graphs(
            scene_graphs(guides, graphs=self.graphs),
            positions,
            np.eye(len(self.classes_))[codes],
            fold.ravel()[positions],
            leak=self.leak,
            progress=lambda done: progress("walkers", done, len(self.graphs)),
        )
        pixels = data_pixels(np.isfinite(guides.values).all(axis=0))
        return [node_map(guides, pixels, field, self.class_table_) for field in fields]

    def _check_options(self) -> None:
        check_choice("chain", self.chain, CHAINS)
        check_count("n_guides", self.n_guides, least=1)
        check_number("leak", self.leak, above=0)
        if not self.graphs:
            raise InputError("graphs must hold at least one pair (contrast, sigma); it is empty.")
        for contrast, sigma in self.graphs:
            check_number("contrast", contrast, least=0)
            check_number("sigma", sigma, least=0)
