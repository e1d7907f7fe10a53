"""Candidates of the automatic pool: experts on diffused chains, random walkers, and their mixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from hsreject.classify.random_walker import GRAPHS, scene_graphs, walk_graphs
from hsreject.classify.smlr import SparseMultinomialRegression
from hsreject.classify.temperature import floored_log
from hsreject.errors import InputError
from hsreject.features.chains import CHAINS, fit_chain
from hsreject.features.diffusion import CONTRAST, N_GUIDES, EdgeGraph, diffuse
from hsreject.features.pixels import located_samples
from hsreject.sampling.draws import deal_folds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.features.transformer import SceneTransformer

_N_COMPONENTS = 30
_SPARSITY = 0.01
_MOST_CENTERS = 200  # basis functions of the regression: bounds its time where pixels are many
_N_DISCRIMINANTS = 5
_NEGLIGIBLE_SPREAD = 1e-6  # of class means along a direction, to the largest: rounding errors
_MOST_HELD_OUT = 500  # training pixels dealt into folds: bounds the time, and tells enough


@dataclass(frozen=True)
class Profile:
    """How a candidate sees space: z = spectral * log(mean over t of p_t) + walkers * log(R)."""

    times: tuple[float, ...]
    spectral: float
    walkers: float


PIXELS = "pixels"
PROFILES = {
    "fields": Profile((3.0, 30.0, 300.0), 0.25, 1.0),
    "mixed": Profile((0.0, 3.0), 1.0, 0.5),
    PIXELS: Profile((0.0,), 1.0, 0.0),
}


TIMES = tuple(sorted({t for profile in PROFILES.values() for t in profile.times}))
N_STEPS = len(TIMES) + 3 * len(GRAPHS) - 1
"""How often `ChainOnScene.look_around` reports progress."""


class TwoExperts(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """The mean of sparse regression (radial basis) and linear discriminant analysis.

    The discriminant has equal priors and, per class, a covariance shrunken after Ledoit and Wolf:
    what scikit-learn's does, but without its checks, which take longer than ten pixels per class,
    and with classes of a single pixel, which have no covariance.
    """

    def fit(self, X: NDArray[np.float64], y: NDArray[np.intp]) -> Self:
        """Fit both to samples (n_samples, n_features) and their classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_centers = _MOST_CENTERS if len(X) > _MOST_CENTERS else None
        self.regression_ = SparseMultinomialRegression(_SPARSITY, n_centers=n_centers).fit(X, y)
        groups = [X[codes == code] for code in range(len(self.classes_))]
        means = self.means_ = np.stack([group.mean(axis=0) for group in groups])
        spreads = [shrunken_covariance(group) for group in groups if len(group) > 1]
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


