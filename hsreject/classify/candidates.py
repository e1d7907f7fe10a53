"""Candidates of the automatic pool: experts on diffused chains, random walkers, and their mixes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import ledoit_wolf

from hsreject import schema
from hsreject.classify.random_walker import GRAPHS, layers_of, walkers
from hsreject.classify.scene_model import polygons_of
from hsreject.classify.smlr import SparseMultinomialRegression
from hsreject.classify.temperature import floored_log
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.features.chains import CHAINS, fit_chain
from hsreject.features.diffusion import N_GUIDES, diffused, mean_squared_step
from hsreject.features.pixels import located_samples, on_the_grid_of
from hsreject.sampling.draws import deal_folds
from hsreject.sampling.polygons import CLUMPED, clump_size, polygon_folds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hsreject.features.transformer import SceneTransformer

_N_COMPONENTS = 30
_SPARSITY = 0.01
_MOST_CENTERS = 200  # basis functions of the regression: bounds its time where pixels are many
# What bounds the time of a regression: pixels for the map, and for judging by folds; Newton steps.
_MOST_PIXELS = 1000
_MOST_PIXELS_OF_FOLDS = 400
_MOST_STEPS = 25
_N_DISCRIMINANTS = 5
_NEGLIGIBLE_SPREAD = 1e-6  # of class means along a direction, to the largest: rounding errors
_MOST_HELD_OUT = 500  # training pixels that candidates are judged by: they tell enough


@dataclass(frozen=True)
class Profile:
    """How a candidate sees space: z = spectral * log(mean over t of p_t) + walkers * log(R)."""

    times: tuple[float, ...]
    spectral: float = 1.0
    walkers: float = 0.0

    def scores(
        self, predicted: Mapping[float, NDArray[Any]], walked: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Return z (sample, category) of experts' probabilities by t, and of walkers."""
        mean = sum(predicted[t] for t in self.times) / len(self.times)
        scores = self.spectral * floored_log(mean)
        if self.walkers and walked is not None:
            scores += self.walkers * floored_log(walked)
        return np.asarray(scores)


PIXELS = "pixels"
MAPPED = {
    "fields": Profile((3.0, 30.0, 300.0), 0.25, 1.0),
    "mixed": Profile((0.0, 3.0), 1.0, 0.5),
    PIXELS: Profile((0.0,)),
}
"""Candidates for the map of the scene that holds the training pixels."""
CARRIED = {
    PIXELS: Profile((0.0,)),
    "near": Profile((0.0, 3.0)),
    "far": Profile((3.0, 30.0, 300.0)),
    "farthest": Profile((300.0,)),
}
"""Candidates for other scenes."""
TIMES = (0.0, 3.0, 30.0, 300.0)


