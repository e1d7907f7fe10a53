"""What every form of the sparse regression does: keep a trained model and predict with it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hsreject.classify.calibration import best_temperature, held_out_scores
from hsreject.classify.exponentials import softmax_in_place
from hsreject.classify.kernels import Basis
from hsreject.classify.multinomial import MultinomialProblem
from hsreject.classify.one_thread import one_blas_thread
from hsreject.classify.solvers import SOLVERS, solve
from hsreject.classify.training_samples import (
    TrainingSamples,
    check_choice,
    check_count,
    check_finite,
    check_number,
    given_prior,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from hsreject.classify.multinomial import FloatArray, Solution

KERNELS = ("rbf", "linear")
PRECISIONS: dict[str, type[np.floating[Any]]] = {"double": np.float64, "single": np.float32}
N_FOLDS = 5


class SparseModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier whose scores are linear in basis functions, with sparse weights.

    Subclasses have the parameters below in their constructors, and a ``fit`` that ends in
    ``_keep_model``.
    """

    kernel: str
    n_centers: int | None
    class_weight: Mapping[Any, float] | str | None
    class_prior: ArrayLike | Mapping[Any, float] | None
    temperature: float | str
    solver: str
    tol: float
    max_iter: int
    precision: str

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each sample."""
        winner = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[winner])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the class probabilities, (sample, category) in the order of `classes_`."""
        scores = self._scores(X)
        softmax_in_place(scores)
        return scores

    def predict_likelihood(self, X: ArrayLike) -> FloatArray:
        """Return probability / prior, (sample, category): what a stage with its own prior needs.

        Likelihoods are known up to a factor for each sample; here they sum to one.
        """
        scores = self._scores(X)
        scores -= np.log(self.class_prior_).astype(self._dtype)
        softmax_in_place(scores)
        return scores

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return log-probabilities but for a constant, (sample, category).

        With two classes it is the difference of the two, (sample,), as scikit-learn has it.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    @property
    def _dtype(self) -> type[np.floating[Any]]:
        return PRECISIONS[self.precision]

    @one_blas_thread()
    def _scores(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        features = validate_data(self, X, dtype=self._dtype, reset=False, ensure_all_finite=False)
        check_finite(features)
        scores = Basis(self.centers_, self.gamma_).scores(features, self.coef_)
        scores += self.intercept_.astype(self._dtype)
        scores /= self._dtype(self.temperature_)
        scores += np.log(self.class_prior_ / self.training_prior_).astype(self._dtype)
        return scores

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0)
        check_count("max_iter", self.max_iter, least=1)
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("solver", self.solver, SOLVERS)
        check_choice("precision", self.precision, PRECISIONS)
        if self.temperature != "cv":
            check_number("temperature", self.temperature, above=0)
        if self.n_centers is not None:
            check_count("n_centers", self.n_centers, least=1)

    def _checked_samples(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> TrainingSamples:
        features, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        return TrainingSamples.checked(features, labels, sample_weight)

    def _basis(self, samples: TrainingSamples, gamma: float | str) -> Basis:
        if self.kernel == "linear":
            return Basis()
        return Basis.radial(samples.features, samples.weight, gamma=gamma, n_centers=self.n_centers)

    def _problem(self, samples: TrainingSamples, basis: Basis) -> MultinomialProblem:
        return MultinomialProblem.from_samples(
            basis.values(samples.features), samples.codes, samples.weights_with(self.class_weight)
        )

    def _solution(self, problem: MultinomialProblem, sparsity: float) -> Solution:
        solution = solve(
            problem, sparsity, solver=self.solver, tol=self.tol, max_iter=self.max_iter
        )
        return problem.restore(solution)

    def _keep_model(self, samples: TrainingSamples, *, sparsity: float, gamma: float | str) -> None:
        """Train on the samples and keep what prediction needs."""
        basis = self._basis(samples, gamma)
        problem = self._problem(samples, basis)
        solution = self._solution(problem, sparsity)
        self.classes_ = samples.classes
        self.centers_, self.gamma_ = basis.centers, basis.gamma
        self.coef_ = np.ascontiguousarray(solution.coef.T)
        self.intercept_ = solution.intercept
        self.objective_ = solution.objective
        self.duality_gap_ = solution.duality_gap
        self.n_iter_ = solution.n_iterations
        self.training_prior_ = problem.class_weight / problem.weight.sum()
        self.class_prior_ = self.training_prior_
        if self.class_prior is not None:
            self.class_prior_ = given_prior(self.class_prior, samples.classes)
        self.temperature_ = self._temperature(samples, sparsity, gamma)

    def _temperature(self, samples: TrainingSamples, sparsity: float, gamma: float | str) -> float:
        if self.temperature != "cv":
            return float(self.temperature)
        score = partial(self._train_and_score, sparsity=sparsity, gamma=gamma)
        scores, held_out = held_out_scores(samples, score, n_folds=N_FOLDS)
        weight = samples.weights_with(self.class_weight)
        return best_temperature(scores[held_out], samples.codes[held_out], weight[held_out])

    def _train_and_score(
        self,
        samples: TrainingSamples,
        features: FloatArray,
        *,
        sparsity: float,
        gamma: float | str,
    ) -> FloatArray:
        basis = self._basis(samples, gamma)
        solution = self._solution(self._problem(samples, basis), sparsity)
        return np.asarray(basis.values(features) @ solution.coef + solution.intercept)
