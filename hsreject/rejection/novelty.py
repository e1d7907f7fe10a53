"""Novelty: how far pixels lie from all training pixels, and which belong to no labelled class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import xarray as xr
from scipy.spatial.distance import cdist
from scipy.special import stdtr
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from hsreject import schema
from hsreject.features.chains import FittedChain, Projection, diffused_samples, fit_chains
from hsreject.features.diffusion import HALO
from hsreject.features.pixel_kernels import nearest_squares
from hsreject.features.pixels import located_samples, map_pixels
from hsreject.features.windows import Window, each_window, in_windows, windows_of
from hsreject.registry import check_count
from hsreject.rejection.evidence import P_VALUE
from hsreject.splits.polygons import CLUSTERED, cluster_size, polygon_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

UNKNOWN_BELOW = 0.025
"""The p-value below which a pixel is unknown. Known pixels have it in about 1 of 100 cases."""

NOVEL_BELOW = 0.1
"""The p-value below which a pixel is rejected earlier than its confidence says."""

N_COMPONENTS = 30
TIMES = (0.0, 300.0)  # of diffusion: the pixel alone, and the field around it

_TEMPERATURE = 0.02  # of AUROCs of left-out classes: spaces worse by .1 have no weight
_LEAST_WEIGHT = 0.05  # of a space that is looked at, in parts of the largest
_LEAST_DISTANCE = 0.01  # in parts of the median distance: copies of a pixel are not at 0
_RESOLUTION = 1e-6  # of distances in single precision; features have deviations of 1 and more
_DEGREES_OF_FREEDOM = 30
_LEAST_P_VALUE = 1e-30  # what single precision distinguishes from 0
_N_LOOKED_AT = 1_000  # pixels of a scene whose median tells how far it has shifted
_STEEPNESS = 0.2  # of doubt, in 1 / p
_PLAIN = "raw"  # of all chains the one that shifts least from scene to scene

Name = TypeVar("Name")


class Novelty(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""How far pixels lie from every training pixel: a p-value, small where none is alike.

    Class probabilities say which of the known classes a pixel resembles most, not whether it
    resembles any. Pixels of land cover without a training pixel may be as probable as others, but
    their spectra lie far from all training pixels, if one looks at them in the right space. Six
    spaces are tried: 30 components in units of noise, of scaled bands and of scaled spectra of unit
    length, each for the pixel alone and diffused along its field (:class:`hsreject.Diffuse`).

    In a space s let :math:`e_i` be the distance of training pixel i to the nearest other one (of
    digitised labels: to the nearest one of another polygon, because pixels of one polygon are near
    copies of each other), and :math:`u_i` that to the nearest one of another class: as far as the
    pixel would be from all training pixels if its class were unknown. How well the two are
    separated, averaged over the classes k, weighs the space:

    .. math:: A_s = \mathrm{mean}_k \, \mathrm{AUROC}(u_i : i \in k;\ e_i : i \notin k), \quad
              w_s \propto \exp(A_s / 0.02)

    A pixel at the distance :math:`d_s` from its nearest training pixel has

    .. math:: z = \sum_s w_s \frac{\log d_s - \mu_s}{\sigma_s}, \quad p = P(t_{30} > z)

    with mean and standard deviation of :math:`\log e_i`, in which all classes count the same, and
    Student's t. **A pixel with p below 0.025 is unknown.**

    *On the scene that holds the labels* (:meth:`fit_p_value`) that is all. *On another scene*
    (:meth:`p_value`) diffused distances mean something else, so only the pixel itself counts:
    the larger of :math:`z_1`, the mix of the three spaces without diffusion, and :math:`z_2`, of
    scaled bands alone, each lowered by what the median of the scene has risen over that of the
    training scene; p is twice that of the larger one. So novelty works block by block.

    What p does not promise: it is cautious on average, not for every class. Of the pixels of known
    classes up to 1 % had p below 0.025 (1 to 3 % on another scene; 30 draws on two scenes), but in
    the worst class 8 % (28 %): rare and mixed pixels of a class that varies are taken for unknown.
    With digitised labels it is very cautious: with two to five polygons per class at most 1 % of
    the known pixels had p below 0.05, but also only 1 to 15 % of a class that was left out.

    Parameters
    ----------
    n_samples : int, default 500
        About how many training pixels are kept. Of more, every second, third, ... of each class is
        kept, so that the time per pixel stays bounded.

    Attributes
    ----------
    chains_ : dict of str to list of transformers
        The way to each space without diffusion.
    spaces_ : dict of str to Space
        The training pixels there.
    auroc_ : dict of str to float
        :math:`A_s` of every space that was tried, such as "mnf 300".
    medians_ : ndarray (2,)
        Median of :math:`z_1` and :math:`z_2` over some 1,000 pixels of the training scene.

    See Also
    --------
    hsreject.Rejector : rejects unknown pixels first.
    hsreject.AutoClassifier : has one inside.

    Examples
    --------
    >>> from hsreject import Novelty
    >>> from hsreject import sample_per_class, synthetic_scene
    >>> cube, labels = synthetic_scene(rows=32, columns=32, n_bands=8)
    >>> training, _ = sample_per_class(labels.where(labels != 3, 0), 10)  # nobody knows class 3
    >>> p_value = Novelty().fit_p_value(cube, training)
    >>> unknown = p_value < 0.025
    >>> bool(unknown.where(labels == 3).mean() > 0.5 > 0.1 > unknown.where(labels != 3).mean())
    True
    """

    def __init__(self, *, n_samples: int = 500) -> None:
        self.n_samples = n_samples

    def fit(self, cube: xr.DataArray, labels: xr.DataArray) -> Self:
        """Learn from the labelled pixels of a scene what :meth:`p_value` of another needs.

        Parameters
        ----------
        cube : DataArray (band, y, x)
            The scene; NaN is no data. A lazy one is read chunk by chunk.
        labels : DataArray (y, x) of integers
            The training pixels, 0 elsewhere.
        """
        self._look(cube, labels, times=TIMES[:1])
        self.medians_ = self._medians(cube)
        return self

    def fit_p_value(self, cube: xr.DataArray, labels: xr.DataArray) -> xr.DataArray:
        """Return the p-value of every pixel of the scene that holds the labels.

        All six spaces count. A scene of more than half a million pixels is worked on in windows, as
        by :class:`hsreject.Diffuse`. What can be carried to another scene is learned with it.

        Parameters
        ----------
        cube, labels
            As for :meth:`fit`.

        Returns
        -------
        DataArray of float32 (y, x)
            Named `p_value`, in (0, 1], NaN where there is no data.
        """
        cube = in_windows(schema.check_dims(cube, schema.CUBE_DIMS, name="cube"))
        views, spaces = self._look(cube, labels, times=TIMES)
        times = {name: [t for of, t in spaces if of == name] for name, _ in spaces}
        score = np.zeros(cube.shape[1:], dtype=np.float32)

        def work(window: Window) -> None:
            block = window.block(cube)
            for name, of_chain in times.items():
                for t, seen in views[name].look(block, of_chain).items():
                    space = spaces[name, t]
                    one = space.score_map(xr.DataArray(seen, dims=schema.CUBE_DIMS))
                    score[window.inner] += window.trim(np.float32(space.weight) * one)

        each_window(windows_of(cube, halo=HALO), work)
        self.medians_ = self._medians(cube)
        coords = {name: c for name, c in cube.coords.items() if schema.BAND not in c.dims}
        p_value = p_value_of(score, n_tests=1)
        return xr.DataArray(p_value, dims=schema.MAP_DIMS, coords=coords, name=P_VALUE)

    def p_value(
        self, cube: xr.DataArray, *, shift: Sequence[float] | NDArray[Any] | None = None
    ) -> xr.DataArray:
        """Return the p-value of every pixel of another scene, with the bands of the training scene.

        Parameters
        ----------
        cube : DataArray (band, y, x)
            Lazy where the result shall be.
        shift : two numbers, optional
            Of :meth:`shift_of` the whole scene, where `cube` is a block of it.

        Returns
        -------
        DataArray of float32 (y, x)
            Named `p_value`, in (0, 1], NaN where there is no data.
        """
        shift = self.shift_of(cube) if shift is None else np.asarray(shift)
        mixed, plain = self.scores(cube)
        largest = np.maximum(mixed - shift[0], plain - shift[1])
        p_value: xr.DataArray = xr.apply_ufunc(
            p_value_of, largest, dask="parallelized", output_dtypes=[np.float32]
        )
        return p_value.rename(P_VALUE)

    def shift_of(self, cube: xr.DataArray) -> NDArray[np.float64]:
        """Return by how much the medians of z_1 and z_2 of a scene lie above the training scene's.

        Some 1,000 pixels all over the scene are looked at. A scene without data has not shifted.
        """
        check_is_fitted(self, "medians_")
        return np.nan_to_num(np.maximum(self._medians(cube) - self.medians_, 0.0))

    def scores(self, cube: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
        """Return z_1 and z_2 (y, x) of the pixels of a scene, as they are; lazy where it is."""
        check_is_fitted(self, "spaces_")
        spaces = {
            name: space for name, space in self.spaces_.items() if name == _PLAIN or space.weight
        }
        projections = Projection.of({name: self.chains_[name] for name in spaces})

        def score(samples: NDArray[Any]) -> NDArray[np.float32]:
            of = {
                name: spaces[name].score(features)
                for project in projections
                for name, features in project(samples).items()
            }
            mixed = sum(space.weight * of[name] for name, space in spaces.items())
            return np.stack([mixed, of[_PLAIN]], axis=1)

        used = self.chains_[_PLAIN][0].bands_of(cube)
        both = map_pixels(used, score, n_outputs=2, dtype=np.float32)
        coords = {name: c for name, c in cube.coords.items() if schema.BAND not in c.dims}
        mixed, plain = (xr.DataArray(z, dims=schema.MAP_DIMS, coords=coords) for z in both)
        return mixed, plain

    def _look(
        self, cube: xr.DataArray, labels: xr.DataArray, *, times: Sequence[float]
    ) -> tuple[dict[str, FittedChain], dict[tuple[str, float], Space]]:
        """Weigh the spaces, keep those without diffusion; return chains, and spaces of weight."""
        check_count("n_samples", self.n_samples, least=2)
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        labels = schema.check_labels(labels, name="training labels")
        schema.check_same_grid(cube, labels, names=("cube", "training labels"))
        clusters: NDArray[np.integer] = np.arange(labels.size)
        if cluster_size(labels) >= CLUSTERED:
            clusters = polygon_numbers(labels).ravel()
        views: dict[str, FittedChain] = {}
        samples: dict[str, dict[float, NDArray[np.float64]]] = {}
        for name, view, features in fit_chains(cube, N_COMPONENTS):
            of_chain, values, positions = self._thinned(features, labels)
            views[name], samples[name] = view, {0.0: of_chain}
        if max(times):
            rows, columns = np.unravel_index(positions, labels.shape)
            samples = diffused_samples(views, cube, (rows, columns), times)
        spaces = {
            (name, t): Space.of(seen, values, clusters[positions])
            for name, of_chain in samples.items()
            for t, seen in of_chain.items()
        }
        self.chains_ = {name: view.steps for name, view in views.items()}
        self.auroc_ = {f"{name} {t:g}": space.auroc for (name, t), space in spaces.items()}
        self.spaces_ = _weighed({name: spaces[name, 0.0] for name in views})
        return views, {key: space for key, space in _weighed(spaces).items() if space.weight}

    def _thinned(
        self, features: xr.DataArray, labels: xr.DataArray
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.intp]]:
        """Return samples, classes and places of about `n_samples` training pixels, evenly."""
        samples, values, places = located_samples(features, labels)
        classes = np.unique(values)
        most = max(self.n_samples // classes.size, 2)
        members = [np.flatnonzero(values == one) for one in classes]
        every_nth = np.concatenate([of[:: -(-of.size // most)] for of in members])
        return samples[every_nth], values[every_nth], places[every_nth]

    def _medians(self, cube: xr.DataArray) -> NDArray[np.float64]:
        """Return the medians of z_1 and z_2 over pixels evenly spaced over a scene."""
        step = max(int(np.sqrt(cube[0].size / _N_LOOKED_AT)), 1)
        some = {dim: slice(step // 2, None, step) for dim in schema.MAP_DIMS}
        scores = self.scores(cube.isel(some).compute())
        return np.array([float(one.median(skipna=True)) for one in scores])


@dataclass(frozen=True, eq=False)
class Space:
    """Training pixels in one space, and how far they lie from each other."""

    samples: NDArray[np.float64]  # (sample, feature)
    center: float  # of the logarithms of the distances to the nearest other one
    spread: float
    nearest: float  # distances below it count as this one
    auroc: float  # how well a left-out class is recognised
    weight: float = 0.0

    @classmethod
    def of(
        cls, samples: NDArray[np.float64], values: NDArray[np.int64], clusters: NDArray[np.integer]
    ) -> Space:
        """Return the space of training pixels (sample, feature) with their classes and clusters."""
        pairs = cdist(samples, samples)
        to_other = np.where(clusters[:, None] == clusters, np.inf, pairs).min(axis=1)
        to_class = np.where(values[:, None] == values, np.inf, pairs).min(axis=1)
        nearest = max(float(_LEAST_DISTANCE * np.median(to_other)), _RESOLUTION)
        to_other, to_class = np.maximum(to_other, nearest), np.maximum(to_class, nearest)
        aurocs = [
            roc_auc_score(
                np.r_[np.ones(inside.sum()), np.zeros((~inside).sum())],
                np.r_[to_class[inside], to_other[~inside]],
            )
            for inside in (values == one for one in np.unique(values))
        ]
        _, code, count = np.unique(values, return_inverse=True, return_counts=True)
        weights = 1 / count[code]  # all classes count the same
        logs = np.log(to_other)
        center = np.average(logs, weights=weights)
        spread = np.sqrt(np.average((logs - center) ** 2, weights=weights))
        return cls(samples, float(center), float(spread) or 1.0, nearest, float(np.mean(aurocs)))

    def score(self, features: NDArray[Any]) -> NDArray[np.float32]:
        """Return (log d - mean) / standard deviation of pixels (feature, pixel) with data."""
        squares = np.maximum(nearest_squares(features, self.samples), self.nearest**2)
        return np.asarray((np.log(squares) / 2 - self.center) / self.spread)

    def score_map(self, features: xr.DataArray) -> NDArray[np.float32]:
        """Return the score (y, x) of features (band, y, x), NaN where there is no data."""

        def score(samples: NDArray[Any]) -> NDArray[Any]:
            return self.score(samples.T)[:, None]

        scores: NDArray[np.float32] = map_pixels(features, score, n_outputs=1, dtype=np.float32)[0]
        return scores


def _weighed(spaces: Mapping[Name, Space]) -> dict[Name, Space]:
    """Return the spaces with their weights; those of negligible weight get none."""
    auroc = np.array([space.auroc for space in spaces.values()])
    # relative to the best space, whose weight before division is 1: no overflow, no sum of 0
    weights = np.exp((auroc - auroc.max()) / _TEMPERATURE)
    weights[weights < _LEAST_WEIGHT] = 0
    shares = (weights / weights.sum()).tolist()
    return {
        name: replace(space, weight=share)
        for (name, space), share in zip(spaces.items(), shares, strict=True)
    }


def p_value_of(score: Any, *, n_tests: int = 2) -> Any:
    """Return min(1, n P(t > z)) of scores, kept above 0; NaN stays NaN."""
    share = n_tests * stdtr(_DEGREES_OF_FREEDOM, np.negative(score))
    return np.clip(share, _LEAST_P_VALUE, 1).astype(np.float32)


def lowered_by_novelty(confidence: NDArray[Any], p_value: NDArray[Any]) -> NDArray[Any]:
    """Return confidences (y, x), lowered to that of a smaller rank where pixels are novel.

    Of a pixel with the rank r in [0, 1] among all pixels the doubt 1 - r grows to
    (1 - r) max(1, 0.1 / p)^0.2; it gets the confidence that pixels of that doubt have or, beyond a
    doubt of 1, one below the least of the scene, by up to their range. All others keep theirs, and
    so its meaning. NaN stays NaN.

    Multiplying the rank itself by p / 0.05 instead recognised left-out classes of Indian Pines less
    well than the confidence alone: even a little novelty makes a rank near 1 fall below many
    others.
    """
    novel = p_value < NOVEL_BELOW
    ordered = np.sort(confidence[~np.isnan(confidence)])
    if not (novel.any() and ordered.size):
        return confidence
    last = max(ordered.size - 1, 1)
    # Equal confidences share the mean of their ranks. Beyond a doubt of 1 there is no rank left:
    # such pixels lie below the least confidence, the lower the more doubt there is.
    ends = (np.searchsorted(ordered, confidence[novel], side) for side in ("left", "right"))
    doubt = (1 - (sum(ends) - 1) / 2 / last) * (NOVEL_BELOW / p_value[novel]) ** _STEEPNESS
    inside = np.interp((1 - doubt) * last, np.arange(ordered.size), ordered)
    below = ordered[0] - (np.ptp(ordered) or 1.0) * (1 - 1 / np.maximum(doubt, 1))
    lowered = confidence.copy()
    lowered[novel] = np.where(
        np.isnan(confidence[novel]), np.nan, np.where(doubt > 1, below, inside)
    )
    return lowered


def known_weight(p_value: NDArray[Any]) -> NDArray[Any]:
    """Return (1 + min(1, p / 0.1)) / 2, by which all classes are less likely in the joint rule."""
    return np.asarray((1 + np.minimum(p_value / NOVEL_BELOW, 1.0)) / 2)
