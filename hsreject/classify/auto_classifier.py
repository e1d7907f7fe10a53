"""A classifier that chooses everything by itself: a pool of diffused experts and random walkers."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.validation import check_is_fitted

from hsreject import schema
from hsreject.classify.candidates import (
    BANDS,
    CARRIED,
    MAPPED,
    PROFILES,
    TREE_PIXELS,
    Chain,
    chain_of_bands,
    chains_of,
    diffuse_and_walk,
    held_out_scores,
    mean_of_trees,
)
from hsreject.classify.pool import Pool
from hsreject.classify.random_walker import HALO as HALO_OF_WALKERS
from hsreject.classify.random_walker import mean_steps, walkers
from hsreject.classify.scene_model import HeldOut, SceneModel
from hsreject.classify.training_pixels import Training
from hsreject.errors import FewPolygonsWarning, LargeSceneWarning
from hsreject.features.chains import FittedChain
from hsreject.features.diffusion import HALO
from hsreject.features.pixels import PIXELS_AT_ONCE, map_pixels
from hsreject.features.windows import (
    BYTES_PER_PIXEL,
    Window,
    each_window,
    in_windows,
    n_workers_of,
    on_windows,
    windows_of,
)
from hsreject.progress import ProgressCallback, no_progress
from hsreject.splits.polygons import polygon_advice
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = 0.1  # weight of a chain among the chains at t = 0, to be tried any further

_SECONDS_PER_PIXEL = 90e-6  # of a map in windows, as measured
_BYTES_PER_CLASS = 80  # per pixel of a window

_Probabilities = dict[tuple[str, float | None], "NDArray[np.float32]"]
"""By chain and time the probabilities (category, y, x) of an expert; without a time of walkers."""


class AutoClassifier(SceneModel):
    r"""A pool of experts and random walkers that chooses everything from the training pixels.

    It is not known beforehand whether a scene needs noise-adjusted or plain components, smoothing
    or none. So candidates of all kinds are fitted and averaged, each with the weight that its
    predictions of left-out training pixels deserve (:class:`~hsreject.Pool`).

    - Three *chains* lead to 30 components: MNF, scaled bands, scaled spectra of unit length.
    - On each, *experts* (the mean of sparse regression and linear discriminant analysis) see the
      features at diffusion times t (:class:`~hsreject.Diffuse`): probabilities :math:`p_t`.
    - *Random walkers* (:class:`~hsreject.RandomWalker`) carry classes along the scene: R. In the
      map they are held back by discriminants, too: directions that separate the training pixels of
      different classes. Left-out pixels, with which these were fitted, are predicted without.
    - Three *profiles* combine them to scores
      :math:`z = a \log \overline{p_t} + b \log R`, every probability with a floor of .01 / K:
      *fields* (t = 3, 30, 300; a = .25, b = 1), *mixed* (t = 0, 3; a = 1, b = .5) and *pixels*
      (t = 0; a = 1, b = 0).

    Chains that are clearly worse at t = 0 are dropped first. This is the calibrated map of
    `fit_predict_proba`, of the scene that holds the training pixels. Scattered labels that the
    pool, left to predict them, gives less than .01 are overruled in it, if there are three times as
    many of them as right labels would have.

    What is *carried* to any scene, by `predict_proba`, has no walkers. It is the mean of two
    pools: of the pixels candidates, and of the profiles t = (0), (0, 3), (3, 30, 300) and (300) on
    the graph of the new scene, with the mean squared step of the training scene. The second is
    weighed by folds of place: runs of the pixels of a class along the axis on which they lie. Both
    also hold a random forest on the bands as they are.

    Training pixels that lie in clusters of three and more were digitised as polygons. Then folds
    leave out whole polygons, polygons are the sample by which candidates are weighed, and the
    forest is a candidate for the map, too: inside a polygon everything looks easy, and components
    of the whole scene may be wrong elsewhere.

    Scenes of more than half a million pixels are worked on in windows, within 2.5 GB beside the
    probabilities; open them with ``chunks="auto"``. A warning says first what that will take.

    Parameters
    ----------
    spatial : bool, default True
        Whether the map of the scene that holds the training pixels may use where they lie. If not,
        `fit_predict_proba` returns what `predict_proba` returns.
    n_folds : int, default 5
        Number of folds that the training pixels are dealt into, at least 2.
    seed : int, default 0
        Seed of the folds and of the pool's bootstraps.

    Attributes
    ----------
    pool_ : Pool
        The weights of all candidates of the map that was made.
    carried_pools_ : list of Pool
        The weights of the candidates that are carried.
    tried_ : Dataset over `candidate`
        What was tried: `chain`, `profile`, `brier_score` (held out, 0 to 2), `temperature` and
        `weight`; chains that were dropped early have weight 0.
    classes_, class_table_, band_requirements_, n_training_pixels_, hsreject_version_
        As for every :class:`SceneModel`.

    See Also
    --------
    hsreject.SceneClassifier : one classifier of your choice.
    hsreject.Pool : the weighted mean inside.
    hsreject.RandomWalker : one of its experts.

    Examples
    --------
    >>> from hsreject import AutoClassifier
    >>> from hsreject.datasets.synthetic import synthetic_scene
    >>> from hsreject.splits.draws import sample_per_class
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

        As :meth:`SceneModel.fit_predict_proba`. The attribute `calibrated` is set if left-out
        pixels allow it: not with a single polygon per class.
        """
        if self.spatial:
            chains = self._checked_learn(cube, labels, progress, mapped=True)
            probability = self._on_grid(cube, self._map(cube, chains, [self.pool_], progress))
        else:
            probability = self.fit(cube, labels, progress=progress).predict_proba(cube)
        if self._calibrated:
            probability.attrs[schema.CALIBRATED] = 1
        return probability

    def held_out_proba(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5, seed: int = 0
    ) -> Iterator[HeldOut]:
        """Yield maps without folds, as :meth:`SceneModel.held_out_proba`.

        Components and graphs are made once; weights and temperatures have seen every fold. The
        coordinate `doubted` (y, x) marks the labels that the pool takes to be wrong: no map learns
        from them, whichever fold is left out.
        """
        model = clone(self).set_params(n_folds=n_folds, seed=seed)
        return AutoClassifier._left_out(model, cube, labels)

    def held_out_again(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5
    ) -> Iterator[HeldOut]:
        """Yield maps without folds, as :meth:`SceneModel.held_out_again`."""
        if "_learned" not in self.__dict__ or (n_folds, self.seed) != (self.n_folds, 0):
            return super().held_out_again(cube, labels, n_folds=n_folds)
        return self._left_out(cube)

    def carried(self) -> AutoClassifier:
        """Return the model for other scenes: what ``spatial=False`` fits to the same scene."""
        self._carry()
        model = copy(self)
        model.__dict__.update(self.__dict__)  # with what was learned
        model.spatial, model.pool_ = False, self.carried_pools_[1]
        return model

    def _left_out(
        self, cube: xr.DataArray, labels: xr.DataArray | None = None
    ) -> Iterator[HeldOut]:
        """Yield the maps of a scene without each fold, fitted to labels first if there are any."""
        if labels is None:
            learned: _Learned = self.__dict__["_learned"]
            chains = learned.of_map(cube) if self.spatial else learned.of_scene(cube)
        else:
            chains = self._checked_learn(cube, labels, no_progress, mapped=self.spatial)
        if not self.spatial:
            self._carry()
        pools = [self.pool_] if self.spatial else self.carried_pools_
        training = _training_of(chains)
        doubted = {schema.DOUBTED: (schema.MAP_DIMS, training.doubted())}
        for number, left_out in enumerate(training.left_out()):
            data = self._map(cube, chains, pools, no_progress, fold=number)
            yield self._on_grid(cube, data).assign_coords(doubted), left_out

    @property
    def halo(self) -> int:
        """How many pixels around a block decide its probabilities."""
        self._carry()
        return HALO if any(map(any, _weights(self.carried_pools_).values())) else 0

    @property
    def tried_(self) -> xr.Dataset:
        """What was tried and how it was weighed, over `candidate`, the largest weight first."""
        check_is_fitted(self, "pool_")
        rows = self.pool_.rows()
        rows += [(*row[:3], 0.0) for row in self.screen_.rows() if row[0] not in self.pool_.names_]
        rows.sort(key=lambda row: (-row[3], row[1]))
        names = ("chain", "profile", "brier_score", "temperature", "weight")
        columns = zip(
            *((*candidate.split(), *numbers) for candidate, *numbers in rows), strict=True
        )
        data = {name: (schema.CANDIDATE, list(of)) for name, of in zip(names, columns, strict=True)}
        return xr.Dataset(data, coords={schema.CANDIDATE: [candidate for candidate, *_ in rows]})

    def agreement(self, cube: xr.DataArray) -> float:
        """Return on which share of the labels of a scene the experts agree with the carried pools.

        Each counts as the pools weigh it; on a scene like the training scene it is .8 to .9.
        """
        self._carry()
        probabilities = self._carried_probabilities(cube.compute())
        pooled = self._mean(probabilities, self.carried_pools_)
        valid = np.isfinite(pooled).all(axis=0)
        label = pooled[:, valid].argmax(axis=0)
        return sum(
            weight * float((probabilities[name, t][:, valid].argmax(axis=0) == label).mean())
            for name, of_chain in _weights(self.carried_pools_).items()
            for t, weight in of_chain.items()
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the training pixels behind where all that is carried is fitted."""
        state = dict(super().__getstate__())
        if "carried_pools_" in state:
            state.pop("_learned", None)
        return state

    def _learn(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        progress: ProgressCallback,
        *,
        mapped: bool = False,
    ) -> dict[str, Chain]:
        """Fit the pool of the map or, if no map is wanted, those that are carried.

        1. Fit the chains, and drop those that are clearly worse at t = 0.
        2. Diffuse features and, for a map, let walkers go, on the graph of each chain.
        3. Weigh all candidates by the training pixels that they were fitted without.
        4. Take out labels that the pool contradicts.
        """
        if mapped:
            _announce(labels)
        cube = in_windows(cube)
        every = chains_of(cube, labels, n_folds=self.n_folds, seed=self.seed)
        training = _training_of(every)
        advice = polygon_advice(training.polygons_per_class(), len(training.codes))
        if advice:
            warnings.warn(advice, FewPolygonsWarning, stacklevel=4)  # the caller of fit
        self.classes_ = training.classes
        self.n_training_pixels_ = len(training.codes)
        self._calibrated = training.can_calibrate()
        progress("screening", 0, 1)
        self.screen_ = self._weighed(held_out_scores(every, ("pixels",), "random"), training)
        weights = zip(every.items(), self.screen_.weights_, strict=True)
        chains = {name: chain for (name, chain), weight in weights if weight >= _LEAST}

        diffuse_and_walk(chains, cube, walk=mapped, progress=partial(progress, "candidates"))
        with_bands = chains | {BANDS: chain_of_bands(cube, training)}
        self.chains_ = {name: chain.view.steps for name, chain in with_bands.items()}
        self.mean_steps_ = {name: chain.view.mean_step for name, chain in with_bands.items()}
        # what a copy for other scenes, and maps without folds, can be made of later
        learned = self.__dict__["_learned"] = _Learned(with_bands)
        self.__dict__.pop("carried_pools_", None)  # of another scene

        if not mapped:
            self._carry()
            self.pool_ = self.carried_pools_[1]
            return with_bands
        # Scattered labels have neighbours everywhere: there the bands alone brought nothing.
        chains = chains if training.polygon is None else with_bands
        scores = held_out_scores(chains, MAPPED, "random")
        self.pool_ = self._weighed(scores, training)
        doubtful = training.doubtful(self.pool_.combine(scores))
        if doubtful.any():
            learned.doubtful = doubtful
            return {name: chain.without(doubtful) for name, chain in chains.items()}
        return chains

    def _weighed(self, scores: Mapping[str, NDArray[Any]], training: Training) -> Pool:
        """Return the pool of candidates with these scores of the judged training pixels."""
        codes = training.codes[training.judged]
        return Pool(seed=self.seed).fit(scores, codes, training.groups())

    def _carry(self) -> None:
        """Fit what is carried, if it is not fitted yet: as much work again as the map's own fit."""
        check_is_fitted(self, "chains_")
        if hasattr(self, "carried_pools_"):
            return
        chains = self.__dict__["_learned"].chains
        training = _training_of(chains)
        with one_blas_thread():
            # Left out at random, a training pixel has others of its field beside it, which flatters
            # candidates that look around. On another scene there are none: so folds of place judge
            # these. The map is the mean of their pool and of the one that sees single pixels.
            self.carried_pools_ = [
                self._weighed(held_out_scores(chains, profiles, kind), training)
                for profiles, kind in ((("pixels",), "random"), (CARRIED, "place"))
            ]
            self.experts_ = {
                f"{name} {t:g}": chains[name].expert(t)
                for name, of_chain in _weights(self.carried_pools_).items()
                for t in of_chain
            }

    def _map(
        self,
        cube: xr.DataArray,
        chains: Mapping[str, Chain],
        pools: Sequence[Pool],
        progress: ProgressCallback,
        fold: int | None = None,
    ) -> NDArray[np.float32]:
        """Return the mean of pools on the scene of the training pixels, all or without a fold.

        Memory is bounded, apart from the result: windows are read, mapped and forgotten in turn.
        """
        cube = in_windows(schema.check_dims(cube, schema.CUBE_DIMS, name="cube"))
        training, kind = _training_of(chains), "" if fold is None else "random"
        views = {name: chain.view for name, chain in chains.items()}
        layers = {
            name: partial(chains[name].layers, of_map=fold is None) for name in _walked(pools)
        }
        answer = np.empty((len(self.classes_), *cube.shape[1:]), dtype=np.float32)

        def expert(name: str, t: float) -> Any:
            return chains[name].expert(t, kind, fold)

        def work(window: Window) -> None:
            block, seeds = window.block(cube), training.seeds(window, [fold])
            probabilities = self._expert_probabilities(block, views, expert, pools)
            for name, of_chain in layers.items():
                ends = walkers(of_chain(block), steps[name], seeds, len(answer))
                probabilities[name, None] = ends[0]
            answer[:, *window.inner] = window.trim(self._mean(probabilities, pools))

        with one_blas_thread():
            steps = dict(zip(layers, mean_steps(cube, list(layers.values())), strict=True))
            each_window(
                windows_of(cube, halo=HALO_OF_WALKERS),
                work,
                bytes_per_pixel=BYTES_PER_PIXEL + _BYTES_PER_CLASS * len(answer),
                progress=partial(progress, "classify"),
            )
        return answer

    def _probability(self, cube: xr.DataArray, progress: ProgressCallback) -> Any:
        self._carry()
        bands = {str(name): c for name, c in cube.coords.items() if c.dims == (schema.BAND,)}

        def kernel(values: NDArray[Any]) -> NDArray[Any]:
            block = xr.DataArray(values, dims=schema.CUBE_DIMS, coords=bands)
            return self._mean(self._carried_probabilities(block), self.carried_pools_)

        n_classes = len(self.classes_)
        return on_windows(cube, kernel, halo=self.halo, n_outputs=n_classes, dtype=np.float32)

    def _carried_probabilities(self, block: xr.DataArray) -> _Probabilities:
        views = {name: FittedChain(of, self.mean_steps_[name]) for name, of in self.chains_.items()}

        def expert(name: str, t: float) -> Any:
            return self.experts_[f"{name} {t:g}"]

        return self._expert_probabilities(block, views, expert, self.carried_pools_)

    def _expert_probabilities(
        self,
        block: xr.DataArray,
        views: Mapping[str, FittedChain],
        expert: Callable[[str, float], Any],
        pools: Sequence[Pool],
    ) -> _Probabilities:
        """Predict a block by the experts that have a weight in the pools."""
        # Each expert predicts a pixel once, however many candidates of however many pools use it,
        # and its features are forgotten before the next chain is looked at.
        return {
            (name, t): _predicted(expert(name, t), seen, len(self.classes_))
            for name, of_chain in _weights(pools).items()
            for t, seen in views[name].look(block, list(of_chain)).items()
        }

    def _mean(self, probabilities: _Probabilities, pools: Sequence[Pool]) -> NDArray[np.float32]:
        """Return the mean of pools (category, y, x) on a block."""
        candidates = sorted({name for pool in pools for name in pool.names_in_use})

        def mean(samples: NDArray[Any]) -> NDArray[Any]:
            split = np.split(samples, len(probabilities), axis=1)
            parts = dict(zip(probabilities, split, strict=True))
            scores = {}
            for candidate in candidates:
                name, profile = candidate.split()
                times = PROFILES[profile].times
                predicted = {t: np.ascontiguousarray(parts[name, t]) for t in times}
                scores[candidate] = PROFILES[profile].scores(predicted, parts.get((name, None)))
            return np.asarray(sum(pool.combine(scores) for pool in pools) / len(pools))

        stacked = xr.DataArray(np.concatenate(list(probabilities.values())), dims=schema.CUBE_DIMS)
        n_classes = len(self.classes_)
        return np.asarray(map_pixels(stacked, mean, n_outputs=n_classes, dtype=np.float32))


