"""Candidates of the automatic pool: experts on diffused chains, random walkers, and their mixes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import ledoit_wolf
from sklearn.ensemble import RandomForestClassifier

from hsreject.classify.pool import floored_log
from hsreject.classify.random_walker import GRAPHS, HALO, Layer, layers_of, mean_steps, walkers
from hsreject.classify.smlr import SparseMultinomialRegression
from hsreject.classify.training_pixels import Training, evenly
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.features.chains import FittedChain, diffused_samples, fit_chains
from hsreject.features.diffusion import N_GUIDES
from hsreject.features.pixels import RowProgress, located_samples, samples_at
from hsreject.features.windows import Window, each_window, windows_with

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

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


TREE_PIXELS = 32_768
"""Pixels that a tree sees at once: the more, the longer it stays in the cache."""

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
        return np.asarray(coef @ axes[:, best] / np.sqrt(spread[best]))

    def predict_proba(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the probabilities (n_samples, n_classes), in the precision of the samples."""
        scores = X @ self.coef_.astype(X.dtype) + self.intercept_.astype(X.dtype)
        return np.asarray((softmax(scores, axis=1) + self.regression_.predict_proba(X)) / 2)


def mean_of_trees(forest: RandomForestClassifier, samples: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities of a forest, as its `predict_proba`, but without joblib.

    That starts threads and checks the samples again for every tree: half of the time on the few
    thousand pixels that are looked at together.
    """
    single = np.ascontiguousarray(samples, dtype=np.float32)
    total = sum(tree.tree_.predict(single) for tree in forest.estimators_)
    return np.asarray(total / len(forest.estimators_))


def _shrunken_covariance(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = samples.std(axis=0)
    deviation[deviation == 0] = 1.0
    covariance: NDArray[np.float64] = ledoit_wolf(samples / deviation)[0]
    return covariance * np.outer(deviation, deviation)


@dataclass
class Chain:
    """One way to see the scene that holds the training pixels: features, experts and walkers."""

    view: FittedChain
    training: Training
    samples: dict[float, NDArray[np.float64]]  # by t: (pixel, feature)
    walked: NDArray[np.float64] | None = None  # (pixel, category): walkers without its fold
    experts: dict[tuple[float, str, int | None], Any] = field(default_factory=dict)

    @property
    def sees_bands(self) -> bool:
        """Whether there are no features but the bands, for a forest."""
        return not self.view.steps

    def layers(self, block: xr.DataArray, *, of_map: bool = False) -> list[Layer]:
        """Return what holds walkers back: edges of components and, for the map, of discriminants.

        Discriminants know all training pixels: they guide the map's walkers, not the folds'.
        """
        features = self.view.look(block, (0.0,))[0.0]
        guides = features[:N_GUIDES]
        directions = self.expert(0.0).discriminants(_N_DISCRIMINANTS) if of_map else np.zeros(0)
        if not directions.size:
            return layers_of([guides])
        discriminants = np.tensordot(directions.T.astype(np.float32), features, axes=1)
        return [*layers_of([guides, discriminants]), *layers_of([guides], GRAPHS[1:])]

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

    def held_out(self, t: float, kind: str) -> NDArray[np.float64]:
        """Return the probabilities (pixel, category) of the judged pixels without their folds."""
        training = self.training
        probability = np.zeros((len(training.codes), len(training.classes)))
        for number in range(training.n_folds(kind)):
            out = training.judged & (training.folds[kind] == number)
            if out.any():
                expert = self.expert(t, kind, number)
                probability[out] = expert.predict_proba(self.samples[t][out])
        return probability[training.judged]

    def without(self, doubtful: NDArray[np.bool_]) -> Chain:
        """Return the chain that no longer trusts some of the training pixels."""
        return replace(self, training=self.training.without(doubtful), walked=None, experts={})

    def without_scene(self) -> Chain:
        """Return the chain without the scene."""
        experts = {key: expert for key, expert in self.experts.items() if key[1] != "random"}
        return replace(self, view=replace(self.view, whole=None), walked=None, experts=experts)

    def remembering(self, *, whole: bool) -> Chain:
        """Return the chain with room for what it sees of a scene that is looked at as a whole."""
        view = replace(self.view, whole={} if whole and self.view.steps else None)
        return replace(self, view=view, experts=dict(self.experts))


def chains_of(
    cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int, seed: int
) -> dict[str, Chain]:
    """Return the chains that a scene allows, with the features of its training pixels."""
    chains: dict[str, Chain] = {}
    training: Training | None = None
    for name, view, features in fit_chains(cube, _N_COMPONENTS):
        samples, _, positions = located_samples(features, labels)
        if training is None:
            training = Training.of(labels, positions, n_folds=n_folds, seed=seed)
        chains[name] = Chain(view, training, {0.0: samples})
    if not any(chain.samples[0.0].std(axis=0).any() for chain in chains.values()):
        raise InputError(
            "The training pixels cannot be told apart: all bands are constant over them. Check "
            "that the cube holds the scene, and that its labels lie where it has data."
        )
    return chains


def chain_of_bands(cube: xr.DataArray, training: Training) -> Chain:
    """Return the chain of the bands themselves."""
    bands = FittedChain([])
    return Chain(bands, training, {0.0: samples_at(bands.transform(cube), *training.places)})


def diffuse_and_walk(
    chains: Mapping[str, Chain], cube: xr.DataArray, *, walk: bool, progress: RowProgress
) -> None:
    """Diffuse the features of the training pixels and, with `walk`, let walkers predict them."""
    every = list(chains.values())
    training = every[0].training
    views = {name: chain.view for name, chain in chains.items()}
    for name, samples in diffused_samples(views, cube, training.places, TIMES).items():
        chains[name].samples = samples
    if not walk:
        return
    n_classes = len(training.classes)
    steps = mean_steps(cube, [chain.layers for chain in every])
    walked = [np.full((len(training.codes), n_classes), 1 / n_classes) for _ in every]
    fold = training.folds["random"]
    dealt = np.flatnonzero(fold >= 0)
    rows, columns = training.places
    places = rows[dealt], columns[dealt]

    def work(window: Window) -> None:
        block = window.block(cube)
        inside, (rows, columns) = window.locate(*places, around=False)
        # all folds in one call: the graphs, which do not depend on labels, are built once
        folds, number = np.unique(fold[dealt[inside]], return_inverse=True)
        seeds = training.seeds(window, folds.tolist())
        for chain, mean, answer in zip(every, steps, walked, strict=True):
            ends = walkers(chain.layers(block), mean, seeds, n_classes)
            answer[dealt[inside]] = ends[number, :, rows, columns]

    each_window(windows_with(places, cube, halo=HALO), work, progress=progress)
    for chain, answer in zip(every, walked, strict=True):
        chain.walked = answer


def held_out_scores(
    chains: Mapping[str, Chain], profiles: tuple[str, ...], kind: str
) -> dict[str, NDArray[np.float64]]:
    """Return the scores of left-out training pixels by chain and profile."""
    scores = {}
    for name, chain in chains.items():
        of_chain = {own: PROFILES[own] for own in (("pixels",) if chain.sees_bands else profiles)}
        times = sorted({t for profile in of_chain.values() for t in profile.times})
        predicted = {t: chain.held_out(t, kind) for t in times}
        walked = None if chain.walked is None else chain.walked[chain.training.judged]
        for own, profile in of_chain.items():
            scores[f"{name} {own}"] = profile.scores(predicted, walked)
    return scores
