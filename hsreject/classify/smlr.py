"""Sparse multinomial logistic regression as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hsreject.classify.basis import Basis
from hsreject.classify.multinomial import MultinomialProblem
from hsreject.classify.proximal_newton import proximal_newton
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.registry import check_choice, check_count, check_number
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from hsreject.classify.multinomial import FloatArray, Solution

KERNELS = ("rbf", "linear")


class SparseMultinomialRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types
    r"""Sparse multinomial logistic regression, solved to a certified optimum.

    Minimises, over weights :math:`W` and intercepts :math:`b`,

    .. math:: -\sum_i v_i \log p(y_i \mid h(x_i)) + \mathrm{sparsity} \, \|W\|_1, \quad
              p(k \mid h) \propto \exp(h^\top W_k + b_k)

    with free intercepts and the same form for all classes. The losses are summed, not averaged, so
    `sparsity` weighs against single samples. :math:`h(x)` is the features themselves or radial
    basis functions :math:`\exp(-\gamma \|x - c_j\|^2)`. Features should have comparable scales:
    components in units of noise (:class:`~hsreject.MNF`) do, others need scaling.

    Parameters
    ----------
    sparsity : float, default 0.03
        Weight of the penalty, >= 0. Larger values leave fewer nonzero weights and flatter
        probabilities. With 0, separable classes have no finite optimum: the solver then stops where
        the loss is negligible.
    kernel : {"rbf", "linear"}, default "rbf"
        Radial basis functions, or the features as they are.
    gamma : "scale" or float, default "scale"
        Inverse squared width of the functions; "scale" is 1 / (mean squared distance of two
        training samples).
    n_centers : int, optional
        Number of functions, centred at the training samples that represent all of them best; by
        default there is one at every training sample.
    tol : float, default 1e-4
        Stop when the duality gap is below this share of the objective.
    max_iter : int, default 500
        Largest number of iterations; a warning says if the gap is still above `tol` then.

    Attributes
    ----------
    classes_ : array (category,)
        The classes, sorted.
    coef_ : array (category, function)
        Weights; a column is one feature, or one basis function.
    intercept_ : array (category,)
        Intercepts.
    centers_ : array (function, feature) or None
        Centres of the basis functions, distinct training samples; None for the linear kernel.
    gamma_ : float or None
        Inverse squared width in use.
    objective_, duality_gap_ : float
        Value of the objective, and the proven bound on its distance from the optimum.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    hsreject.SceneClassifier : takes it to scenes.
    hsreject.AutoClassifier : needs no choice.

    References
    ----------
    Krishnapuram, Carin, Figueiredo and Hartemink, "Sparse multinomial logistic regression: fast
    algorithms and generalization bounds", IEEE TPAMI 27(6), 2005.

    Examples
    --------
    >>> from hsreject import SparseMultinomialRegression
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.2], [1.0], [1.2]])
    >>> model = SparseMultinomialRegression(sparsity=0.1).fit(X, ["oak", "oak", "pine", "pine"])
    >>> list(model.predict([[0.1], [1.1]]))
    [np.str_('oak'), np.str_('pine')]
    >>> bool(model.duality_gap_ <= 1e-4 * model.objective_)
    True
    """

    def __init__(  # the parameters of an estimator are those of its constructor
        self,
        sparsity: float = 0.03,
        *,
        kernel: Literal["rbf", "linear"] = "rbf",
        gamma: float | Literal["scale"] = "scale",
        n_centers: int | None = None,
        tol: float = 1e-4,
        max_iter: int = 500,
    ) -> None:
        self.sparsity = sparsity
        self.kernel = kernel
        self.gamma = gamma
        self.n_centers = n_centers
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on samples.

        Parameters
        ----------
        X : array (sample, feature)
            Features.
        y : array (sample,)
            Class of each sample: numbers, strings, anything that sorts.

        Returns
        -------
        SparseMultinomialRegression
            The estimator itself.
        """
        self._check_parameters()
        every, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        check_classification_targets(labels)
        _check_finite(every)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                "Training needs samples of at least two classes (got one class, "
                f"{self.classes_[0]!r})."
            )
        # sorted, and equal samples merged: neither order nor repetition matters
        samples, counts = np.unique(np.column_stack([every, codes]), axis=0, return_counts=True)
        features, codes = samples[:, :-1].copy(), samples[:, -1].astype(np.intp)
        weight = counts.astype(np.float64)
        basis = Basis()
        with one_blas_thread():
            if self.kernel == "rbf":
                basis = Basis.radial(features, weight, gamma=self.gamma, n_centers=self.n_centers)
            problem = MultinomialProblem.from_samples(basis.values(features), codes, weight)
            solution = proximal_newton(problem, self.sparsity, tol=self.tol, max_iter=self.max_iter)
            if not solution.converged:
                warnings.warn(self._complaint(solution), NotConvergedWarning, stacklevel=2)
            solution = problem.restore(solution)
        self.centers_, self.gamma_ = basis.centers, basis.gamma
        self.coef_ = np.ascontiguousarray(solution.coef.T)
        self.intercept_ = solution.intercept
        self.objective_, self.duality_gap_ = solution.objective, solution.duality_gap
        self.n_iter_ = solution.n_iterations
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each sample."""
        winner = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[winner])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the class probabilities, (sample, category) in the order of `classes_`.

        They are computed in single precision if the samples are, in double precision otherwise.
        """
        return np.asarray(softmax(self._scores(X), axis=1))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return log-probabilities up to a constant, (sample, category).

        With two classes it is the difference of the two, (sample,), as scikit-learn has it.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _scores(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        features = validate_data(
            self, X, dtype=(np.float64, np.float32), reset=False, ensure_all_finite=False
        )
        _check_finite(features)
        with one_blas_thread():
            scores = Basis(self.centers_, self.gamma_).scores(features, self.coef_)
        scores += self.intercept_.astype(scores.dtype)
        return scores

    def _check_parameters(self) -> None:
        check_number("sparsity", self.sparsity, least=0)
        check_number("tol", self.tol, above=0)
        check_count("max_iter", self.max_iter, least=1)
        check_choice("kernel", self.kernel, KERNELS)
        if self.n_centers is not None:
            check_count("n_centers", self.n_centers, least=1)
        if self.gamma != "scale":
            check_number("gamma", self.gamma, above=0)

    def _complaint(self, solution: Solution) -> str:
        """Return that the optimum is not certified, and what to change."""
        advice = "Rounding does not let it come closer: raise tol, or standardise the features."
        if solution.n_iterations >= self.max_iter:
            advice = "Raise max_iter, tol or sparsity."
        elif self.sparsity == 0:
            advice = "Without sparsity the bound is loose: give a small positive sparsity."
        gap = solution.duality_gap / max(solution.objective, 1e-300)
        return (
            f"The sparse regression stopped after {solution.n_iterations} iterations with a "
            f"duality gap of {gap:.1e} of its objective (tol={self.tol:g}). {advice}"
        )


def _check_finite(features: NDArray[Any]) -> None:
    bad = ~np.isfinite(features).all(axis=1)
    if bad.any():
        what = "NaN" if np.isnan(features[bad]).any() else "inf"
        raise InputError(
            f"Features must be finite (found {what} in {bad.sum()} of {len(bad)} samples). "
            "Leave pixels without data out before."
        )