class _Learned:
    """What was learned of a scene and its training pixels, without the scene."""

    def __init__(self, chains: Mapping[str, Chain]) -> None:
        self.chains = {name: chain.without_scene() for name, chain in chains.items()}
        self.doubtful: NDArray[np.bool_] | None = (
            None  # labels that the pool of the map contradicts
        )

    def of_scene(self, cube: xr.DataArray) -> dict[str, Chain]:
        """Return the chains, which remember what they see of a scene of a single window."""
        whole = len(windows_of(cube)) == 1
        return {name: chain.remembering(whole=whole) for name, chain in self.chains.items()}

    def of_map(self, cube: xr.DataArray) -> dict[str, Chain]:
        """Return the chains of the map of the scene, without labels that are doubted."""
        chains = self.of_scene(cube)
        if _training_of(chains).polygon is None:
            del chains[BANDS]
        if self.doubtful is None:
            return chains
        return {name: chain.without(self.doubtful) for name, chain in chains.items()}


def _predicted(expert: Any, seen: NDArray[Any], n_classes: int) -> NDArray[np.float32]:
    """Return the probabilities (category, y, x) of an expert that sees features (band, y, x)."""
    predict, at_once = expert.predict_proba, PIXELS_AT_ONCE
    if isinstance(expert, RandomForestClassifier):
        predict, at_once = partial(mean_of_trees, expert), TREE_PIXELS
    features = xr.DataArray(seen, dims=schema.CUBE_DIMS)
    predicted: NDArray[np.float32] = map_pixels(
        features, predict, n_outputs=n_classes, dtype=np.float32, at_once=at_once
    )
    return predicted


