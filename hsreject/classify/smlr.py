"""Sparse multinomial logistic regression as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hsreject.classify.multinomial import MultinomialProblem
from hsreject.classify.proximal_newton import proximal_newton
from hsreject.errors import InputError, NotConvergedWarning
from hsreject.registry import check_choice, check_count, check_number
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from hsreject.classify.multinomial import FloatArray, Solution

# Values computed at once: small enough for the processor's cache, large enough for its products.
_BLOCK_VALUES = 2**17
_MOST_CANDIDATES = 2000  # for centres


class SparseMultinomialRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types
    r"""Sparse multinomial logistic regression, solved to a certified optimum.

    Minimises, over weights :math:`W` and intercepts :math:`b`,

    .. math:: -\sum_i \log p(y_i \mid h(x_i)) + \mathrm{sparsity} \, \|W\|_1, \quad
              p(k \mid h) \propto \exp(h^\top W_k + b_k)

    with free intercepts and the same form for all classes. The losses are summed, not averaged, so
    `sparsity` weighs against single samples. :math:`h(x)` is the features themselves or radial
    basis functions :math:`\exp(-\gamma \|x - c_j\|^2)`. Features should have comparable scales:
    components in units of noise (:class:`~hsreject.MNF`) do, others need scaling.

    Parameters
    ----------
    sparsity : float, default 0.03
        Weight of the penalty, above 0. Larger values leave fewer nonzero weights and flatter
        probabilities.
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
    coef_, intercept_ : array (category, function), array (category,)
        Weights, a column for each feature or basis function, and intercepts.
    centers_, gamma_ : array (function, feature) and float, or None for the linear kernel
        Centres of the basis functions, distinct training samples; inverse squared width in use.
    objective_, duality_gap_ : float
        Value of the objective, and the proven bound on its distance from the optimum.
    n_iter_ : int
        Iterations of the solver.

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

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples (sample, feature) and their classes: anything that sorts.

        A sample of weight 2 counts as one that is there twice, one of weight 0 does not count.
        """
        self._check_parameters()
        every, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        share = np.ones(len(every)) if sample_weight is None else np.asarray(sample_weight, float)
        usable = (share >= 0) & np.isfinite(share)
        if share.shape != labels.shape or not usable.all() or not share.any():
            raise InputError(
                "sample_weight must be a finite number, 0 or more, for each sample, and not zero "
                f"for all (got the shape {share.shape} for {len(labels)} samples)."
            )
        every, labels, share = every[share > 0], labels[share > 0], share[share > 0]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                "Training needs samples of at least two classes (got one class, "
                f"{self.classes_[0]!r})."
            )
        # sorted, and equal samples merged: neither order nor repetition matters
        samples, place = np.unique(np.column_stack([every, codes]), axis=0, return_inverse=True)
        features, codes = samples[:, :-1].copy(), samples[:, -1].astype(np.intp)
        weight = np.bincount(place.ravel(), share).astype(np.float64)
        with one_blas_thread():
            functions, self.centers_ = features, None
            gamma: Any = None
            if self.kernel == "rbf":
                scaled = self.gamma == "scale"
                gamma = scale_gamma(features, weight) if scaled else float(self.gamma)
                self.centers_ = np.unique(features, axis=0)
                if self.n_centers is not None:
                    best = choose_centers(features, weight, gamma=gamma, n_centers=self.n_centers)
                    self.centers_ = features[best]
                # transposed: each function is contiguous in memory
                functions = radial_basis(self.centers_, features, gamma).T
            problem = MultinomialProblem.from_samples(functions, codes, weight)
            solution = proximal_newton(problem, self.sparsity, tol=self.tol, max_iter=self.max_iter)
            if not solution.converged:
                warnings.warn(self._complaint(solution), NotConvergedWarning, stacklevel=2)
            solution = problem.restore(solution)
        self.gamma_ = gamma
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
        """Return the class probabilities (sample, category), in single precision if X is."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def _scores(self, X: ArrayLike) -> FloatArray:
        """Return W'h(x) + b, (sample, category), in the precision of the samples."""
        check_is_fitted(self)
        samples = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        scores = np.tile(self.intercept_.astype(samples.dtype), (len(samples), 1))
        used = np.flatnonzero(self.coef_.any(axis=0))  # functions without a weight do not matter
        weights = np.ascontiguousarray(self.coef_[:, used].T, dtype=samples.dtype)
        if not used.size:
            return scores
        centers = None if self.centers_ is None else self.centers_[used].astype(samples.dtype)
        step = max(1, _BLOCK_VALUES // len(used))
        with one_blas_thread():
            for first in range(0, len(samples), step):
                block = samples[first : first + step]
                functions = (
                    block[:, used] if centers is None else radial_basis(block, centers, self.gamma_)
                )
                scores[first : first + step] += functions @ weights
        return scores

    def _check_parameters(self) -> None:
        check_number("sparsity", self.sparsity, above=0)
        check_number("tol", self.tol, above=0)
        check_count("max_iter", self.max_iter, least=1)
        check_choice("kernel", self.kernel, ("rbf", "linear"))
        if self.n_centers is not None:
            check_count("n_centers", self.n_centers, least=1)
        if self.gamma != "scale":
            check_number("gamma", self.gamma, above=0)

    def _complaint(self, solution: Solution) -> str:
        """Return that the optimum is not certified, and what to change."""
        advice = "Rounding does not let it come closer: raise tol, or standardise the features."
        if solution.n_iterations >= self.max_iter:
            advice = "Raise max_iter, tol or sparsity."
        gap = solution.duality_gap / max(solution.objective, 1e-300)
        return (
            f"The sparse regression stopped after {solution.n_iterations} iterations with a "
            f"duality gap of {gap:.1e} of its objective (tol={self.tol:g}). {advice}"
        )


def scale_gamma(samples: FloatArray, weight: FloatArray) -> float:
    """Return 1 / (mean squared distance of two samples), or 1 if all samples are equal.

    The weighted mean of |x_i - x_j|^2 over all pairs is twice the sum of the feature variances.
    """
    mean = np.average(samples, axis=0, weights=weight)
    spread = 2 * float(np.average(((samples - mean) ** 2).sum(axis=1), weights=weight))
    return 1 / spread if spread > 0 else 1.0


def choose_centers(
    samples: FloatArray, weight: FloatArray, *, gamma: float, n_centers: int
) -> NDArray[np.intp]:
    """Return the numbers of the samples that span the functions of all samples best.

    A greedy pivoted Cholesky factorisation: each centre is the one after which least of the kernel
    matrix (its weighted trace) is left outside the span of the centres. Nothing is random. Fewer
    centres come back when they explain everything.
    """
    candidates = np.arange(len(samples))
    if len(samples) > _MOST_CANDIDATES:
        candidates = np.linspace(0, len(samples) - 1, _MOST_CANDIDATES).astype(np.intp)
    weight = weight[candidates]
    kernel = radial_basis(samples[candidates], samples[candidates], gamma)
    count = min(n_centers, len(candidates))
    factor = np.zeros((len(candidates), count))  # kernel - factor @ factor.T is unexplained
    diagonal = np.ones(len(candidates))
    column_norms = weight @ kernel**2
    centers = np.empty(count, dtype=np.intp)
    for step in range(count):
        # With R what is unexplained of the kernel, a centre j takes R_j R_j' / R_jj away from it
        # and lowers the weighted trace by sum_i w_i R_ij^2 / R_jj. Samples that are explained
        # already (R_jj of 0) gain nothing and are not divided by.
        gain = np.where(diagonal > 1e-9, column_norms / np.maximum(diagonal, 1e-9), -np.inf)
        best = int(gain.argmax())
        if gain[best] == -np.inf:
            return candidates[centers[:step]]
        centers[step] = best
        earlier = factor[:, :step]
        column = (kernel[best] - earlier @ earlier[best]) / np.sqrt(diagonal[best])
        pull = weight * column
        # (R_ij - c_i c_j)^2, c the new column, multiplied out: the sums follow without writing R
        shared = kernel @ pull - earlier @ (pull @ earlier)
        column_norms += column * ((pull @ column) * column - 2 * shared)
        factor[:, step] = column
        diagonal -= column**2
    return candidates[centers]


def radial_basis(samples: FloatArray, centers: FloatArray, gamma: float) -> FloatArray:
    """Return exp(-gamma |x_i - c_j|^2), (sample, centre), in the precision of the samples."""
    origin = centers.mean(axis=0)  # squares of offsets would cost digits
    samples, centers = samples - origin, centers - origin
    exponent: FloatArray = samples @ (2 * gamma * centers).T
    exponent -= gamma * np.einsum("ij,ij->i", samples, samples)[:, None]
    exponent -= gamma * np.einsum("ij,ij->i", centers, centers)
    np.minimum(exponent, 0, out=exponent)  # a distance of zero may round to less
    return np.exp(exponent, out=exponent)
