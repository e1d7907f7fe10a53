"""Candidates of the automatic pool: experts on diffused chains, random walkers, and their mixes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from dask.base import compute
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import ledoit_wolf
from sklearn.ensemble import RandomForestClassifier

from hsreject import schema
from hsreject.classify.pool import floored_log
from hsreject.classify.random_walker import GRAPHS, layers_of, walkers
from hsreject.classify.smlr import SparseMultinomialRegression
from hsreject.classify.training_pixels import Training, evenly
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.features.chains import CHAINS, fit_chain
from hsreject.features.diffusion import N_GUIDES, diffused, mean_squared_step
from hsreject.features.pixels import located_samples

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.features.transformer import SceneTransformer

_N_COMPONENTS = 30
_SPARSITY = 0.01
_MOST_CENTERS = 200  # basis functions of the regression: bounds its time where pixels are many
# Bounds on the time of experts: pixels and trees, for the map and for the folds; Newton steps.
_MOST_PIXELS = 1000
_MOST_PIXELS_OF_FOLDS = 400
_MOST_STEPS = 25
_N_TREES = 200
_N_TREES_OF_FOLDS = 100
_N_DISCRIMINANTS = 5
_NEGLIGIBLE_SPREAD = 1e-6  # of class means along a direction, to the largest: rounding errors


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


TIMES = (0.0, 3.0, 30.0, 300.0)
BANDS = "bands"
"""The chain that leaves the bands as they are: a forest sees them."""

MAPPED = ("fields", "mixed", "pixels")
"""Profiles for the map of the scene that holds the training pixels."""
CARRIED = ("pixels", "near", "far", "farthest")
"""Profiles for other scenes."""
PROFILES = {
    "fields": Profile((3.0, 30.0, 300.0), 0.25, 1.0),
    "mixed": Profile((0.0, 3.0), 1.0, 0.5),
    "pixels": Profile((0.0,)),
    "near": Profile((0.0, 3.0)),
    "far": Profile((3.0, 30.0, 300.0)),
    "farthest": Profile((300.0,)),
}


class TwoExperts(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """The mean of sparse regression (radial basis) and linear discriminant analysis.

    The discriminant has equal priors and, per class, a covariance shrunken after Ledoit and Wolf in
    units of deviations: as in scikit-learn, but classes of a single pixel, which have no
    covariance, are allowed. The regression sees at most `most_pixels`, as many of each class, and
    ends after 25 steps: with ten pixels per class it has converged by then, with hundreds more
    steps change little.

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
        # With S the mean covariance the score of class k is x' S^-1 m_k - m_k' S^-1 m_k / 2. There
        # is no log of a prior, because training pixels do not show how common classes are.
        self.coef_ = np.linalg.lstsq(covariance, means.T, rcond=None)[0]
        self.intercept_ = -0.5 * np.einsum("kj,jk->k", means, self.coef_)
        return self

    def discriminants(self, most: int) -> NDArray[np.float64]:
        """Return directions (feature, direction) that separate the classes, the best first.

        They are Fisher's: in units of the deviation within classes, their means differ most. There
        are fewer than `most` if the means of the classes span fewer.
        """
        # With M the centred means (class, feature), M S^-1 M' is only as large as there are classes
        # and has the nonzero eigenvalues of Fisher's problem S^-1 M'M. S^-1 M' takes its
        # eigenvectors to directions, and the root of the eigenvalue scales them to unit deviation
        # within classes.
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


