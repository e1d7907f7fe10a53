"""A classifier that chooses everything by itself: a pool of diffused experts and random walkers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from dask.base import tokenize
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from hsreject import __version__, schema
from hsreject.classify.candidates import (
    N_STEPS,
    PIXELS,
    PROFILES,
    ChainOnScene,
    TwoExperts,
    fit_chains,
    held_out_scores,
    training_of,
)
from hsreject.classify.pool import Pool
from hsreject.classify.random_walker import HeldOut, node_map
from hsreject.classify.temperature import floored_log
from hsreject.features.pixels import map_pixels, on_the_grid_of
from hsreject.features.spectra import BandRequirements
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_count
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOVELTY_TIME = 300.0
_LEAST_WEIGHT = 0.1  # of a chain among the chains at t = 0, to be tried any further
_NODES_AT_ONCE = 16_384


class AutoClassifier(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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

    Chains that are clearly worse at t = 0 are dropped first. The probabilities are calibrated: the
    pool has one temperature for each candidate and one for their mean, from the same left-out
    pixels.

    The walkers and the diffusion need the scene that holds the training pixels. With `spatial` the
    map of that scene is the whole pool's; any other scene gets the pool of the *pixels* candidates,
    which look at one spectrum at a time.

    Parameters
    ----------
    spatial : bool, default True
        Whether candidates may look at neighbouring pixels. Without, the model maps block by block
        and can be carried to other scenes and saved whole; the training scene needs not be in
        memory.
    n_folds : int, default 5
        Into how many folds the training pixels are dealt, at least 2.
    seed : int, default 0
        Seed of the folds and of the pool's bootstraps.

    Attributes
    ----------
    classes_ : ndarray of int
        The label values that had a training pixel with data, ascending.
    class_table_ : ClassTable
        Their names and colours.
    best_chain_ : str
        The chain with the largest weight.
    pool_, pixel_pool_ : Pool
        The weights of all candidates, and of those that can be carried.
    tried_ : Dataset over `candidate`
        What was tried: `chain`, `profile`, `brier_score` (held out, 0 to 2), `temperature` and
        `weight`; chains that were dropped early have weight 0.
    band_requirements_ : BandRequirements
        The bands that a scene must have.
    n_training_pixels_ : int
        Number of labelled pixels that had data.
    hsreject_version_ : str
        The version of hsreject that fitted it.

    Notes
    -----
    With `spatial` all of a scene is held in memory at once, in just under 3 kB per pixel for 16
    classes beside the scene itself: a third of it the factor of one graph at a time, the rest
    components and fields. Time grows a little faster than the pixels. For 16 classes and 50 bands,
    500 x 500 pixels take 21 s of one core and 1.0 GB, 1000 x 1000 take 97 s and 3.2 GB. With
    ``spatial=False`` a scene opened lazily is read chunk by chunk.

    Examples
    --------
    >>> from hsreject import AutoClassifier
    >>> from hsreject.datasets.synthetic import synthetic_scene
    >>> from hsreject.sampling.draws import sample_per_class
    >>> cube, labels = synthetic_scene(rows=32, columns=32, n_bands=8)
    >>> train, test = sample_per_class(labels, 5)
    >>> model = AutoClassifier().fit(cube, train)
    >>> label = model.predict_proba(cube).fillna(0).idxmax("category")
    >>> bool((label == test).where(test > 0).mean() > 0.9)
    True
    """

    def __init__(self, *, spatial: bool = True, n_folds: int = 5, seed: int = 0) -> None:
        self.spatial = spatial
        self.n_folds = n_folds
        self.seed = seed

    def fit(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        *,
        progress: ProgressCallback = no_progress,
    ) -> Self:
        """Fit to a scene and its labelled pixels.

        Parameters
        ----------
        cube : DataArray (band, y, x)
            The scene; NaN is no data.
        labels : DataArray (y, x) of integers
            The training pixels, 0 where there is none. Names and colours of the classes are taken
            from its class table.
        progress : callable, optional
            Told how far the work is.
        """
        check_count("n_folds", self.n_folds, least=2)
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        labels = schema.check_labels(labels)
        schema.check_same_grid(cube, labels, names=("cube", "labels"))
        with one_blas_thread():
            chains = fit_chains(
                cube, labels, in_memory=self.spatial, n_folds=self.n_folds, seed=self.seed
            )
            chains = self._screened(chains, progress)
            if self.spatial:
                done = count(1)
                for chain in chains.values():
                    chain.look_around(
                        lambda: progress("candidates", next(done), N_STEPS * len(chains))
                    )
            self._weigh(chains)
            self.experts_ = {name: chain.expert(0.0, 0) for name, chain in chains.items()}
        self.chains_ = {name: chain.steps for name, chain in chains.items()}
        training = training_of(chains)
        self.classes_ = training.classes
        self.class_table_ = schema.class_table(labels).subset(self.classes_)
        self.n_training_pixels_ = len(training.codes)
        good = np.flatnonzero(schema.good_bands(cube))
        self.band_requirements_ = BandRequirements.of(cube, good)
        self.hsreject_version_ = __version__
        self._work = (tokenize(cube.data), tokenize(labels.data), chains)
        return self

    def fit_predict_proba(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        *,
        progress: ProgressCallback = no_progress,
    ) -> xr.DataArray:
        """Fit to a scene and return its probabilities: :meth:`fit`, then :meth:`predict_proba`."""
        return self.fit(cube, labels, progress=progress).predict_proba(cube, progress=progress)

    def predict_proba(
        self,
        cube: xr.DataArray,
        *,
        match_bands: str = "exact",
        wavelength_tol: float | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.DataArray:
        """Return the class probabilities of a scene.

        The scene that was fitted is known again by its content and gets the map of the whole pool,
        any other that of the candidates that look at one pixel at a time. A model read from a file
        remembers no scene.

        Parameters
        ----------
        cube, match_bands, wavelength_tol, progress
            As for :meth:`SceneClassifier.predict_proba`.

        Returns
        -------
        DataArray (category, y, x) of float32
            On the grid of `cube`, NaN where it has no data. Lazy when `cube` is and another scene
            than the fitted one.
        """
        chains = self._chains_on(cube)
        if chains is not None:
            probability = self._map(chains, 0, progress)
        else:
            cube = self._matched(cube, match_bands, wavelength_tol)
            probability = self._pixel_map(cube, self.experts_, progress)
        return probability.assign_attrs({schema.CALIBRATED: 1})

    def transform(
        self,
        cube: xr.DataArray,
        *,
        match_bands: str = "exact",
        wavelength_tol: float | None = None,
    ) -> xr.DataArray:
        """Return the features (band, y, x) of the chain with the largest weight.

        They are diffused (t = 300) on the scene that was fitted, plain on others.
        """
        chains = self._chains_on(cube)
        if chains is not None:
            return chains[self.best_chain_].features_at(NOVELTY_TIME)
        return self._features(self.best_chain_, self._matched(cube, match_bands, wavelength_tol))

    def held_out_proba(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5, seed: int = 0
    ) -> Iterator[HeldOut]:
        """Yield per fold the probabilities without its training pixels, and the mask of these.

        As :meth:`SceneClassifier.held_out_proba`. Components, graphs and factorisations are those
        of the fit; so are weights and temperatures of the pool, which have seen every fold.
        """
        token = tokenize(cube.data), tokenize(labels.data)
        work = getattr(self, "_work", None)
        if (self.n_folds, self.seed) != (n_folds, seed) or work is None or work[:2] != token:
            model = clone(self).set_params(n_folds=n_folds, seed=seed).fit(cube, labels)
            yield from model.held_out_proba(cube, labels, n_folds=n_folds, seed=seed)
            return
        chains: dict[str, ChainOnScene] = work[2]
        training = training_of(chains)
        for number in range(1, training.n_folds + 1):
            if self.spatial:
                probability = self._map(chains, number, no_progress)
            else:
                experts = {name: chain.expert(0.0, number) for name, chain in chains.items()}
                probability = self._pixel_map(cube, experts, no_progress)
            left_out = np.zeros(labels.size, dtype=bool)
            left_out[training.positions[training.fold == number - 1]] = True
            yield probability, left_out.reshape(labels.shape)

    def carried(self) -> AutoClassifier:
        """Return what of this model holds on other scenes: as fitted with ``spatial=False``."""
        check_is_fitted(self, "pool_")
        model = copy(self)
        model.__dict__ |= {"spatial": False, "pool_": self.pixel_pool_}
        model.__dict__["_work"] = getattr(self, "_work", None)
        return model

    @property
    def halo(self) -> int | None:
        """How many pixels around a pixel decide its probabilities; None: the whole scene does."""
        return None if self.spatial else 0

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

    def __getstate__(self) -> dict[str, Any]:
        """Leave the scene behind: copies and files hold what can be carried."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_work", None)
        return state

    def _weigh(self, chains: Mapping[str, ChainOnScene]) -> None:
        """Fit the pool of all candidates, and that of the candidates that can be carried."""
        training = training_of(chains)
        codes = training.codes[training.held_out]
        held_out = held_out_scores(chains, PROFILES if self.spatial else (PIXELS,))
        carried = {name: scores for name, scores in held_out.items() if name.endswith(PIXELS)}
        self.pool_ = Pool(seed=self.seed).fit(held_out, codes)
        self.pixel_pool_ = Pool(seed=self.seed).fit(carried, codes)
        weights = np.reshape(self.pool_.weights_, (len(chains), -1)).sum(axis=1)
        self.best_chain_ = list(chains)[int(weights.argmax())]

    def _screened(
        self, chains: dict[str, ChainOnScene], progress: ProgressCallback
    ) -> dict[str, ChainOnScene]:
        """Return the chains whose experts at t = 0 are worth a further look."""
        progress("screening", 0, 1)
        training = training_of(chains)
        codes = training.codes[training.held_out]
        self.screen_ = Pool(seed=self.seed).fit(held_out_scores(chains, (PIXELS,)), codes)
        kept = self.screen_.weights_ >= _LEAST_WEIGHT
        progress("screening", 1, 1)
        return {name: chains[name] for name, keep in zip(list(chains), kept, strict=True) if keep}

    def _chains_on(self, cube: xr.DataArray) -> dict[str, ChainOnScene] | None:
        """Return the work on a scene if it is the one that was fitted."""
        check_is_fitted(self, "pool_")
        work = getattr(self, "_work", None)
        if not self.spatial or work is None or tokenize(cube.data) != work[0]:
            return None
        chains: dict[str, ChainOnScene] = work[2]
        return chains

    def _map(
        self, chains: Mapping[str, ChainOnScene], number: int, progress: ProgressCallback
    ) -> xr.DataArray:
        """Return the pooled probabilities of the fitted scene; number 1 + f is without fold f."""
        first = next(iter(chains.values()))
        used: dict[str, list[str]] = {name: [] for name in chains}
        for name, profile in map(str.split, self.pool_.names_in_use):
            used[name].append(profile)
        pooled = np.empty((first.pixels.size, len(self.classes_)), dtype=np.float32)
        with one_blas_thread():
            for start in range(0, len(pooled), _NODES_AT_ONCE):
                nodes = slice(start, start + _NODES_AT_ONCE)
                scores = {
                    f"{name} {profile}": values
                    for name, chain in chains.items()
                    for profile, values in chain.scores(used[name], number, nodes).items()
                }
                pooled[nodes] = self.pool_.combine(scores)
                progress("classify", min(nodes.stop, len(pooled)), len(pooled))
        return node_map(first.scene, first.pixels, pooled, self.class_table_)

    def _features(self, name: str, cube: xr.DataArray) -> xr.DataArray:
        features = cube
        for step in self.chains_[name]:
            features = step.transform(features)
        return features

    def _matched(self, cube: xr.DataArray, how: str, wavelength_tol: float | None) -> xr.DataArray:
        """Return a scene with the bands of the one that was fitted."""
        check_is_fitted(self, "pool_")
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        return self.band_requirements_.match(cube, how=how, wavelength_tol=wavelength_tol)

    def _pixel_map(
        self, cube: xr.DataArray, experts: Mapping[str, TwoExperts], progress: ProgressCallback
    ) -> xr.DataArray:
        """Return the probabilities of a scene, one pixel at a time; lazy when `cube` is."""
        pool = self.pixel_pool_
        experts = {name: experts[name] for name in (used.split()[0] for used in pool.names_in_use)}
        features = [self._features(name, cube) for name in experts]
        widths = np.cumsum([array.sizes[schema.BAND] for array in features])[:-1]

        def pooled(samples: NDArray[Any]) -> NDArray[Any]:
            parts = np.split(samples, widths, axis=1)
            scores = {
                f"{name} {PIXELS}": floored_log(expert.predict_proba(part))
                for (name, expert), part in zip(experts.items(), parts, strict=True)
            }
            return pool.combine(scores)

        bare = [array.drop_vars(schema.BAND, errors="ignore") for array in features]
        data = map_pixels(
            xr.concat(bare, dim=schema.BAND),
            pooled,
            n_outputs=len(self.classes_),
            dtype=np.float32,
            progress=partial(progress, "classify"),
        )
        coords = {schema.CATEGORY: self.classes_}
        on_grid = on_the_grid_of(cube, data, dim=schema.CATEGORY, coords=coords)
        return schema.attach_classes(on_grid, self.class_table_).rename("probability")
