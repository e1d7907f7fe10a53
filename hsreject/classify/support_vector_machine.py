"""A support vector machine whose probabilities are calibrated on the training samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hsreject.errors import InputError


class SupportVectorMachine(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """One support vector machine a class, with Platt's sigmoids from cross-validation.

    `sklearn.svm.SVC` gives no probabilities of its own. Here one machine separates each class from
    the rest, a sigmoid fitted to cross-validated scores turns each score into a probability, and
    the probabilities are scaled to sum to one (scikit-learn's `CalibratedClassifierCV`). No class
    may have a single sample, and the number of folds never exceeds that of the rarest class.

    Parameters
    ----------
    C : float, default 10.0
        How much errors on the training samples cost, positive.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default "rbf"
        The kernel.
    gamma : {"scale", "auto"} or float, default "scale"
        Inverse squared width of the kernel; "scale" is 1 / (n_features * variance of the features).
    folds : int, default 5
        Folds of the cross-validation, at least 2.
    seed : int, default 0
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The classes, sorted.
    classifier_ : CalibratedClassifierCV
        The fitted machines and sigmoids.

    References
    ----------
    J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods", Advances in Large Margin Classifiers, 1999.

    Examples
    --------
    >>> samples = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> model = SupportVectorMachine().fit(samples, ["a", "a", "a", "b", "b", "b"])
    >>> model.predict([[0.3], [0.9]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        *,
        C: float = 10.0,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.folds = folds
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to samples (n_samples, n_features) and their classes."""
        samples, targets = validate_data(self, X, y)
        check_classification_targets(targets)
        self.classes_, counts = np.unique(targets, return_counts=True)
        if self.classes_.size < 2:
            raise InputError(
                f"The samples hold only one class ({self.classes_[0]}); a support vector machine "
                "needs at least two. Give samples of another class."
            )
        if counts.min() < 2:
            raise InputError(
                "Calibrated probabilities need at least two samples of every class; class "
                f"{self.classes_[counts.argmin()]} has one. Label another pixel of it, or use a "
                "classifier that does not cross-validate."
            )
        folds = StratifiedKFold(
            min(self.folds, int(counts.min())), shuffle=True, random_state=self.seed
        )
        machines = OneVsRestClassifier(SVC(C=self.C, kernel=self.kernel, gamma=self.gamma))
        self.classifier_ = CalibratedClassifierCV(
            machines, method="sigmoid", ensemble=False, cv=folds
        ).fit(samples, targets)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities (n_samples, n_classes)."""
        check_is_fitted(self)
        samples = validate_data(self, X, reset=False)
        return np.asarray(self.classifier_.predict_proba(samples))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable classes (n_samples,)."""
        probability = self.predict_proba(X)
        predicted: NDArray[Any] = self.classes_[probability.argmax(axis=1)]
        return predicted
