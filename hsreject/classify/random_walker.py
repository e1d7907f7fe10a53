"""Random walkers: the classes of training pixels, carried over a scene but not across its edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.classify.scene_model import SceneModel
from hsreject.classify.training_pixels import Training
from hsreject.errors import InputError
from hsreject.features.chains import CHAINS, FittedChain, fit_chain
from hsreject.features.diffusion import N_GUIDES, EdgeGraph, squared_steps
from hsreject.features.pixels import located_samples
from hsreject.features.spatial import Smooth, smoothed
from hsreject.features.windows import Window, each_window, in_windows, windows_of
from hsreject.progress import ProgressCallback
from hsreject.registry import check_choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRAPHS = ((3.0, 0.0), (10.0, 1.0))
"""Contrast, and by how many pixels guides are smoothed."""

LEAK = 1e-4  # how readily walkers give up, in units of the weight of an edge between equal pixels

HALO = 64
"""Pixels around a window that decide all but a thousandth of its labels."""

_LEAST_SINGLE = 1e-5  # leak from which single precision will do: at 1e-4 it errs by 5e-5

Layer = tuple[float, "list[NDArray[Any]]"]
"""What an edge graph is made of: its contrast, and one or more sets of guides (band, y, x)."""


def walk(
    graph: EdgeGraph, seeds: NDArray[np.integer], n_classes: int, *, leak: float = LEAK
) -> NDArray[np.float32]:
    """Return which class's seed a walker from each pixel reaches first, (category, y, x).

    The field solves (L + leak I) R = 0 but at the seeds, where its values are fixed: they are
    eliminated, and what is left is factorised. `seeds` (y, x) is 0 where there is none, else 1 plus
    the number of the class. The result is NaN where there is no data.
    """
    places = np.nonzero((seeds > 0) & graph.valid)
    codes = seeds[places].astype(np.intp) - 1
    field = np.zeros((n_classes, *seeds.shape), dtype=np.float32)
    field[codes, *places] = 1.0
    free = graph.valid.copy()
    free[places] = False
    if codes.size and free.any():
        precision = np.float32 if leak >= _LEAST_SINGLE else np.float64
        sides = np.zeros(field.shape, dtype=precision)
        rows, columns = places
        for weights, down, right in ((graph.across, 0, 1), (graph.down, 1, 0)):
            # an edge belongs to its upper or left end
            for end, other in ((0, 1), (1, 0)):
                edge = rows - end * down, columns - end * right
                inside = (np.array(edge) >= 0).all(axis=0)
                inside &= (edge[0] < weights.shape[0]) & (edge[1] < weights.shape[1])
                edge = edge[0][inside], edge[1][inside]
                beside = edge[0] + other * down, edge[1] + other * right
                np.add.at(sides, (codes[inside], *beside), weights[edge])
        field[:, free] = graph.solve(sides, identity=leak, free=free)[:, free]
    # The matrix has no positive entry beside its diagonal and dominates by it (an M-matrix), so
    # exact values lie in [0, 1] and sum to at most 1: only rounding is cut off here.
    np.maximum(field, 0, out=field)
    # walkers that reached no seed are shared equally by all classes
    field += np.maximum(1 - field.sum(axis=0), 0) / n_classes
    field /= field.sum(axis=0)  # a solver's error may have made it more than one
    field[:, ~graph.valid] = np.nan
    return field


def walkers(
    layers: Sequence[Layer],
    mean_steps: Iterable[float],
    seeds: NDArray[np.integer],
    n_classes: int,
) -> NDArray[np.float32]:
    """Return where walkers end (set, category, y, x), the mean over the graphs of all layers.

    `mean_steps` are those of the sets of guides, layer by layer. `seeds` (set, y, x) holds one or
    more sets of training pixels: 0 where there is none, else 1 plus the number of the class. The
    result is NaN where there is no data.
    """
    steps = iter(mean_steps)
    total = np.full((len(seeds), n_classes, *seeds.shape[1:]), np.nan, dtype=np.float32)
    for contrast, guides in layers:
        own = list(islice(steps, len(guides)))
        graph = EdgeGraph.of(*guides, contrast=contrast, mean_steps=own)
        # pixels of a graph begin at 0; what is NaN at the end was in no graph
        total[:, :, graph.valid] = np.nan_to_num(total[:, :, graph.valid])
        for one, target in zip(total, seeds, strict=True):
            one[:, graph.valid] += walk(graph, target, n_classes)[:, graph.valid] / len(layers)
    return total


def layers_of(
    guides: Sequence[NDArray[Any]], graphs: Sequence[tuple[float, float]] = GRAPHS
) -> list[Layer]:
    """Return a layer per pair of contrast and smoothing, each of all these sets of guides."""
    return [
        (
            contrast,
            [smoothed(one, sigma=sigma, dtype=one.dtype) if sigma else one for one in guides],
        )
        for contrast, sigma in graphs
    ]


def mean_steps(
    cube: xr.DataArray, makers: Sequence[Callable[[xr.DataArray], Sequence[Layer]]]
) -> list[list[float]]:
    """Return for each maker of layers the mean squared steps of its sets of guides over a scene.

    Windows share one mean, or there would be seams. Steps across their borders do not count.
    """

    def steps(window: Window) -> list[list[tuple[float, int]]]:
        block = window.block(cube)
        return [
            [
                squared_steps(xr.DataArray(window.trim(one), dims=schema.CUBE_DIMS))
                for _, guides in layers(block)
                for one in guides
            ]
            for layers in makers
        ]

    windows = windows_of(cube, halo=max(Smooth(sigma).halo for _, sigma in GRAPHS))
    parts = each_window(windows, steps)
    totals = (np.sum(of_windows, axis=0) for of_windows in zip(*parts, strict=True))
    return [[float(total / max(count, 1)) for total, count in sets] for sets in totals]


class RandomWalker(SceneModel):
    r"""Probabilities of reaching the training pixels of a class first, on a random walk.

    A walker starts at a pixel and steps to one of its four neighbours, the more likely the more
    alike they are (the weights of :class:`~hsreject.Diffuse`), until it stands on a training pixel
    or gives up. The probability of a class is that of ending on one of its training pixels. With
    the Laplacian L of the graph, :math:`M = L + \epsilon I`, the training pixels A, their classes
    :math:`Y_A`, all other pixels U and the leak :math:`\epsilon`,

    .. math:: M_{UU} \, R_U = -M_{UA} \, Y_A, \quad R_A = Y_A

    averaged over two graphs: of 10 components with contrast 3, and of the same components smoothed
    by a pixel with contrast 10. The leak is 1e-4 of the weight of an edge between equal pixels. The
    walkers that gave up are shared equally by all classes: few walkers leave a field without a
    training pixel, so it stays uncertain instead of taking the class of the fields around it.

    Where training pixels lie decides, not their spectra, so walkers map only the scene that holds
    them, by `fit_predict_proba`. They are one of the experts of
    :class:`~hsreject.AutoClassifier`; alone they show how far location and edges suffice.

    Parameters
    ----------
    chain : {"mnf", "raw", "normalized"}, default "mnf"
        What edges are measured in: components in units of noise, of scaled bands, or of scaled
        spectra of unit length.

    Attributes
    ----------
    classes_, class_table_, band_requirements_, n_training_pixels_, hsreject_version_
        As for every :class:`SceneModel`.

    See Also
    --------
    hsreject.AutoClassifier : has walkers among its experts.
    hsreject.Diffuse : features that spread along the same graph.

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

    halo = None  # where the training pixels lie decides

    def __init__(self, chain: str = "mnf") -> None:
        self.chain = chain

    def _own_map(
        self,
        cube: xr.DataArray,
        learned: tuple[FittedChain, Training],
        progress: ProgressCallback,
    ) -> NDArray[np.float32]:
        view, training = learned
        cube = in_windows(cube)
        field = np.empty((len(self.classes_), *cube.shape[1:]), dtype=np.float32)

        def layers(block: xr.DataArray) -> list[Layer]:
            return layers_of([view.look(block, (0.0,))[0.0]])

        def work(window: Window) -> None:
            block = window.block(cube)
            seeds = training.seeds(window, [None])
            field[:, *window.inner] = window.trim(
                walkers(layers(block), steps, seeds, len(field))[0]
            )

        (steps,) = mean_steps(cube, [layers])
        each_window(windows_of(cube, halo=HALO), work, progress=partial(progress, "walkers"))
        return field

    def _learn(
        self, cube: xr.DataArray, labels: xr.DataArray, progress: ProgressCallback
    ) -> tuple[FittedChain, Training]:
        """Return the chain of the guides, and the seeds."""
        check_choice("chain", self.chain, CHAINS)
        view, guides = fit_chain(self.chain, in_windows(cube), N_GUIDES)
        training = Training.of(labels, located_samples(guides, labels)[2])
        self.classes_, self.n_training_pixels_ = training.classes, len(training.codes)
        return view, training

    def _probability(self, cube: xr.DataArray, progress: ProgressCallback) -> NoReturn:
        raise InputError(
            "RandomWalker maps only the scene that holds its training pixels: call "
            "fit_predict_proba(cube, labels). AutoClassifier can be carried to other scenes."
        )
