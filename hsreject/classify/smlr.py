"""Sparse multinomial logistic regression as a scikit-learn classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from hsreject.classify.one_thread import one_blas_thread
from hsreject.classify.regression_path import RegressionPath, solve_path, sparsity_grid
from hsreject.classify.sparse_model import SparseModel
from hsreject.classify.training_samples import check_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike


class SparseMultinomialRegression(SparseModel):
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
    class_weight : dict, "balanced" or None
        Weights of the classes, as in scikit-learn.
    class_prior : array, mapping or None
        How frequent each class is in the scene (in the order of `classes_`, or by class).
        Probabilities are then given for these frequencies instead of those of the training
        samples.
    temperature : float or "cv", default 1
        The scores are divided by it: above 1 flattens the probabilities. "cv" finds it by
        cross-validation on the training samples.
    solver : {"proximal_newton", "lorsal"}, default "proximal_newton"
        The fast solver, or the readable reference; both stop at the same certificate.
    tol : float, default 1e-4
        Stop when the duality gap is below this share of the objective.
    max_iter : int, default 500
        Iterations at most; a gap above `tol` is then told by a warning. ("lorsal" needs thousands.)
    precision : {"double", "single"}, default "double"
        Arithmetic of the predictions. Training always uses double precision.

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
    training_prior_, class_prior_ : array (category,)
        The class frequencies of the training samples, and those that the probabilities contain.
    temperature_ : float
        The temperature in use.
    objective_, duality_gap_ : float
        Value of the objective, and the proven bound on its distance from the optimum.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features.

    References
    ----------
    Krishnapuram, Carin, Figueiredo and Hartemink, "Sparse multinomial logistic regression: fast
    algorithms and generalization bounds", IEEE TPAMI 27(6), 2005.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.2], [1.0], [1.2]])
    >>> model = SparseMultinomialRegression(sparsity=0.1).fit(X, ["oak", "oak", "pine", "pine"])
    >>> list(model.predict([[0.1], [1.1]]))
    [np.str_('oak'), np.str_('pine')]
    >>> bool(model.duality_gap_ <= 1e-4 * model.objective_)
    True
    """

    def __init__(  # noqa: PLR0913  # the parameters of an estimator are those of its constructor
        self,
        sparsity: float = 0.03,
        *,
        kernel: Literal["rbf", "linear"] = "rbf",
        gamma: float | Literal["scale"] = "scale",
        n_centers: int | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        class_prior: ArrayLike | Mapping[Any, float] | None = None,
        temperature: float | Literal["cv"] = 1.0,
        solver: Literal["proximal_newton", "lorsal"] = "proximal_newton",
        tol: float = 1e-4,
        max_iter: int = 500,
        precision: Literal["double", "single"] = "double",
    ) -> None:
        self.sparsity = sparsity
        self.kernel = kernel
        self.gamma = gamma
        self.n_centers = n_centers
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.temperature = temperature
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.precision = precision

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples.

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
        SparseMultinomialRegression
            The estimator itself.
        """
        self._check_parameters()
        samples = self._checked_samples(X, y, sample_weight)
        with one_blas_thread():
            self._keep_model(samples, sparsity=self.sparsity, gamma=self.gamma)
        return self

    def path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sparsities: ArrayLike | int = 20,
        smallest: float = 0.01,
        sample_weight: ArrayLike | None = None,
    ) -> RegressionPath:
        """Return the solutions for many sparsities; the estimator's own is not used.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        sparsities : array or int, default 20
            The sparsities, or how many to place geometrically from the smallest that zeroes all
            weights downwards.
        smallest : float, default 0.01
            Where these end, as a share of where they begin.

        Examples
        --------
        >>> X = [[0.0], [0.2], [1.0], [1.2]]
        >>> path = SparseMultinomialRegression(kernel="linear").path(X, [1, 1, 2, 2], sparsities=3)
        >>> path.sparsity.round(3), (path.coef != 0).any(axis=(1, 2))
        (array([1.  , 0.1 , 0.01]), array([False,  True,  True]))
        """
        self._check_parameters()
        check_number("smallest", smallest, above=0)
        samples = self._checked_samples(X, y, sample_weight)
        with one_blas_thread():
            problem = self._problem(samples, self._basis(samples, self.gamma))
            grid = sparsity_grid(problem, sparsities, smallest)
            solutions = solve_path(
                problem, grid, solver=self.solver, tol=self.tol, max_iter=self.max_iter
            )
        return RegressionPath.of(grid, solutions)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("sparsity", self.sparsity, least=0)
        if self.gamma != "scale":
            check_number("gamma", self.gamma, above=0)