def _training_of(chains: Mapping[str, Chain]) -> Training:
    """Return the training pixels, which are the same for all chains."""
    return next(iter(chains.values())).training


def _weights(pools: Sequence[Pool]) -> dict[str, dict[float, float]]:
    """Return by chain and time how much each expert weighs in the mean of pools."""
    weights: dict[str, dict[float, float]] = {}
    for pool in pools:
        for candidate, weight in zip(pool.names_, pool.weights_.tolist(), strict=True):
            name, profile = candidate.split()
            for t in PROFILES[profile].times if weight else ():
                of_chain = weights.setdefault(name, defaultdict(float))
                of_chain[t] += weight / len(PROFILES[profile].times) / len(pools)
    return weights


def _walked(pools: Sequence[Pool]) -> list[str]:
    """Return the chains whose walkers the candidates of pools follow."""
    candidates = (name.split() for pool in pools for name in pool.names_in_use)
    return sorted({name for name, profile in candidates if PROFILES[profile].walkers})


def _announce(labels: xr.DataArray) -> None:
    """Say what the map of a scene will take, if it is cut into windows."""
    windows = windows_of(labels, halo=HALO_OF_WALKERS)
    if len(windows) == 1:
        return
    n_classes = int(np.count_nonzero(np.unique(schema.reference_labels(labels))))
    bytes_per_pixel = BYTES_PER_PIXEL + _BYTES_PER_CLASS * n_classes
    n_workers = n_workers_of(windows, bytes_per_pixel)
    working = n_workers * max(window.n_pixels for window in windows) * bytes_per_pixel
    probabilities = 4 * n_classes * labels.size
    warnings.warn(
        f"The scene has {labels.size / 1e6:.1f} million pixels. Its map is made in {len(windows)} "
        f"windows and takes about {labels.size * _SECONDS_PER_PIXEL / 60:.0f} minutes of one core "
        f"and {(working + probabilities) / 1e9:.1f} GB beside the scene.",
        LargeSceneWarning,
        stacklevel=5,  # the caller of fit_predict_proba
    )