class TwoExperts(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """The mean of sparse regression (radial basis) and linear discriminant analysis.

    The discriminant has equal priors and, per class, a covariance shrunken after Ledoit and Wolf in
    units of deviations: scikit-learn's, but with classes of a single pixel, which have none. The
    regression sees at most `most_pixels`, as many of each class, and ends after 25 steps: with ten
    pixels per class it has converged by then, with hundreds more steps change little.

    Parameters
    ----------
    most_pixels : int, default 1000
        Pixels of the regression.
    """

    def __init__(self, most_pixels: int = _MOST_PIXELS) -> None:
        self.most_pixels = most_pixels

    def fit(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> Self:
        """Fit both to samples (n_samples, n_features) and their classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        some = evenly(codes, self.most_pixels)
        n_centers = _MOST_CENTERS if len(some) > _MOST_CENTERS else None
        regression = SparseMultinomialRegression(
            _SPARSITY, n_centers=n_centers, max_iter=_MOST_STEPS
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            self.regression_ = regression.fit(X[some], y[some])
        groups = [X[codes == code] for code in range(len(self.classes_))]
        means = self.means_ = np.stack([group.mean(axis=0) for group in groups])
        spreads = [_shrunken_covariance(group) for group in groups if len(group) > 1]
        covariance = np.mean(spreads, axis=0) if spreads else np.eye(X.shape[1])
        self.coef_ = np.linalg.lstsq(covariance, means.T, rcond=None)[0]
        self.intercept_ = -0.5 * np.einsum("kj,jk->k", means, self.coef_)
        return self

    def discriminants(self, most: int) -> NDArray[np.float64]:
        """Return directions (feature, direction) that tell the classes apart, the best first.

        They are Fisher's: in units of the deviation within classes, their means differ most. There
        are fewer than `most` if the means of the classes span fewer.
        """
        coef = self.coef_ - self.coef_.mean(axis=1, keepdims=True)
        spread, axes = np.linalg.eigh((self.means_ - self.means_.mean(axis=0)) @ coef)
        best = np.argsort(spread)[::-1][:most]
        best = best[spread[best] > _NEGLIGIBLE_SPREAD * max(spread[-1], 0)]
        directions: NDArray[np.float64] = coef @ axes[:, best] / np.sqrt(spread[best])
        return directions

    def predict_proba(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the probabilities (n_samples, n_classes), in the precision of the samples."""
        scores = X @ self.coef_.astype(X.dtype) + self.intercept_.astype(X.dtype)
        mean: NDArray[Any] = softmax(scores, axis=1)
        mean += self.regression_.predict_proba(X)
        mean /= 2
        return mean


def _shrunken_covariance(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = samples.std(axis=0)
    deviation[deviation == 0] = 1.0
    covariance: NDArray[np.float64] = ledoit_wolf(samples / deviation)[0]
    return covariance * np.outer(deviation, deviation)


def evenly(groups: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return at most `most` samples (but one of each group), as many of each group as it allows.

    Those of a large group are spread over it in the order given, so that neighbours are thinned.
    """
    if len(groups) <= most:
        return np.arange(len(groups))
    counts = np.bincount(groups)
    totals = [np.minimum(counts, cap).sum() for cap in range(1, counts.max() + 1)]
    share = max(int(np.searchsorted(totals, most, side="right")), 1)
    members = (np.flatnonzero(groups == number) for number in np.flatnonzero(counts))
    thinned = [
        one[np.linspace(0, len(one) - 1, min(len(one), share)).round().astype(np.intp)]
        for one in members
    ]
    return np.sort(np.concatenate(thinned))


@dataclass(frozen=True)
class Training:
    """The training pixels of a scene, and the folds by which candidates are judged.

    A fold is left out whole, but only the `judged` pixels count: they tell enough.
    """

    classes: NDArray[np.int64]  # (category,): label values, ascending
    codes: NDArray[np.intp]  # (pixel,): number of the class in `classes`
    positions: NDArray[np.intp]  # (pixel,): in the flattened image
    shape: tuple[int, int]  # of the image
    polygon: NDArray[np.intp] | None  # (pixel,): from 0; None if the pixels lie scattered
    folds: Mapping[str, NDArray[np.intp]]  # by kind: (pixel,), -1 for one that is never left out
    judged: NDArray[np.bool_]  # (pixel,)

    @classmethod
    def of(
        cls,
        labels: xr.DataArray,
        values: NDArray[np.int64],
        positions: NDArray[np.intp],
        *,
        n_folds: int,
        seed: int,
    ) -> Training:
        """Return the training pixels with these labels and positions of a scene."""
        classes, codes = np.unique(values, return_inverse=True)
        places = np.stack(np.unravel_index(positions, labels.shape), axis=1)
        with_data = np.zeros(labels.size, dtype=bool)
        with_data[positions] = True
        used = labels.where(with_data.reshape(labels.shape), 0).astype(labels.dtype)
        shape = (int(labels.shape[0]), int(labels.shape[1]))
        if clump_size(used) >= CLUMPED:
            _check_polygons(labels, classes)
            numbers = polygons_of(used).ravel()[positions]
            polygon = np.unique(numbers, return_inverse=True)[1]
            fold = polygon_folds(values, polygon, places, n_folds, seed=seed)
            judged = np.zeros(len(fold), dtype=bool)
            judged[evenly(polygon, _MOST_HELD_OUT)] = True
            folds = {"random": fold, "place": fold}
            return cls(classes, codes, positions, shape, polygon, folds, judged & (fold >= 0))
        fold = deal_folds(values, n_folds, seed=seed, most=_MOST_HELD_OUT)
        folds = {"random": fold, "place": _folds_by_place(codes, places, n_folds)}
        return cls(classes, codes, positions, shape, None, folds, fold >= 0)

    def without(self, doubtful: NDArray[np.bool_]) -> Training:
        """Return the training pixels but for some."""
        keep = ~doubtful
        return replace(
            self,
            codes=self.codes[keep],
            positions=self.positions[keep],
            polygon=None if self.polygon is None else self.polygon[keep],
            folds={kind: fold[keep] for kind, fold in self.folds.items()},
            judged=self.judged[keep],
        )

    def n_folds(self, kind: str) -> int:
        """Return how many folds there are."""
        return int(self.folds[kind].max(initial=-1)) + 1

    def groups(self) -> NDArray[np.intp] | None:
        """Return the polygons of the judged pixels; None if all are scattered."""
        return None if self.polygon is None else self.polygon[self.judged]

    def seeds(self, *, without: int | None = None) -> NDArray[np.intp]:
        """Return 1 + the number of the class at each training pixel (1, y, x), 0 elsewhere."""
        seeds = np.zeros((1, *self.shape), dtype=np.intp)
        used = self.outside("random", without)
        seeds[0].flat[self.positions[used]] = self.codes[used] + 1
        return seeds

    def outside(self, kind: str, number: int | None) -> NDArray[np.bool_]:
        """Return the pixels outside a fold of a kind; all of them without a number."""
        if number is None:
            return np.ones(len(self.codes), dtype=bool)
        return np.asarray(self.folds[kind] != number)


def _check_polygons(labels: xr.DataArray, classes: NDArray[np.int64]) -> None:
    """Raise where all polygons of a class lie where the scene has no data."""
    given = np.unique(schema.reference_labels(labels))
    lost = np.setdiff1d(given[given != schema.NO_REFERENCE], classes)
    if lost.size:
        table = schema.class_table(labels)
        names = ", ".join(f"{value} ({table.name_of(value)})" for value in lost)
        raise InputError(
            f"The scene has no data in any polygon of class {names}. Digitise the class where "
            "there is data, or take it out of the labels."
        )


def _folds_by_place(
    codes: NDArray[np.intp], places: NDArray[np.integer], n_folds: int
) -> NDArray[np.intp]:
    """Cut the pixels of each class into runs along the main axis of their positions."""
    fold = np.full(len(codes), -1, dtype=np.intp)
    for code in range(codes.max() + 1):
        members = np.flatnonzero(codes == code)
        if len(members) > 1:
            centred = places[members] - places[members].mean(axis=0)
            axis = np.linalg.svd(centred, full_matrices=False)[2][0]
            order = np.argsort(np.round(centred @ axis, 9), kind="stable")
            fold[members[order]] = np.arange(len(members)) * n_folds // len(members)
    return fold


@dataclass
class ChainOnScene:
    """One chain on the scene it was fitted to: its features, experts and walkers."""

    training: Training
    steps: list[SceneTransformer]
    features: xr.DataArray | None  # (band, y, x) at t = 0; None once the scene is let go
    samples: dict[float, NDArray[np.float64]]  # by t: (pixel, feature)
    mean_step: float = 0.0
    flowed: Any = None  # (t * band, y, x): features at the times after 0
    walked: NDArray[np.float64] | None = None  # (pixel, category): walkers without its fold
    experts: dict[tuple[float, str, int | None], TwoExperts] = field(default_factory=dict)

    def look_around(self) -> None:
        """Diffuse the features on the graph of the scene."""
        assert self.features is not None  # noqa: S101 (the scene is there while it is fitted)
        self.mean_step = mean_squared_step(self.features[:N_GUIDES])
        self.flowed = diffused(self.features, TIMES[1:], mean_step=self.mean_step)
        picked = _picked(self.flowed, self.training)
        parts = np.split(picked, len(TIMES) - 1, axis=1)
        self.samples |= dict(zip(TIMES[1:], parts, strict=True))

    def walk(self) -> None:
        """Let walkers predict the training pixels of each fold from the others."""
        assert self.features is not None  # noqa: S101 (as above)
        training = self.training
        n_classes, n_folds = len(training.classes), training.n_folds("random")
        self.walked = np.full((len(training.codes), n_classes), 1 / n_classes)
        if not n_folds:
            return
        seeds = np.concatenate([training.seeds(without=number) for number in range(n_folds)])
        layers = layers_of([self.features[:N_GUIDES]])
        picked = _picked(walkers(layers, seeds, n_classes), training)
        for number, part in enumerate(np.split(picked, n_folds, axis=1)):
            out = training.folds["random"] == number
            self.walked[out] = part[out]

    def walkers_of_map(self, training: Training, *, fold: int | None = None) -> Any:
        """Return where walkers end (category, y, x), all of them or those without a fold.

        Discriminants know all training pixels: they guide the map's walkers, not the folds'.
        """
        assert self.features is not None  # noqa: S101 (as above)
        guides = self.features[:N_GUIDES]
        layers = layers_of([guides])
        if fold is None:
            directions = self.expert(0.0).discriminants(_N_DISCRIMINANTS).astype(np.float32)
            if directions.size:
                data = np.tensordot(directions.T, self.features.data, axes=1)
                discriminants = self.features[: len(data)].copy(data=data)
                layers = [*layers_of([guides, discriminants]), layers_of([guides], GRAPHS[1:])[0]]
        return walkers(layers, training.seeds(without=fold), len(training.classes))

    def expert(self, t: float, kind: str = "", number: int | None = None) -> TwoExperts:
        """Return the experts on features at t without a fold of a kind, fitted when first asked."""
        if (t, kind, number) not in self.experts:
            used = self.training.outside(kind, number)
            experts = TwoExperts(_MOST_PIXELS_OF_FOLDS if kind else _MOST_PIXELS)
            experts.fit(self.samples[t][used], self.training.codes[used])
            self.experts[t, kind, number] = experts
        return self.experts[t, kind, number]

    def held_out_scores(self, profile: Profile, kind: str) -> NDArray[np.float64]:
        """Return the scores (pixel, category) of the judged pixels without their folds."""
        training = self.training
        scores = np.zeros((len(training.codes), len(training.classes)))
        for number in range(training.n_folds(kind)):
            out = training.judged & (training.folds[kind] == number)
            if out.any():
                predicted = {
                    t: self.expert(t, kind, number).predict_proba(self.samples[t][out])
                    for t in profile.times
                }
                walked = None if self.walked is None else self.walked[out]
                scores[out] = profile.scores(predicted, walked)
        return scores[training.judged]

    def without(self, doubtful: NDArray[np.bool_]) -> ChainOnScene:
        """Return the chain without some of the training pixels."""
        samples = {t: samples[~doubtful] for t, samples in self.samples.items()}
        training = self.training.without(doubtful)
        return replace(self, training=training, samples=samples, walked=None, experts={})

    def let_go(self) -> ChainOnScene:
        """Return the chain without the scene."""
        experts = {key: expert for key, expert in self.experts.items() if key[1] != "random"}
        return replace(self, features=None, flowed=None, walked=None, experts=experts)


def _picked(data: Any, training: Training) -> NDArray[np.float64]:
    """Return the values (pixel, band) of an array (band, y, x) at the training pixels."""
    rows, columns = np.unravel_index(training.positions, training.shape)
    if isinstance(data, np.ndarray):
        return data[:, rows, columns].T.astype(np.float64)
    picked: NDArray[np.float64] = data.vindex[:, rows, columns].compute().astype(np.float64)
    return picked


def fit_chains(
    cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int, seed: int
) -> dict[str, ChainOnScene]:
    """Return the chains that a scene allows, with the features of its training pixels."""
    chains: dict[str, ChainOnScene] = {}
    training: Training | None = None
    for name in CHAINS:
        try:
            steps, features = fit_chain(name, cube, _N_COMPONENTS)
        except InputError:  # a scene without noise has no MNF
            if name != "mnf":
                raise
            continue
        samples, values, positions = located_samples(features, labels)
        if training is None:
            training = Training.of(labels, values, positions, n_folds=n_folds, seed=seed)
        chains[name] = ChainOnScene(training, steps, features, {0.0: samples})
    if not any(chain.samples[0.0].std(axis=0).any() for chain in chains.values()):
        raise InputError(
            "The training pixels cannot be told apart: all bands are constant over them. Check "
            "that the cube holds the scene, and that its labels lie where it has data."
        )
    return chains


def training_of(chains: Mapping[str, ChainOnScene]) -> Training:
    """Return the training pixels, which are the same for all chains."""
    return next(iter(chains.values())).training


def held_out_scores(
    chains: Mapping[str, ChainOnScene], profiles: Mapping[str, Profile], kind: str
) -> dict[str, NDArray[np.float64]]:
    """Return the scores of left-out training pixels by chain and profile."""
    return {
        f"{name} {label}": chain.held_out_scores(profile, kind)
        for name, chain in chains.items()
        for label, profile in profiles.items()
    }


def scene_of(cube: xr.DataArray, parts: Sequence[Any]) -> xr.DataArray:
    """Return arrays (band, y, x) as one scene on the grid of `cube`."""
    arrays = [part.data if isinstance(part, xr.DataArray) else part for part in parts]
    stacked = [on_the_grid_of(cube, data, dim=schema.BAND, coords={}) for data in arrays]
    return xr.concat(stacked, dim=schema.BAND)