def shrunken_covariance(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance of samples, shrunken after Ledoit and Wolf in units of deviations."""
    count, n_features = samples.shape
    deviation = samples.std(axis=0)
    deviation[deviation == 0] = 1.0
    scaled = (samples - samples.mean(axis=0)) / deviation
    covariance: NDArray[np.float64] = scaled.T @ scaled / count
    squares = scaled**2
    level = np.trace(covariance) / n_features
    from_level = (covariance**2).sum() / n_features - level**2
    noise = ((squares.T @ squares).sum() / count - (covariance**2).sum()) / (count * n_features)
    share = min(noise / from_level, 1.0) if from_level > 0 else 0.0
    covariance *= 1 - share
    covariance[np.diag_indices(n_features)] += share * level
    return covariance * np.outer(deviation, deviation)


@dataclass(frozen=True)
class Training:
    """The training pixels of a scene."""

    classes: NDArray[np.int64]  # (category,): label values, ascending
    codes: NDArray[np.intp]  # (pixel,): number of the class in `classes`
    positions: NDArray[np.intp]  # (pixel,): in the flattened image
    fold: NDArray[np.intp]  # (pixel,): -1 for a pixel that is never left out

    @property
    def n_folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max(initial=-1)) + 1

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Which pixels are left out at some time."""
        return self.fold >= 0


@dataclass
class ChainOnScene:
    """One chain on the scene it was fitted to: its features, experts and walkers.

    Experts and walkers are numbered: 0 knows all training pixels, 1 + f those outside fold f.
    `pixels` says where nodes lie in the flattened image; `walkers` is (number, node, category),
    `at_seeds` the same at the training pixels. All three are empty before `look_around`.
    """

    training: Training
    steps: list[SceneTransformer]
    scene: xr.DataArray  # (band, y, x): features at t = 0
    samples: dict[float, NDArray[np.float64]]  # by t: (pixel, feature)
    pixels: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # (node,)
    features: dict[float, NDArray[np.float32]] = field(default_factory=dict)  # (node, feature)
    walkers: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0, 0), np.float32))
    at_seeds: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0, 0), np.float32))
    experts: dict[tuple[float, int], TwoExperts] = field(default_factory=dict)

    def look_around(self, progress: Callable[[], object]) -> None:
        """Diffuse the features and let walkers walk, on graphs of the whole scene."""
        guides = self.scene[:N_GUIDES]
        graph = EdgeGraph.of(guides.values, contrast=CONTRAST)
        self.pixels = graph.pixels
        plain = self.scene.values.reshape(len(self.scene), -1)[:, graph.pixels].T
        node = np.zeros(guides[0].size, dtype=np.intp)
        node[graph.pixels] = np.arange(graph.pixels.size)
        seeds = node[self.training.positions]
        for t in TIMES:
            self.features[t] = np.ascontiguousarray(diffuse(graph, plain, t))
            self.samples[t] = self.features[t][seeds].astype(np.float64)
            progress()
        self.walkers = self._walk(scene_graphs(guides), self.training.fold, progress)
        # The discriminants know all training pixels: they guide the map's walkers, not the folds'.
        graphs = chain(
            scene_graphs(guides, *self._discriminants()), scene_graphs(guides, graphs=GRAPHS[1:])
        )
        never = np.full_like(self.training.fold, -1)
        self.walkers[0] = self._walk(graphs, never, progress)[0]
        self.at_seeds = self.walkers[:, seeds]

    def _walk(
        self, graphs: Iterable[EdgeGraph], fold: NDArray[np.intp], progress: Callable[[], object]
    ) -> NDArray[np.float32]:
        """Return where walkers end on these graphs, (number, node, category)."""
        return walk_graphs(
            graphs,
            self.training.positions,
            np.eye(len(self.training.classes))[self.training.codes],
            fold,
            progress=lambda _done: progress(),
        )

    def _discriminants(self) -> list[xr.DataArray]:
        """Return guides (band, y, x) that change where the class does; none if no class differs."""
        directions = self.expert(0.0, 0).discriminants(_N_DISCRIMINANTS).astype(np.float32)
        if not directions.size:
            return []
        guides = self.scene[: directions.shape[1]]
        return [guides.copy(data=np.tensordot(directions.T, self.scene.values, axes=1))]

    def features_at(self, t: float) -> xr.DataArray:
        """Return the diffused features as a scene (band, y, x)."""
        data = np.full((len(self.scene), self.scene[0].size), np.nan, dtype=np.float32)
        data[:, self.pixels] = self.features[t].T
        return self.scene.copy(data=data.reshape(self.scene.shape))

    def expert(self, t: float, number: int) -> TwoExperts:
        """Return the experts on features at t, fitted when they are first asked for."""
        if (t, number) not in self.experts:
            known = self.training.fold != number - 1
            if not number:
                known[:] = True
            fitted = TwoExperts().fit(self.samples[t][known], self.training.codes[known])
            self.experts[t, number] = fitted
        return self.experts[t, number]

    def held_out_scores(self, profile: Profile) -> NDArray[np.float64]:
        """Return the scores (pixel, category) of the training pixels that are in a fold."""
        scores = np.zeros((len(self.training.codes), len(self.training.classes)))
        for number in range(1, self.training.n_folds + 1):
            out = self.training.fold == number - 1
            predicted = self._predicted({t: self.samples[t][out] for t in profile.times}, number)
            walkers = self.at_seeds[number, out] if profile.walkers else None
            scores[out] = _scores(profile, predicted, walkers)
        return scores[self.training.held_out]

    def scores(
        self, names: Iterable[str], number: int, nodes: slice
    ) -> dict[str, NDArray[np.float32]]:
        """Return the scores (node, category) of some pixels of the scene, by name of profile."""
        profiles = {name: PROFILES[name] for name in names}
        times = {t for profile in profiles.values() for t in profile.times}
        predicted = self._predicted({t: self.features[t][nodes] for t in times}, number)
        scores = {}
        for name, profile in profiles.items():
            walkers = self.walkers[number, nodes] if profile.walkers else None
            scores[name] = _scores(profile, predicted, walkers)
        return scores

    def _predicted(
        self, features: Mapping[float, NDArray[Any]], number: int
    ) -> dict[float, NDArray[Any]]:
        return {t: self.expert(t, number).predict_proba(x) for t, x in features.items()}


def _scores(
    profile: Profile, predicted: Mapping[float, NDArray[Any]], walkers: NDArray[Any] | None
) -> NDArray[Any]:
    """Return the scores of a profile from the experts' probabilities by t, and from walkers."""
    mean = sum(predicted[t] for t in profile.times) / len(profile.times)
    scores = profile.spectral * floored_log(mean)
    if walkers is not None:
        scores += profile.walkers * floored_log(walkers)
    return np.asarray(scores)


def fit_chains(
    cube: xr.DataArray, labels: xr.DataArray, *, in_memory: bool, n_folds: int, seed: int
) -> dict[str, ChainOnScene]:
    """Return the chains that a scene allows, with the features of its training pixels."""
    chains: dict[str, ChainOnScene] = {}
    for name in CHAINS:
        try:
            steps, features = fit_chain(name, cube, _N_COMPONENTS)
        except InputError:  # a scene without noise has no MNF
            if name != "mnf":
                raise
            continue
        if in_memory:
            features = features.compute()
        samples, values, positions = located_samples(features, labels)
        classes, codes = np.unique(values, return_inverse=True)
        fold = deal_folds(values, n_folds, seed=seed, most=_MOST_HELD_OUT)
        training = Training(classes, codes, positions, fold)
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
    chains: Mapping[str, ChainOnScene], profiles: Iterable[str]
) -> dict[str, NDArray[np.float64]]:
    """Return the scores of left-out training pixels by chain and profile."""
    return {
        f"{name} {profile}": chain.held_out_scores(PROFILES[profile])
        for (name, chain), profile in product(chains.items(), profiles)
    }
