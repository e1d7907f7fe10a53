"""The contract of models that map scenes: cube and labels in, class probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray as xr
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from hsreject import __version__, schema
from hsreject.classify.training_pixels import folds_left_out
from hsreject.features.pixels import on_the_grid_of
from hsreject.features.spectra import BandRequirements
from hsreject.progress import ProgressCallback, no_progress
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.schema.classes import ClassTable

HeldOut = tuple[xr.DataArray, "NDArray[np.bool_]"]
"""Probabilities (category, y, x) without the training pixels of a fold, and their mask (y, x)."""


class SceneModel(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """What maps a scene: it takes scenes whole, and makes its own features.

    A subclass sets its options in ``__init__`` the scikit-learn way and writes two methods:

    - ``_learn(cube, labels, progress)`` sets `classes_`, `n_training_pixels_` and whatever else it
      learns from a scene and labels that have been checked;
    - ``_probability(cube, progress)`` returns the probabilities of any scene with the bands needed,
      or of a block of one with `halo` pixels around it: an array (category, y, x) that is NaN where
      there is no data and lazy when the scene is.

    A model that can say more about the scene that holds its labels also writes
    ``_own_map(cube, learned, progress)``, where `learned` is what ``_learn`` has returned: the map
    of `fit_predict_proba`. The answer of `predict_proba` is always that of the carried model.

    Attributes
    ----------
    classes_ : ndarray of int
        The label values that had a training pixel with data, ascending. A class of the label map
        without one is unknown to the model: it has no category and no probability.
    class_table_ : ClassTable
        Their names and colours.
    band_requirements_ : BandRequirements
        The bands that a scene must have.
    n_training_pixels_ : int
        Number of labelled pixels that had data.
    hsreject_version_ : str
        The version of hsreject that fitted it.

    See Also
    --------
    hsreject.AutoClassifier : one of them.
    hsreject.SceneClassifier : makes one of a classifier of samples.

    Examples
    --------
    A whole model: the nearer a spectrum is to the mean of a class, the more probable is the class.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject.classify.scene_model import SceneModel
    >>> from scipy.special import softmax
    >>> from hsreject.features.pixels import labelled_samples, map_pixels
    >>> class NearestMean(SceneModel):
    ...     def _learn(self, cube, labels, progress):
    ...         samples, values = labelled_samples(cube, labels)
    ...         self.classes_, self.n_training_pixels_ = np.unique(values), len(values)
    ...         self.means_ = np.stack([samples[values == k].mean(axis=0) for k in self.classes_])
    ...
    ...     def _probability(self, cube, progress):
    ...         def nearness(samples):
    ...             return softmax(-((samples[:, None] - self.means_) ** 2).sum(axis=2), axis=1)
    ...
    ...         return map_pixels(cube, nearness, n_outputs=len(self.means_), dtype="float32")
    >>> cube = xr.DataArray(np.array([[[0.0, 1.0, 8.0, 9.0]]]), dims=("band", "y", "x"))
    >>> labels = xr.DataArray(np.array([[4, 0, 0, 7]]), dims=("y", "x"))
    >>> NearestMean().fit(cube, labels).predict_proba(cube).idxmax("category").values
    array([[4., 4., 7., 7.]])
    """

    classes_: NDArray[Any]
    class_table_: ClassTable
    band_requirements_: BandRequirements
    n_training_pixels_: int

    @abstractmethod
    def _learn(self, cube: xr.DataArray, labels: xr.DataArray, progress: ProgressCallback) -> Any:
        """Learn from a scene and its labelled pixels."""

    @abstractmethod
    def _probability(self, cube: xr.DataArray, progress: ProgressCallback) -> Any:
        """Return the probabilities (category, y, x) of a scene."""

    def _own_map(self, cube: xr.DataArray, learned: Any, progress: ProgressCallback) -> Any:
        """Return the probabilities (category, y, x) of the scene that was learned from."""
        return self._probability(self._matched(cube), progress)

    @property
    def halo(self) -> int | None:
        """How many pixels around a pixel decide its probabilities; None: the whole scene does."""
        return 0

    def agreement(self, cube: xr.DataArray) -> float | None:
        """Return on which share of the labels of a scene with its bands the experts agree."""
        return None

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
            from its class table. A coordinate `polygon` (y, x) says which polygon a pixel belongs
            to; without it, connected pixels of a class are one.
        progress : callable, optional
            Called with the progress.
        """
        self._checked_learn(cube, labels, progress)
        return self

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
            As `predict_proba`.
        """
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        learned = self._checked_learn(cube, labels, progress)
        return self._on_grid(cube, self._own_map(cube, learned, progress))

    def predict_proba(
        self,
        cube: xr.DataArray,
        *,
        match_bands: str = "exact",
        progress: ProgressCallback = no_progress,
    ) -> xr.DataArray:
        """Return the class probabilities of any scene, or of a block of one.

        Parameters
        ----------
        cube : DataArray (band, y, x)
            A scene with the bands of the training scene.
        match_bands : {"exact", "nearest", "interpolate"}, default "exact"
            What to do when its wavelengths differ from those of the training scene: refuse it, take
            the nearest band, or interpolate between neighbouring bands.
        progress : callable, optional
            Called with the number of rows that are done, unless the scene is lazy.

        Returns
        -------
        DataArray (category, y, x) of float32
            On the grid of `cube`, NaN where it has no data; `category` holds the label values,
            `class_name` their names, the attributes the class table. Lazy when `cube` is.
        """
        matched = self._matched(cube, match_bands)
        return self._on_grid(matched, self._probability(matched, progress))

    def held_out_proba(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5, seed: int = 0
    ) -> Iterator[HeldOut]:
        """Yield per fold the map of the scene by a model that has not seen the fold.

        Scattered training pixels are dealt into folds class by class, polygons are dealt whole.
        This model stays as it is.

        Parameters
        ----------
        cube, labels
            As for :meth:`fit`.
        n_folds : int, default 5
            Number of folds, at least 2. A class with fewer pixels is in fewer folds; the only pixel
            of a class is never left out.
        seed : int, default 0
            Seed of the folds.

        Yields
        ------
        DataArray (category, y, x), ndarray of bool (y, x)
            The probabilities of the whole scene, and the training pixels of the fold. A model that
            does not trust every label marks them in the coordinate `doubted` (y, x).
        """
        model, cube = self._on_features(schema.check_dims(cube, schema.CUBE_DIMS, name="cube"))
        for rest, left_out in folds_left_out(cube, labels, n_folds, seed=seed):
            yield clone(model).fit_predict_proba(cube, rest), left_out

    def held_out_again(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5
    ) -> Iterator[HeldOut]:
        """Yield the same as :meth:`held_out_proba`, of the scene and labels it was fitted to.

        A model that remembers what it has learned of them need not learn it again.
        """
        return self.held_out_proba(cube, labels, n_folds=n_folds)

    def carried(self) -> Self:
        """Return the model for other scenes, without what only the map of its own scene needs."""
        return self

    def _on_features(self, cube: xr.DataArray) -> tuple[SceneModel, xr.DataArray]:
        """Return a model and what it sees of a scene: features without labels are made once."""
        return self, cube

    def _checked_learn(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        progress: ProgressCallback,
        **options: bool,
    ) -> Any:
        """Learn from a scene and labels that may be wrong; return what `_learn` does."""
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        labels = schema.check_labels(labels)
        schema.check_same_grid(cube, labels, names=("cube", "labels"))
        with one_blas_thread():
            learned = self._learn(cube, labels, progress, **options)
        self.class_table_ = schema.class_table(labels).subset(self.classes_)
        self.band_requirements_ = BandRequirements.of(cube, self._bands_used(cube))
        self.hsreject_version_ = __version__
        return learned

    def _bands_used(self, cube: xr.DataArray) -> NDArray[np.intp]:
        return np.flatnonzero(schema.good_bands(cube))

    def _matched(self, cube: xr.DataArray, how: str = "exact") -> xr.DataArray:
        """Return a scene with the bands of the one that was fitted."""
        check_is_fitted(self, "band_requirements_")
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        return self.band_requirements_.match(cube, how=how)

    def _on_grid(self, cube: xr.DataArray, data: Any) -> xr.DataArray:
        """Return probabilities (category, y, x) with the place of `cube` and the classes."""
        coords = {schema.CATEGORY: self.classes_}
        on_grid = on_the_grid_of(cube, data, dim=schema.CATEGORY, coords=coords)
        return schema.attach_classes(on_grid, self.class_table_).rename("probability")
