"""Sparse multinomial regression that chooses its sparsity and width by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from hsreject.classify.smlr import N_FOLDS, SparseModel
from hsreject.classify.temperature import log_loss
from hsreject.classify.training_samples import scale_gamma
from hsreject.errors import InputError
from hsreject.registry import check_count, check_number
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from hsreject.classify.multinomial import FloatArray, MultinomialProblem
    from hsreject.classify.training_samples import TrainingSamples


class SparseMultinomialRegressionCV(SparseModel):
    """Sparse multinomial regression with cross-validated sparsity and width.

    The samples of each class are dealt out to folds in their sorted order: nothing is random and
    the order of the samples does not matter. For each width and fold a path of sparsities is solved
    with warm starts; the pair with the smallest mean log-loss of the held-out samples is then
    trained on all samples. Sparsities weigh against a sum over samples, so the folds, which have
    fewer, use proportionally less. A class with one sample is in every training part.

    Parameters
    ----------
    sparsities : array or int, default 12
        The candidates, or how many to place geometrically from the smallest value that zeroes all
        weights downwards.
    smallest : float, default 1e-3
        Where these end, as a share of where they begin.
    gamma_factors : sequence of float, default (0.5, 1, 2, 4)
        Candidate widths of the "rbf" kernel: multiples of gamma="scale" of
        :class:`hsreject.SparseMultinomialRegression`.
    n_folds : int, default 5
        Number of folds, at least 2.
    kernel, n_centers, class_weight, temperature, solver, tol, max_iter
        As in :class:`hsreject.SparseMultinomialRegression`.

    Attributes
    ----------
    sparsity_ : float
        The sparsity chosen.
    sparsities_ : array (sparsity,)
        The candidates, from the largest to the smallest.
    gammas_ : array (gamma,)
        The candidate widths; NaN for the linear kernel.
    log_loss_ : array (gamma, sparsity)
        Mean held-out log-loss of each pair.
    classes_, coef_, intercept_, centers_, gamma_, training_prior_, temperature_
        As in :class:`hsreject.SparseMultinomialRegression`, and so are
        `objective_`, `duality_gap_`, `n_iter_` and `n_features_in_`.

    Examples
    --------
    >>> from hsreject import SparseMultinomialRegressionCV
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((60, 3)), np.arange(60) % 3
    >>> X[:, 0] += 4 * y
    >>> model = SparseMultinomialRegressionCV(6, gamma_factors=(1.0,)).fit(X, y)
    >>> model.log_loss_.shape, bool(model.score(X, y) > 0.9)
    ((1, 6), True)
    """

    def __init__(  # noqa: PLR0913  # the parameters of an estimator are those of its constructor
        self,
        sparsities: ArrayLike | int = 12,
        *,
        smallest: float = 1e-3,
        gamma_factors: Sequence[float] = (0.5, 1.0, 2.0, 4.0),
        n_folds: int = N_FOLDS,
        kernel: Literal["rbf", "linear"] = "rbf",
        n_centers: int | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        temperature: float | Literal["cv"] = 1.0,
        solver: Literal["proximal_newton", "lorsal"] = "proximal_newton",
        tol: float = 1e-4,
        max_iter: int = 500,
    ) -> None:
        self.sparsities = sparsities
        self.smallest = smallest
        self.gamma_factors = gamma_factors
        self.n_folds = n_folds
        self.kernel = kernel
        self.n_centers = n_centers
        self.class_weight = class_weight
        self.temperature = temperature
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose sparsity and width, then train on all samples.

        Parameters
        ----------
        X : array (sample, feature)
            Features.
        y : array (sample,)
            Class of each sample: numbers, strings, anything that sorts.
        sample_weight : array (sample,), optional
            Weight of each sample's loss, not negative.

        Returns
        -------
        SparseMultinomialRegressionCV
            The estimator itself.
        """
        self._check_parameters()
        samples = self._checked_samples(X, y, sample_weight)
        with one_blas_thread():
            gamma = self._choose(samples)
            self._keep_model(samples, sparsity=self.sparsity_, gamma=gamma)
        return self

    def _choose(self, samples: TrainingSamples) -> float:
        """Set the sparsity and return the width of the smallest loss on held-out samples."""
        self.gammas_ = self._candidate_gammas(samples)
        middle = float(self.gammas_[len(self.gammas_) // 2])
        self.sparsities_ = _sparsity_grid(
            self._problem(samples, self._basis(samples, middle)), self.sparsities, self.smallest
        )
        self.log_loss_ = np.array([self._held_out_loss(samples, gamma) for gamma in self.gammas_])
        # The first of equal minima: the wider functions, then the larger sparsity.
        width, place = np.unravel_index(self.log_loss_.argmin(), self.log_loss_.shape)
        self.sparsity_ = float(self.sparsities_[place])
        return float(self.gammas_[width])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("smallest", self.smallest, above=0)
        check_count("n_folds", self.n_folds, least=2)
        if not len(self.gamma_factors):
            raise InputError("gamma_factors must hold at least one factor (got none).")
        for factor in self.gamma_factors:
            check_number("gamma_factors", factor, above=0)

    def _candidate_gammas(self, samples: TrainingSamples) -> FloatArray:
        if self.kernel == "linear":
            return np.array([np.nan])
        scale = scale_gamma(samples.features, samples.weight)
        return scale * np.sort(np.asarray(self.gamma_factors, dtype=np.float64))

    def _held_out_loss(self, samples: TrainingSamples, gamma: float) -> FloatArray:
        """Return the mean log-loss of held-out samples for each sparsity."""
        fold = samples.folds(self.n_folds)
        weight = samples.weights_with(self.class_weight)
        losses, held_out_weight = [], []
        for number in range(fold.max() + 1):
            out = fold == number
            part = samples.subset(~out)
            basis = self._basis(part, gamma)
            problem = self._problem(part, basis)
            values = basis.values(samples.features[out])
            share = weight[~out].sum() / weight.sum()
            path, now = [], None
            for sparsity in share * self.sparsities_:  # each solution is a start for the next
                now = self._solve(problem, float(sparsity), start=now)
                fitted = problem.restore(now)
                scores = values @ fitted.coef + fitted.intercept
                path.append(log_loss(scores, samples.codes[out], weight[out]))
            losses.append(path)
            held_out_weight.append(weight[out].sum())
        return np.average(losses, axis=0, weights=held_out_weight)


def _sparsity_grid(
    problem: MultinomialProblem, sparsities: ArrayLike | int, smallest: float
) -> FloatArray:
    """Return descending sparsities: those given, or that many from the largest that matters.

    The largest is the smallest sparsity that zeroes all weights; `smallest` is a share of it.
    """
    if isinstance(sparsities, int | np.integer) and sparsities >= 1:
        largest = max(problem.largest_sparsity(), np.finfo(np.float64).tiny)
        return np.geomspace(largest, smallest * largest, int(sparsities))
    values = np.asarray(sparsities, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or values.min() < 0:
        raise InputError(
            f"sparsities must be a number of points or a list of values at least 0 "
            f"(got {sparsities!r})."
        )
    return np.sort(values)[::-1]
