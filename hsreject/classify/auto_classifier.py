"""A classifier that chooses everything by itself: a pool of diffused experts and random walkers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hsreject import schema
from hsreject.classify.candidates import (
    CARRIED,
    MAPPED,
    PIXELS,
    TIMES,
    ChainOnScene,
    Profile,
    Training,
    TwoExperts,
    fit_chains,
    held_out_scores,
    scene_of,
    training_of,
)
from hsreject.classify.pool import Pool
from hsreject.classify.scene_model import HeldOut, SceneModel
from hsreject.errors import FewPolygonsWarning, LargeSceneWarning
from hsreject.features.diffusion import HALO, diffused, in_windows, windows_of
from hsreject.features.pixels import map_pixels
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_count
from hsreject.threads import one_blas_thread, usable_cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 0.1  # weight of a chain among the chains at t = 0, to be tried any further
_ENOUGH_POLYGONS = 5  # per class; with fewer, another one helps more than any method
_WALKERS = -1.0  # in place of a time
_DOUBT = 0.01  # probability of a left-out label below which it may be wrong
_TOO_OFTEN = 3.0  # times as many as a calibrated pool would have

# What a map in windows takes, as measured: CPU per pixel, and memory per pixel of a window.
_SECONDS_PER_PIXEL = 125e-6
_BYTES_PER_PIXEL, _BYTES_PER_CLASS = 900, 130
_PIXELS_OF_WINDOW = 640**2  # with the halo of walkers


class AutoClassifier(SceneModel):
    r"""A pool of experts and random walkers that chooses everything from the training pixels.

    Nobody knows beforehand whether a scene wants noise-adjusted components or plain ones, smoothing
    or none. So candidates of all kinds are fitted and averaged, each with the weight that its
    predictions of left-out training pixels deserve (:class:`~hsreject.Pool`).

    - Three *chains* lead to 30 components: MNF, scaled bands, scaled spectra of unit length.
    - On each, *experts* (the mean of sparse regression and linear discriminant analysis) see the
      features at diffusion times t (:class:`~hsreject.Diffuse`): probabilities :math:`p_t`.
    - *Random walkers* (:class:`~hsreject.RandomWalker`) carry classes along the scene: R. What
      holds them back is components that differ and, for the map, discriminants that do: directions
      in which the training pixels of different classes lie apart. Left-out pixels are predicted
      without discriminants, which would know them.
    - Three *profiles* combine them to scores
      :math:`z = a \log \overline{p_t} + b \log R`, every probability with a floor of .01 / K:
      *fields* (t = 3, 30, 300; a = .25, b = 1), *mixed* (t = 0, 3; a = 1, b = .5) and *pixels*
      (t = 0; a = 1, b = 0).

    Chains that are clearly worse at t = 0 are dropped first. That is the map of
    `fit_predict_proba`, of the scene that holds the training pixels. Its probabilities are
    calibrated: the pool has one temperature for each candidate and one for their mean, from the
    same left-out pixels.

    What is *carried* to any scene, by `predict_proba`, has no walkers. It is the mean of two
    pools: of the pixels candidates, and of the profiles t = (0), (0, 3), (3, 30, 300) and (300) on
    the graph of the new scene, with the mean squared step of the training scene. The second is
    judged by folds of place: runs of the pixels of a class along the axis on which they lie.

    Scattered labels that the pool, left to predict them, gives less than .01 are overruled in the
    map, if there are three times as many of them as right labels would have.

    Training pixels that lie in clumps of three and more were digitised as polygons. Then folds
    leave out whole polygons, and polygons are the sample by which candidates are weighed.

    Parameters
    ----------
    spatial : bool, default True
        Whether the map of the scene that holds the training pixels may use where they lie. Without,
        `fit_predict_proba` says what `predict_proba` says.
    n_folds : int, default 5
        Into how many folds the training pixels are dealt, at least 2.
    seed : int, default 0
        Seed of the folds and of the pool's bootstraps.

    Attributes
    ----------
    best_chain_ : str
        The chain with the largest weight.
    pool_ : Pool
        The weights of all candidates of the map that was made.
    carried_pools_ : list of Pool
        The weights of the candidates that are carried.
    tried_ : Dataset over `candidate`
        What was tried: `chain`, `profile`, `brier_score` (held out, 0 to 2), `temperature` and
        `weight`; chains that were dropped early have weight 0.
    held_out_ : Dataset over `sample`
        What `pool_` says of training pixels that it was not shown: `reference` and `label`, the
        `probability` of that label, the `polygon` from 1 on (a number of its own for a scattered
        pixel) and the `position` in the flattened image.
    classes_, class_table_, band_requirements_, n_training_pixels_, hsreject_version_
        As for every :class:`SceneModel`.

    See Also
    --------
    hsreject.SceneClassifier : one classifier of your choice.
    hsreject.Pool : the weighted mean inside.
    hsreject.RandomWalker : one of its experts.

    Notes
    -----
    Scenes of up to half a million pixels are held in memory at once, in just under 3 kB per pixel
    for 16 classes. Larger ones are worked on in windows of 512 x 512 pixels, with 64 pixels around
    them for the walkers and 32 for the diffusion; a warning says first what that will take.

    Examples
    --------
    >>> from hsreject import AutoClassifier
    >>> from hsreject.datasets.synthetic import synthetic_scene
    >>> from hsreject.sampling.draws import sample_per_class
    >>> cube, labels = synthetic_scene(rows=32, columns=32, n_bands=8)
    >>> train, test = sample_per_class(labels, 5)
    >>> probability = AutoClassifier().fit_predict_proba(cube, train)
    >>> label = probability.fillna(0).idxmax("category")
    >>> bool((label == test).where(test > 0).mean() > 0.9)
    True
    """

    def __init__(self, *, spatial: bool = True, n_folds: int = 5, seed: int = 0) -> None:
        self.spatial = spatial
        self.n_folds = n_folds
        self.seed = seed

    def fit_predict_proba(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        *,
        progress: ProgressCallback = no_progress,
    ) -> xr.DataArray:
        """Fit to a scene and return the strongest map of it: its class probabilities.

        Parameters
        ----------
        cube, labels, progress
            As for :meth:`fit`.

        Returns
        -------
        DataArray (category, y, x) of float32
            NaN where there is no data, lazy when `cube` is. The attribute `calibrated` is set where
            left-out pixels could tell: not with a single polygon per class.
        """
        if self.spatial:
            chains = self._checked_learn(cube, labels, progress, mapped=True)
            with one_blas_thread():
                sources = {name: self._sources_of_map(chain) for name, chain in chains.items()}
                experts = {name: chain.expert for name, chain in chains.items()}
                data = self._pooled(cube, sources, experts, [(self.pool_, MAPPED)], progress)
            probability = self._on_grid(cube, data)
        else:
            probability = self.fit(cube, labels, progress=progress).predict_proba(cube)
        if self._calibrated:
            probability.attrs[schema.CALIBRATED] = 1
        return probability

    def held_out_proba(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5, seed: int = 0
    ) -> Iterator[HeldOut]:
        """Yield per fold the probabilities without its training pixels, and the mask of these.

        As :meth:`SceneModel.held_out_proba`. Components and graphs are made once; weights and
        temperatures of the pools have seen every fold.
        """
        model = clone(self).set_params(n_folds=n_folds, seed=seed)
        return AutoClassifier._left_out(model, cube, labels)

    def _left_out(self, cube: xr.DataArray, labels: xr.DataArray) -> Iterator[HeldOut]:
        """Fit to a scene and yield its maps without each fold."""
        chains = self._checked_learn(cube, labels, no_progress, mapped=self.spatial)
        training = training_of(chains)
        pools = [(self.pool_, MAPPED)] if self.spatial else self._carried_pools
        for number in range(training.n_folds("random")):
            experts = {
                name: partial(chain.expert, kind="random", number=number)
                for name, chain in chains.items()
            }
            if self.spatial:
                sources = {n: self._sources_of_map(c, fold=number) for n, c in chains.items()}
            else:
                sources = {n: self._sources(c.features, c.flowed) for n, c in chains.items()}
            with one_blas_thread():
                data = self._pooled(cube, sources, experts, pools, no_progress)
            left_out = np.zeros(labels.size, dtype=bool)
            left_out[training.positions[training.folds["random"] == number]] = True
            yield self._on_grid(cube, data), left_out.reshape(labels.shape)

    def transform(
        self,
        cube: xr.DataArray,
        *,
        match_bands: str = "exact",
        wavelength_tol: float | None = None,
    ) -> xr.DataArray:
        """Return the features (band, y, x) of the chain with the largest weight."""
        cube = self._matched(cube, match_bands, wavelength_tol)
        return self._features(self.best_chain_, cube)

    def carried(self) -> AutoClassifier:
        """Return this model as it is carried: its map of any scene is `predict_proba`."""
        self._carry()
        model = copy(self)
        model.spatial = False
        return model

    @property
    def halo(self) -> int:
        """How many pixels around a block decide its probabilities."""
        self._carry()
        profiles = [CARRIED[name.split()[1]] for name in self.carried_pools_[1].names_in_use]
        return HALO if any(max(profile.times) for profile in profiles) else 0

    @property
    def tried_(self) -> xr.Dataset:
        """What was tried and how it was weighed, over `candidate`, the largest weight first."""
        check_is_fitted(self, "pool_")
        rows = self.pool_.rows()
        rows += [(*row[:3], 0.0) for row in self.screen_.rows() if row[0] not in self.pool_.names_]
        rows.sort(key=lambda row: (-row[3], row[1]))
        names, scores, temperatures, weights = zip(*rows, strict=True)
        columns = {
            "chain": [name.split()[0] for name in names],
            "profile": [name.split()[1] for name in names],
            "brier_score": scores,
            "temperature": temperatures,
            "weight": weights,
        }
        data = {name: (schema.CANDIDATE, list(column)) for name, column in columns.items()}
        return xr.Dataset(data, coords={schema.CANDIDATE: list(names)})

    @property
    def held_out_(self) -> xr.Dataset:
        """What the pool says of training pixels that it was not shown, over `sample`."""
        check_is_fitted(self, "pool_")
        names = ("reference", "label", "probability", schema.POLYGON, "position")
        return xr.Dataset({name: ("sample", self.held_out_pixels_[name]) for name in names})

    def __getstate__(self) -> dict[str, Any]:
        """Hold what is carried: copies and files need no training pixels."""
        if "_chains" in self.__dict__:
            self._carry()
        return dict(super().__getstate__())

    def _learn(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        progress: ProgressCallback,
        *,
        mapped: bool = False,
    ) -> dict[str, ChainOnScene]:
        """Fit the pool of the map or, if no map is wanted, those that are carried."""
        check_count("n_folds", self.n_folds, least=2)
        if mapped:
            _announce(labels)
        every = fit_chains(in_windows(cube), labels, n_folds=self.n_folds, seed=self.seed)
        training = training_of(every)
        _advise(training)
        self.classes_ = training.classes
        self.n_training_pixels_ = len(training.codes)
        self._calibrated = _can_be_calibrated(training)
        progress("screening", 0, 1)
        scores = held_out_scores(every, {PIXELS: CARRIED[PIXELS]}, "random")
        self.screen_ = self._fitted_pool(scores, training)
        weighed = zip(every.items(), self.screen_.weights_, strict=True)
        chains = {name: chain for (name, chain), weight in weighed if weight >= _LEAST}
        for done, chain in enumerate(chains.values(), start=1):
            chain.look_around()
            if mapped:
                chain.walk()
            progress("candidates", done, len(chains))
        self.chains_ = {name: chain.steps for name, chain in chains.items()}
        self.mean_steps_ = {name: chain.mean_step for name, chain in chains.items()}
        self.__dict__["_chains"] = {name: chain.let_go() for name, chain in chains.items()}
        if mapped:
            scores = held_out_scores(chains, MAPPED, "random")
            self.pool_ = self._fitted_pool(scores, training)
        else:
            self._carry()
            self.pool_ = self.carried_pools_[1]
            scores = held_out_scores(chains, CARRIED, "random")
        weights = np.reshape(self.pool_.weights_, (len(chains), -1)).sum(axis=1)
        self.best_chain_ = list(chains)[int(weights.argmax())]
        probability = self.pool_.combine(scores)
        self._keep_held_out(training, probability)
        doubtful = _doubtful(training, probability)
        if mapped and doubtful.any():
            return {name: chain.without(doubtful) for name, chain in chains.items()}
        return chains

    def _keep_held_out(self, training: Training, probability: NDArray[Any]) -> None:
        best = probability.argmax(axis=1)
        judged = training.judged
        groups = training.groups()
        self.held_out_pixels_ = {
            "reference": training.classes[training.codes[judged]],
            "label": training.classes[best],
            "probability": probability[np.arange(len(best)), best].astype(np.float32),
            schema.POLYGON: 1 + (np.arange(len(best)) if groups is None else groups),
            "position": training.positions[judged],
        }

    def _fitted_pool(self, scores: Mapping[str, NDArray[Any]], training: Training) -> Pool:
        """Return the pool of candidates with these scores of the judged training pixels."""
        codes = training.codes[training.judged]
        return Pool(seed=self.seed).fit(scores, codes, training.groups())

    def _carry(self) -> None:
        """Fit what is carried, if it is not fitted yet, and let the training pixels go."""
        check_is_fitted(self, "chains_")
        chains: dict[str, ChainOnScene] | None = self.__dict__.pop("_chains", None)
        if chains is None:
            return
        with one_blas_thread():
            training = training_of(chains)
            alone = held_out_scores(chains, {PIXELS: CARRIED[PIXELS]}, "random")
            around = held_out_scores(chains, CARRIED, "place")
            self.carried_pools_ = [
                self._fitted_pool(scores, training) for scores in (alone, around)
            ]
            self.experts_ = {
                f"{name} {t:g}": chain.expert(t) for name, chain in chains.items() for t in TIMES
            }

    @property
    def _carried_pools(self) -> list[tuple[Pool, Mapping[str, Profile]]]:
        return [(pool, CARRIED) for pool in self.carried_pools_]

    def agreement(self, cube: xr.DataArray) -> float:
        """Return the share of pixels of a scene on whose label experts agree with the pool.

        An expert is one chain at one time, and counts as much as the carried pools weigh it. On a
        scene like the training scene it is .8 to .9.
        """
        self._carry()
        sources, experts = self._carried_sources(cube)
        pooled = np.asarray(self._pooled(cube, sources, experts, self._carried_pools, no_progress))
        valid = np.isfinite(pooled).all(axis=0)
        label = pooled[:, valid].argmax(axis=0)
        weights: dict[tuple[str, float], float] = {}
        for pool, profiles in self._carried_pools:
            for candidate, weight in zip(pool.names_, pool.weights_, strict=True):
                name, profile = candidate.split()
                times = profiles[profile].times
                for t in times:
                    weights[name, t] = weights.get((name, t), 0.0) + float(weight) / len(times)
        agreeing = 0.0
        for (name, t), weight in weights.items():
            if weight:
                samples = np.asarray(sources[name][t])[:, valid].T
                votes = experts[name](t).predict_proba(samples).argmax(axis=1)
                agreeing += weight * float((votes == label).mean())
        return agreeing / len(self._carried_pools)

    def _probability(self, cube: xr.DataArray, progress: ProgressCallback) -> Any:
        self._carry()
        sources, experts = self._carried_sources(in_windows(cube))
        return self._pooled(cube, sources, experts, self._carried_pools, progress)

    def _carried_sources(
        self, cube: xr.DataArray
    ) -> tuple[dict[str, dict[float, Any]], dict[str, Callable[[float], TwoExperts]]]:
        """Return by chain the features of a scene by time, and the experts on them."""
        sources: dict[str, dict[float, Any]] = {}
        experts: dict[str, Callable[[float], TwoExperts]] = {}
        for name, mean_step in self.mean_steps_.items():
            features = self._features(name, cube)
            flowed = diffused(features, TIMES[1:], mean_step=mean_step) if self.halo else None
            sources[name] = self._sources(features, flowed)
            experts[name] = partial(self._expert, name)
        return sources, experts

    def _expert(self, name: str, t: float) -> TwoExperts:
        return self.experts_[f"{name} {t:g}"]

    def _features(self, name: str, cube: xr.DataArray) -> xr.DataArray:
        for step in self.chains_[name]:
            cube = step.transform(cube)
        return cube

    @staticmethod
    def _sources(features: Any, flowed: Any) -> dict[float, Any]:
        """Return the features of a chain by time, arrays (band, y, x)."""
        sources = {0.0: features.data}
        if flowed is not None:
            for place, t in enumerate(TIMES[1:]):
                sources[t] = flowed[place * len(features) : (place + 1) * len(features)]
        return sources

    def _sources_of_map(self, chain: ChainOnScene, fold: int | None = None) -> dict[float, Any]:
        """Return the features of a chain by time and, at no time, its walkers."""
        sources = self._sources(chain.features, chain.flowed)
        sources[_WALKERS] = chain.walkers_of_map(chain.training, fold=fold)
        return sources

    def _pooled(
        self,
        cube: xr.DataArray,
        sources: Mapping[str, Mapping[float, Any]],
        experts: Mapping[str, Callable[[float], TwoExperts]],
        pools: Sequence[tuple[Pool, Mapping[str, Profile]]],
        progress: ProgressCallback,
    ) -> Any:
        """Return the mean of pools (category, y, x), from what pixels are like in each chain."""
        in_use = {
            (name, profile): profiles[profile]
            for pool, profiles in pools
            for name, profile in map(str.split, pool.names_in_use)
        }
        needed = sorted({(name, t) for (name, _), p in in_use.items() for t in p.times})
        walked = sorted({(name, _WALKERS) for (name, _), p in in_use.items() if p.walkers})
        keys = [*needed, *walked]
        scene = scene_of(cube, [sources[name][t] for name, t in keys])
        ends = np.cumsum([len(sources[name][t]) for name, t in keys])[:-1]

        def mean(samples: NDArray[Any]) -> NDArray[Any]:
            parts = dict(zip(keys, np.split(samples, ends, axis=1), strict=True))
            predicted: dict[str, dict[float, NDArray[Any]]] = {name: {} for name in sources}
            for name, t in needed:
                predicted[name][t] = experts[name](t).predict_proba(parts[name, t])
            scores = {
                f"{name} {label}": profile.scores(predicted[name], parts.get((name, _WALKERS)))
                for (name, label), profile in in_use.items()
            }
            return np.asarray(sum(pool.combine(scores) for pool, _ in pools) / len(pools))

        data = map_pixels(
            scene,
            mean,
            n_outputs=len(self.classes_),
            dtype=np.float32,
            progress=partial(progress, "classify"),
        )
        return data.compute() if cube.chunks is None and scene.chunks is not None else data


def _doubtful(training: Training, probability: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which training pixels are labelled wrong, as everything around them says.

    Where labels are right, a calibrated pool gives a left-out label less than .01 in one of a
    hundred cases. Where it happens three times as often as that, such labels are overruled.
    """
    doubtful = np.zeros(len(training.codes), dtype=bool)
    judged = np.flatnonzero(training.judged)
    own = probability[np.arange(len(judged)), training.codes[judged]]
    too_many = np.count_nonzero(own < _DOUBT) > _TOO_OFTEN * _DOUBT * len(judged)
    if training.polygon is None and too_many:  # a polygon that differs is another place, not wrong
        doubtful[judged[own < _DOUBT]] = True
        left = np.bincount(training.codes[~doubtful], minlength=len(training.classes))
        doubtful &= left[training.codes] > 0  # of a class that would be lost, all stay
    return doubtful


