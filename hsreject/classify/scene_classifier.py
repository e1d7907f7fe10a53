"""Any scikit-learn classifier on scenes: cube and labels in, class probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from hsreject import schema
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.scene_model import SceneModel
from hsreject.errors import InputError
from hsreject.features import FEATURES
from hsreject.features.pixels import labelled_samples, map_pixels
from hsreject.features.transformer import SceneTransformer
from hsreject.progress import ProgressCallback
from hsreject.schema import total_halo

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray


class SceneClassifier(SceneModel):
    """A classifier of samples that works on scenes, with the features it needs.

    Fitting passes the scene through the features, one after the other, and fits the classifier to
    the labelled pixels that have data. Predicting does the same with another scene and returns
    probabilities with classes and coordinates. Pixels without data are never classified.

    Parameters
    ----------
    classifier : scikit-learn classifier or str
        Anything with ``fit``, ``predict_proba`` and ``classes_``, or a name in
        `hsreject.classify.classifiers.CLASSIFIERS`. It is cloned (copied, if it has no
        ``get_params``), never changed. Steps that work on samples (scaling to the training pixels,
        say) go into a scikit-learn pipeline with it.
    features : sequence of scene transformers or str, default ()
        What is done to the cube first: objects such as ``hr.MNF(15)``, or names in
        `hsreject.features.FEATURES`. They learn from the whole scene, not only from its
        labelled pixels; labels are not shown to them.

    Attributes
    ----------
    classifier_, features_ : the fitted classifier and list of transformers
    classes_, class_table_, band_requirements_, n_training_pixels_, hsreject_version_
        As for every :class:`SceneModel`.

    See Also
    --------
    hsreject.AutoClassifier : chooses features and classifier itself.
    hsreject.SparseMultinomialRegression : a classifier to put inside.

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

    def _learn(
        self, cube: xr.DataArray, labels: xr.DataArray, progress: ProgressCallback
    ) -> xr.DataArray:
        """Fit features and classifier, and return the features of the scene."""
        classifier = _new_classifier(self.classifier)
        self.features_ = [_new_feature(feature) for feature in self.features]
        features = _good(_fitted_features(self.features_, cube))
        samples, values = labelled_samples(features, labels)
        classifier.fit(samples, values)
        if not hasattr(classifier, "classes_"):
            raise InputError(
                f"The classifier {type(classifier).__name__} has no classes_ after fit. Set it "
                "there to the labels in the order of the columns of predict_proba: "
                "self.classes_ = np.unique(labels)."
            )
        self.classifier_, self.classes_ = classifier, np.asarray(classifier.classes_)
        self.n_training_pixels_ = len(values)
        return features

    def _own_map(
        self, cube: xr.DataArray, learned: xr.DataArray, progress: ProgressCallback
    ) -> Any:
        """Return the class probabilities of pixels with the features that were learned."""
        return map_pixels(
            learned,
            self.classifier_.predict_proba,
            n_outputs=len(self.classes_),
            dtype=np.float32,
            progress=partial(progress, "classify"),
        )

    def _probability(self, cube: xr.DataArray, progress: ProgressCallback) -> Any:
        features = cube
        for transformer in self.features_:
            features = transformer.transform(features)
        return self._own_map(cube, _good(features), progress)

    def _on_features(self, cube: xr.DataArray) -> tuple[SceneClassifier, xr.DataArray]:
        steps = [_new_feature(feature) for feature in self.features]
        return SceneClassifier(self.classifier), _fitted_features(steps, cube).compute()

    @property
    def halo(self) -> int | None:
        """How many pixels around a pixel decide its probabilities; None: the whole scene does."""
        return total_halo(feature.halo for feature in self.features_)

    def _bands_used(self, cube: xr.DataArray) -> NDArray[np.intp]:
        if self.features_:
            return self.features_[0].bands_used_
        return np.flatnonzero(schema.good_bands(cube))


def _fitted_features(steps: Sequence[SceneTransformer], cube: xr.DataArray) -> xr.DataArray:
    """Fit each step to what the one before it makes of a scene; return what the last one makes."""
    for step in steps:
        cube = step.fit(cube).transform(cube)
    return cube


def _good(features: xr.DataArray) -> xr.DataArray:
    return features.isel({schema.BAND: np.flatnonzero(schema.good_bands(features))})


def _new_classifier(classifier: Any) -> Any:
    if isinstance(classifier, str):
        classifier = CLASSIFIERS.create(classifier)
    if isinstance(classifier, SceneModel):
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
    if isinstance(classifier, type):
        name = classifier.__name__
        raise InputError(f"The classifier must be an object, not a class: pass {name}(...).")
    return clone(classifier, safe=False)  # a deep copy of what has no get_params


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
