"""Any scikit-learn classifier on scenes: cube and labels in, class probabilities out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from hsreject import __version__, schema
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.random_walker import HeldOut
from hsreject.errors import InputError
from hsreject.features import FEATURES
from hsreject.features.pixels import labelled_samples, map_pixels, on_the_grid_of
from hsreject.features.spectra import BandRequirements
from hsreject.features.transformer import SceneTransformer
from hsreject.progress import ProgressCallback, no_progress
from hsreject.sampling.draws import deal_folds
from hsreject.schema import total_halo
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray


class SceneClassifier(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of samples that works on scenes, with the features it needs.

    Fitting passes the scene through the features, one after the other, and fits the classifier to
    the labelled pixels that have data. Predicting does the same with another scene and returns
    probabilities with classes and coordinates. Pixels without data are never classified.

    Parameters
    ----------
    classifier : scikit-learn classifier or str
        Anything with ``fit``, ``predict_proba`` and ``classes_``, or a name in
        `hsreject.classify.classifiers.CLASSIFIERS`. It is cloned, never changed. Steps that work on
        samples (scaling to the training pixels, say) go into a scikit-learn pipeline with it.
    features : sequence of scene transformers or str, default ()
        What is done to the cube first: objects such as ``hr.MNF(15)``, or names in
        `hsreject.features.FEATURES`. They learn from the whole scene, not only from its
        labelled pixels; labels are not shown to them.

    Attributes
    ----------
    classes_ : ndarray of int
        The label values that had a training pixel with data, ascending. A class of the label map
        without one is unknown to the model: it has no category and no probability.
    class_table_ : ClassTable
        Their names and colours.
    classifier_, features_ : the fitted classifier and list of transformers
    band_requirements_ : BandRequirements
        The bands that a scene must have.
    n_training_pixels_ : int
        Number of labelled pixels that had data.
    hsreject_version_ : str
        The version of hsreject that fitted it.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import SceneClassifier
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> import xarray as xr
    >>> values = np.random.default_rng(0).normal(size=(3, 8, 8)).astype("float32")
    >>> values[0, :, 4:] += 9.0
    >>> cube = xr.DataArray(values, dims=("band", "y", "x"))
    >>> labels = xr.zeros_like(cube[0], dtype="uint8")
    >>> labels[:, 0], labels[:, 7] = 1, 2
    >>> model = SceneClassifier(LinearDiscriminantAnalysis()).fit(cube, labels)
    >>> probability = model.predict_proba(cube)
    >>> probability.dims, probability.category.values
    (('category', 'y', 'x'), array([1, 2]))
    >>> bool((probability.sel(category=2)[:, 4:] > 0.99).all())
    True
    """

    def __init__(self, classifier: Any, *, features: Sequence[SceneTransformer | str] = ()) -> None:
        self.classifier = classifier
        self.features = features

    def fit(self, cube: xr.DataArray, labels: xr.DataArray) -> Self:
        """Fit the features to the scene and the classifier to its labelled pixels.

        Parameters
        ----------
        cube : DataArray (band, y, x)
            The scene; NaN is no data. A dask-backed scene is read chunk by chunk.
        labels : DataArray (y, x) of integers
            The training pixels, 0 where there is none. Names and colours of the classes are taken
            from its class table.
        """
        self._fit(cube, labels)
        return self

    def fit_predict_proba(
        self,
        cube: xr.DataArray,
        labels: xr.DataArray,
        *,
        progress: ProgressCallback = no_progress,
    ) -> xr.DataArray:
        """Fit to a scene and return its class probabilities; the features are made only once.

        Parameters
        ----------
        cube, labels
            As for :meth:`fit`.
        progress : callable, optional
            As for :meth:`predict_proba`.

        Returns
        -------
        DataArray (category, y, x) of float32
            As :meth:`predict_proba` of the same scene.
        """
        return self._probability(self._fit(cube, labels), progress)

    def _fit(self, cube: xr.DataArray, labels: xr.DataArray) -> xr.DataArray:
        """Fit features and classifier, and return the features of the scene."""
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        labels = schema.check_labels(labels)
        schema.check_same_grid(cube, labels, names=("cube", "labels"))
        classifier = _new_classifier(self.classifier)
        self.features_ = [_new_feature(feature) for feature in self.features]
        features = cube
        for transformer in self.features_:
            features = transformer.fit(features).transform(features)
        features = _good(features)
        samples, values = labelled_samples(features, labels)
        with one_blas_thread():
            self.classifier_ = classifier.fit(samples, values)
        self.classes_ = np.asarray(self.classifier_.classes_)
        self.class_table_ = schema.class_table(labels).subset(self.classes_)
        self.band_requirements_ = BandRequirements.of(cube, self._bands_used(cube))
        self.n_training_pixels_ = len(values)
        self.hsreject_version_ = __version__
        return features

    def transform(
        self,
        cube: xr.DataArray,
        *,
        match_bands: str = "exact",
        wavelength_tol: float | None = None,
    ) -> xr.DataArray:
        """Return the features of a scene, as the classifier sees them.

        Parameters
        ----------
        cube, match_bands, wavelength_tol
            As for :meth:`predict_proba`.

        Returns
        -------
        DataArray (band, y, x)
            Lazy when `cube` is.
        """
        check_is_fitted(self, "classifier_")
        cube = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        features = self.band_requirements_.match(
            cube, how=match_bands, wavelength_tol=wavelength_tol
        )
        for transformer in self.features_:
            features = transformer.transform(features)
        return _good(features)

    def predict_proba(
        self,
        cube: xr.DataArray,
        *,
        match_bands: str = "exact",
        wavelength_tol: float | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.DataArray:
        """Return the class probabilities of a scene.

        Parameters
        ----------
        cube : DataArray (band, y, x)
            A scene with the bands of the training scene.
        match_bands : {"exact", "nearest", "interpolate"}, default "exact"
            What to do when its wavelengths differ from those of the training scene: refuse it, take
            the nearest band, or interpolate between neighbouring bands.
        wavelength_tol : float, optional
            How far (nm) the nearest wavelength may lie from a wanted one; by default the median
            spacing of the wanted wavelengths.
        progress : callable, optional
            Told how many rows are done; a dask-backed scene is computed later, with dask's own
            progress.

        Returns
        -------
        DataArray (category, y, x) of float32
            On the grid of `cube`, NaN where it has no data; `category` holds the label values,
            `class_name` their names, the attributes the class table. Lazy when `cube` is: whoever
            computes it decides about threads, on whose number the last digits may then depend.
        """
        features = self.transform(cube, match_bands=match_bands, wavelength_tol=wavelength_tol)
        return self._probability(features, progress)

    def _probability(self, features: xr.DataArray, progress: ProgressCallback) -> xr.DataArray:
        """Return the class probabilities of pixels with these features."""
        data = map_pixels(
            features,
            self.classifier_.predict_proba,
            n_outputs=len(self.classes_),
            dtype=np.float32,
            progress=partial(progress, "classify"),
        )
        coords = {schema.CATEGORY: self.classes_}
        probability = on_the_grid_of(features, data, dim=schema.CATEGORY, coords=coords)
        return schema.attach_classes(probability, self.class_table_).rename("probability")

    def held_out_proba(
        self, cube: xr.DataArray, labels: xr.DataArray, *, n_folds: int = 5, seed: int = 0
    ) -> Iterator[HeldOut]:
        """Yield per fold what the scene looks like to a model that has not seen the fold.

        The training pixels are dealt into folds, class by class. Features learn from the scene and
        never see labels, so they are made once; the classifier is fitted once per fold. This model
        stays as it is.

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
        probability : DataArray (category, y, x)
            Of the whole scene, from the training pixels outside the fold.
        left_out : ndarray of bool (y, x)
            The training pixels of the fold.
        """
        features = schema.check_dims(cube, schema.CUBE_DIMS, name="cube")
        for transformer in map(_new_feature, self.features):
            features = transformer.fit(features).transform(features)
        features = features.compute()
        model = SceneClassifier(self.classifier)
        values = schema.reference_labels(labels)
        with_data = schema.valid_pixels(features).values
        fold = deal_folds(np.where(with_data, values, schema.NO_REFERENCE), n_folds, seed=seed)
        for number in range(fold.max() + 1):
            left_out = fold == number
            kept = labels.copy(data=np.where(left_out, schema.NO_REFERENCE, values))
            yield model.fit_predict_proba(features, kept), left_out

    @property
    def halo(self) -> int | None:
        """How many pixels around a pixel decide its probabilities; None: the whole scene does."""
        return total_halo(feature.halo for feature in self.features_)

    def _bands_used(self, cube: xr.DataArray) -> NDArray[np.intp]:
        if self.features_:
            return self.features_[0].bands_used_
        return np.flatnonzero(schema.good_bands(cube))


def _good(features: xr.DataArray) -> xr.DataArray:
    return features.isel({schema.BAND: np.flatnonzero(schema.good_bands(features))})


def _new_classifier(classifier: Any) -> Any:
    if isinstance(classifier, str):
        classifier = CLASSIFIERS.create(classifier)
    if hasattr(classifier, "fit_predict_proba"):
        name = type(classifier).__name__
        raise InputError(
            f"{name} works on scenes by itself: call hsreject.{name}().fit(cube, labels) instead "
            "of putting it into a SceneClassifier."
        )
    missing = [name for name in ("fit", "predict_proba") if not hasattr(classifier, name)]
    if missing:
        raise InputError(
            f"The classifier {type(classifier).__name__} has no {' and no '.join(missing)}. Pass "
            "one that gives probabilities; sklearn.calibration.CalibratedClassifierCV makes one."
        )
    return clone(classifier)


def _new_feature(feature: SceneTransformer | str) -> SceneTransformer:
    if isinstance(feature, str):
        return FEATURES.create(feature)
    if not isinstance(feature, SceneTransformer):
        raise InputError(
            f"A feature must be a scene transformer such as hsreject.MNF(15), or the name of one "
            f"(got {type(feature).__name__}). Put transformers of samples into a pipeline with the "
            "classifier: sklearn.pipeline.make_pipeline(transformer, classifier)."
        )
    return clone(feature)  # type: ignore[no-any-return]  # scikit-learn has no types
