"""The nearest neighbour, surer the farther the next class is."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data


class NearestNeighbour(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    r"""The class of the nearest training sample, with a probability from the distances.

    With :math:`d_k` the Euclidean distance to the nearest training sample of class k,

    .. math:: p_k = d_k^{-2} / \sum_l d_l^{-2}

    The most probable class is that of the nearest neighbour; on a training sample it is certain.
    These numbers rank pixels by how much farther the next class is. They are no estimate of
    frequencies: where samples lie matters, not how many there are.

    Parameters
    ----------
    power : float, default 2.0
        The exponent of the distance, positive: larger is surer.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The classes, sorted.

    Examples
    --------
    >>> model = NearestNeighbour().fit([[0.0], [3.0]], ["left", "right"])
    >>> model.predict_proba([[1.0], [3.0]])
    array([[0.8, 0.2],
           [0. , 1. ]])
    """

    def __init__(self, *, power: float = 2.0) -> None:
        self.power = power

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
            distance[:, column] = _nearest_distance(samples, of_class)
        nearest = distance.min(axis=1, keepdims=True)
        # relative to the nearest one, nothing overflows; 0 / 0 is a training sample: certain
        ratio = np.divide(nearest, distance, out=np.ones_like(distance), where=distance > 0)
        weight: NDArray[np.float64] = ratio**self.power
        weight /= weight.sum(axis=1, keepdims=True)
        return weight

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes of the nearest neighbours; the first class where two are as near."""
        probability = self.predict_proba(X)
        predicted: NDArray[Any] = self.classes_[probability.argmax(axis=1)]
        return predicted


def _nearest_distance(
    samples: NDArray[np.float64], training: NDArray[np.float64]
) -> NDArray[np.float64]:
    distance: NDArray[np.float64] = cKDTree(training).query(samples)[0]
    return distance