@dataclass
class Chain:
    """One way to see a scene, on the scene it was fitted to: features, experts and walkers."""

    training: Training
    steps: list[SceneTransformer]
    scene: xr.DataArray | None  # (band, y, x): features at t = 0; None once the scene is let go
    samples: dict[float, NDArray[np.float64]]  # by t: (pixel, feature)
    features: dict[float, Any] = field(default_factory=dict)  # by t: (band, y, x)
    mean_step: float = 0.0
    walked: NDArray[np.float64] | None = None  # (pixel, category): walkers without its fold
    experts: dict[tuple[float, str, int | None], Any] = field(default_factory=dict)

    @property
    def sees_bands(self) -> bool:
        """Whether there are no features but the bands, for a forest."""
        return not self.steps

    def look_around(self) -> None:
        """Diffuse the features on the graph of the scene."""
        assert self.scene is not None  # noqa: S101 (the scene is there while it is fitted)
        self.mean_step = mean_squared_step(self.scene[:N_GUIDES])
        later = diffused(self.scene, TIMES[1:], mean_step=self.mean_step)
        self.features = dict(zip(TIMES, [self.scene.data, *later], strict=True))
        self.samples |= dict(zip(TIMES[1:], _at(self.training, *later), strict=True))

    def walk(self) -> None:
        """Let walkers predict the training pixels of each fold from the others."""
        assert self.scene is not None  # noqa: S101 (as above)
        training = self.training
        n_classes, n_folds = len(training.classes), training.n_folds("random")
        self.walked = np.full((len(training.codes), n_classes), 1 / n_classes)
        if not n_folds:
            return
        # all folds in one call: the graphs, which do not depend on labels, are built once
        seeds = np.concatenate([training.seeds(without=number) for number in range(n_folds)])
        (ends,) = _at(training, walkers(layers_of([self.scene[:N_GUIDES]]), seeds, n_classes))
        for number, part in enumerate(np.split(ends, n_folds, axis=1)):
            out = training.folds["random"] == number
            self.walked[out] = part[out]

    def walkers_of_map(self, *, fold: int | None = None) -> Any:
        """Return where walkers end (category, y, x), all of them or those without a fold.

        Discriminants know all training pixels: they guide the map's walkers, not the folds'.
        """
        assert self.scene is not None  # noqa: S101 (as above)
        guides = self.scene[:N_GUIDES]
        layers = layers_of([guides])
        if fold is None:
            directions = self.expert(0.0).discriminants(_N_DISCRIMINANTS).astype(np.float32)
            if directions.size:
                data = np.tensordot(directions.T, self.scene.data, axes=1)
                discriminants = self.scene[: len(data)].copy(data=data)
                layers = [*layers_of([guides, discriminants]), layers_of([guides], GRAPHS[1:])[0]]
        return walkers(layers, self.training.seeds(without=fold), len(self.training.classes))

    def expert(self, t: float, kind: str = "", number: int | None = None) -> Any:
        """Return the expert on features at t without a fold of a kind, fitted when first asked."""
        if (t, kind, number) not in self.experts:
            used = self.training.outside(kind, number)
            samples, codes = self.samples[t][used], self.training.codes[used]
            most = _MOST_PIXELS_OF_FOLDS if kind else _MOST_PIXELS
            if self.sees_bands:
                some = evenly(codes, most)
                n_trees = _N_TREES_OF_FOLDS if kind else _N_TREES
                forest = RandomForestClassifier(n_trees, random_state=0)
                self.experts[t, kind, number] = forest.fit(samples[some], codes[some])
            else:
                self.experts[t, kind, number] = TwoExperts(most).fit(samples, codes)
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

    def without(self, doubtful: NDArray[np.bool_]) -> Chain:
        """Return the chain without some of the training pixels."""
        samples = {t: samples[~doubtful] for t, samples in self.samples.items()}
        training = self.training.without(doubtful)
        return replace(self, training=training, samples=samples, walked=None, experts={})

    def let_go(self) -> Chain:
        """Return the chain without the scene."""
        experts = {key: expert for key, expert in self.experts.items() if key[1] != "random"}
        return replace(self, scene=None, features={}, walked=None, experts=experts)


def _at(training: Training, *arrays: Any) -> list[NDArray[np.float64]]:
    """Return the values (pixel, band) of arrays (band, y, x) at the training pixels."""
    rows, columns = np.unravel_index(training.positions, training.shape)
    picked = compute(
        *(
            one[:, rows, columns].T if isinstance(one, np.ndarray) else one.vindex[:, rows, columns]
            for one in arrays
        )
    )
    return [values.astype(np.float64) for values in picked]


def fit_chains(
    cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int, seed: int
) -> dict[str, Chain]:
    """Return the chains that a scene allows, with the features of its training pixels."""
    chains: dict[str, Chain] = {}
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
        chains[name] = Chain(training, steps, features, {0.0: samples})
    if not any(chain.samples[0.0].std(axis=0).any() for chain in chains.values()):
        raise InputError(
            "The training pixels cannot be told apart: all bands are constant over them. Check "
            "that the cube holds the scene, and that its labels lie where it has data."
        )
    return chains


def chain_of_bands(cube: xr.DataArray, training: Training) -> Chain:
    """Return the chain of the bands themselves."""
    bands = good_bands_of(cube)
    (samples,) = _at(training, bands.data)
    return Chain(training, [], bands, {0.0: samples}, {0.0: bands.data})


def good_bands_of(cube: xr.DataArray) -> xr.DataArray:
    """Return the good bands of a scene in single precision, as a forest sees them."""
    good = cube.isel({schema.BAND: np.flatnonzero(schema.good_bands(cube))})
    return good.astype(np.float32, copy=False)


def held_out_scores(
    chains: Mapping[str, Chain], profiles: tuple[str, ...], kind: str
) -> dict[str, NDArray[np.float64]]:
    """Return the scores of left-out training pixels by chain and profile."""
    return {
        f"{name} {profile}": chain.held_out_scores(PROFILES[profile], kind)
        for name, chain in chains.items()
        for profile in (("pixels",) if chain.sees_bands else profiles)
    }