def _can_be_calibrated(training: Training) -> bool:
    """Return whether left-out pixels tell how sure one may be: most classes have two polygons."""
    if training.polygon is None:
        return bool(training.judged.any())
    return bool(np.median(_polygons_per_class(training)) >= 2)


def _polygons_per_class(training: Training) -> NDArray[np.intp]:
    assert training.polygon is not None  # noqa: S101 (the callers have looked)
    first = np.unique(training.polygon, return_index=True)[1]
    return np.bincount(training.codes[first], minlength=len(training.classes))


def _announce(labels: xr.DataArray) -> None:
    """Say what the map of a scene will take, if it is cut into windows."""
    n_windows = windows_of(*labels.shape)
    if n_windows == 1:
        return
    n_classes = np.count_nonzero(np.unique(schema.reference_labels(labels)))
    n_workers = min(usable_cores(), n_windows)
    working = n_workers * _PIXELS_OF_WINDOW * (_BYTES_PER_PIXEL + n_classes * _BYTES_PER_CLASS)
    probabilities = 4 * n_classes * labels.size
    warnings.warn(
        f"The scene has {labels.size / 1e6:.1f} million pixels. Its map is made in {n_windows} "
        f"windows and takes about {labels.size * _SECONDS_PER_PIXEL / 60:.0f} minutes of one core "
        f"and {(working + probabilities) / 1e9:.1f} GB beside the scene.",
        LargeSceneWarning,
        stacklevel=5,  # whoever called fit_predict_proba
    )


def _advise(training: Training) -> None:
    """Warn where few polygons make the confidence one of few places."""
    if training.polygon is None:
        return
    counts = _polygons_per_class(training)
    if np.median(counts) < _ENOUGH_POLYGONS:
        size = len(training.codes) / counts.sum()
        warnings.warn(
            f"Training pixels lie in {counts.sum()} clumps ({size:.0f} pixels each). Confidence is "
            "for places like these; add clumps elsewhere: five small ones beat one large.",
            FewPolygonsWarning,
            stacklevel=5,  # whoever called fit
        )
