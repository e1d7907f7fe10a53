"""The classifiers that a configuration may name; any other scikit-learn classifier is an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, ParameterGrid, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hsreject.classify.auto_classifier import AutoClassifier
from hsreject.classify.random_walker import RandomWalker
from hsreject.classify.smlr import SparseMultinomialRegression
from hsreject.errors import InputError
from hsreject.registry import Registry


class NearestNeighbor(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    r"""The class of the nearest training sample, with a probability from the distances.

    With :math:`d_k` the Euclidean distance to the nearest training sample of class k,

    .. math:: p_k = d_k^{-2} / \sum_l d_l^{-2}

    On a training sample its class is certain. These numbers rank pixels by how much farther the
    next class is; they do not estimate frequencies.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The classes, sorted.

    Examples
    --------
    >>> from hsreject.classify.classifiers import NearestNeighbor
    >>> model = NearestNeighbor().fit([[0.0], [3.0]], ["left", "right"])
    >>> model.predict_proba([[1.0], [3.0]])
    array([[0.8, 0.2],
           [0. , 1. ]])
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the training samples (n_samples, n_features) and their classes."""
        samples, targets = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(targets)
        self.classes_, self.class_of_ = np.unique(targets, return_inverse=True)
        self.samples_ = samples
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities (n_samples, n_classes)."""
        check_is_fitted(self)
        samples = validate_data(self, X, dtype=np.float64, reset=False)
        distance = np.empty((len(samples), len(self.classes_)))
        for column in range(len(self.classes_)):
            of_class = self.samples_[self.class_of_ == column]
            distance[:, column] = cKDTree(of_class).query(samples)[0]
        nearest = distance.min(axis=1, keepdims=True)
        # relative to the nearest one, nothing overflows; 0 / 0 is a training sample: certain
        ratio = np.divide(nearest, distance, out=np.ones_like(distance), where=distance > 0)
        weight = ratio**2
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes of the nearest neighbours; the first class where two are as near."""
        winner = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winner])


_JUST_BELOW = 0.999  # enough for single precision to keep the order
_MOST_FOLDS = 5


class SupportVectorMachine(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """A support vector machine with probabilities: its labels, and Platt's sigmoids beside them.

    The labels are those of `sklearn.svm.SVC`, one machine for each pair of classes. For the
    probabilities another machine separates each class from the rest, a sigmoid fitted to
    cross-validated scores turns each score into a probability, and these are scaled to sum to one
    (scikit-learn's `CalibratedClassifierCV`). A class that is more probable than the label is held
    just below it. On Indian Pines (ten training pixels per class, five draws) the
    labels are right in 56.1 %, and the most probable classes of the sigmoids in 53.5 %. There are
    five folds, or as many as the rarest class has samples; every class needs two.

    Parameters
    ----------
    C : float or sequence of float, default 10.0
        How much errors on the training samples cost, positive.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default "rbf"
        The kernel.
    gamma : {"scale", "auto"}, float or sequence of these, default "scale"
        Inverse squared width of the kernel; "scale" is 1 / (n_features * variance of the features).
        Of several values of C or gamma the pair with the best cross-validated accuracy is taken.
    seed : int, default 0
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The classes, sorted.
    machine_, classifier_ : SVC, CalibratedClassifierCV
        What gives the labels; the machines of one class against the rest with their sigmoids.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods", Advances in Large Margin Classifiers, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.classify.classifiers import SupportVectorMachine
    >>> samples = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> model = SupportVectorMachine().fit(samples, ["a", "a", "a", "b", "b", "b"])
    >>> model.predict([[0.3], [0.9]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        *,
        C: float | Sequence[float] = 10.0,
        kernel: str = "rbf",
        gamma: str | float | Sequence[str | float] = "scale",
        seed: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to samples (n_samples, n_features) and their classes."""
        samples, targets = validate_data(self, X, y)
        check_classification_targets(targets)
        self.classes_, counts = np.unique(targets, return_counts=True)
        if len(counts) < 2 or counts.min() < 2:
            raise InputError(
                "A support vector machine needs two classes, and two samples of each to calibrate "
                f"its probabilities (of {len(counts)} classes, class "
                f"{self.classes_[counts.argmin()]} has {counts.min()}). Label more pixels, or use "
                "a classifier that does not cross-validate."
            )
        n_folds = min(_MOST_FOLDS, int(counts.min()))
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=self.seed)
        values = {"C": self.C, "gamma": self.gamma}
        grid = {name: np.asarray(of, dtype=object).ravel().tolist() for name, of in values.items()}
        machine = SVC(kernel=self.kernel, C=grid["C"][0], gamma=grid["gamma"][0])
        if len(ParameterGrid(grid)) > 1:
            search = GridSearchCV(machine, grid, cv=folds, refit=False).fit(samples, targets)
            machine.set_params(**search.best_params_)
        self.machine_ = machine.fit(samples, targets)
        self.classifier_ = CalibratedClassifierCV(
            OneVsRestClassifier(clone(machine)), method="sigmoid", ensemble=False, cv=folds
        ).fit(samples, targets)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities (n_samples, n_classes)."""
        check_is_fitted(self)
        samples = validate_data(self, X, reset=False)
        probability = np.asarray(self.classifier_.predict_proba(samples), dtype=np.float64)
        place = np.arange(len(samples)), np.searchsorted(self.classes_, self.predict(samples))
        own = np.maximum(probability[place], np.finfo(np.float64).tiny)
        probability = np.minimum(probability, _JUST_BELOW * own[:, None])
        probability[place] = own
        return np.asarray(probability / probability.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes (n_samples,), which are the most probable ones."""
        check_is_fitted(self)
        return np.asarray(self.machine_.predict(validate_data(self, X, reset=False)))


def random_forest(*, n_trees: int = 500, seed: int = 0) -> Any:
    """Return a random forest: many trees on random parts of samples and features.

    Parameters
    ----------
    n_trees : int, default 500
        Number of trees; more are slower and less noisy.
    seed : int, default 0
        Seed of the random choices.
    """
    return RandomForestClassifier(n_estimators=n_trees, random_state=seed)


def linear_discriminant_analysis() -> Any:
    """Return linear discriminant analysis with Ledoit and Wolf's shrinkage, for few samples."""
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


CLASSIFIERS: Registry[Any] = Registry(
    "classifier",
    {
        "smlr": SparseMultinomialRegression,
        "svm": SupportVectorMachine,
        "random_forest": random_forest,
        "lda": linear_discriminant_analysis,
        "nearest_neighbor": NearestNeighbor,
        "auto": AutoClassifier,
        "random_walker": RandomWalker,
    },
)
