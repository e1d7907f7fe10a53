"""The classifiers that a configuration may name; any other scikit-learn classifier is an object."""

from __future__ import annotations

from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hsreject.classify.nearest_neighbour import NearestNeighbour
from hsreject.classify.smlr import SparseMultinomialRegression
from hsreject.classify.smlr_cv import SparseMultinomialRegressionCV
from hsreject.classify.support_vector_machine import SupportVectorMachine
from hsreject.registry import Registry


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


def logistic_regression(*, penalty_strength: float = 1.0, max_iterations: int = 1000) -> Any:
    """Return logistic regression with a squared penalty, on features scaled to unit variance.

    Parameters
    ----------
    penalty_strength : float, default 1.0
        Weight of the penalty, positive: the inverse of scikit-learn's C.
    max_iterations : int, default 1000
        Limit of the solver.
    """
    regression = LogisticRegression(C=1.0 / penalty_strength, max_iter=max_iterations)
    return make_pipeline(StandardScaler(), regression)


CLASSIFIERS: Registry[Any] = Registry(
    "classifier",
    {
        "smlr": SparseMultinomialRegression,
        "smlr_cv": SparseMultinomialRegressionCV,
        "svm": SupportVectorMachine,
        "random_forest": random_forest,
        "lda": linear_discriminant_analysis,
        "logistic_regression": logistic_regression,
        "nearest_neighbour": NearestNeighbour,
    },
)
