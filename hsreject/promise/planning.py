"""What to expect of a climb before any label: errors predicted per region, and coverages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sklearn.isotonic import IsotonicRegression

from hsreject.errors import InputError
from hsreject.measures.curve import counts_of
from hsreject.promise.climb import RIGHT, WRONG, Climb, Terms, climb_start, labelled
from hsreject.promise.frame import Frame, check_share
from hsreject.schema import as_map

if TYPE_CHECKING:
    from numpy.typing import NDArray


def predicted_error(
    confidence: xr.DataArray | NDArray[Any],
    held_out_confidence: NDArray[Any],
    held_out_wrong: NDArray[Any],
) -> xr.DataArray:
    """Predict how probable it is that a label is wrong, from pixels that did not train the map.

    Held-out pixels, such as the training pixels of a cross-validation, say how often labels of some
    confidence are wrong: an isotonic regression, which falls as confidence grows. It is a
    prediction and promises nothing: it only decides where a climb begins.

    Parameters
    ----------
    confidence : DataArray or array, dims (y, x)
        Of the map.
    held_out_confidence : array
        Of pixels whose class is known, as ranked by a map that has not learned from them.
    held_out_wrong : array of bool
        Which of them have a wrong label.

    Returns
    -------
    DataArray (y, x)
        In [0, 1], NaN where the confidence is NaN: `predicted` of :func:`hsreject.draw_sample`.

    See Also
    --------
    hsreject.expected_coverage : plans with it.
    hsreject.draw_sample : draws by it.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import predicted_error
    >>> sure = np.array([0.2, 0.4, 0.6, 0.8])
    >>> predicted_error(np.array([[0.9, 0.3]]), sure, [True, False, False, False]).values
    array([[0. , 0.5]])
    """
    held_out, wrong = np.ravel(held_out_confidence), np.ravel(held_out_wrong).astype(float)
    if held_out.size != wrong.size or not held_out.size:
        raise InputError(
            "Give a confidence and whether it was wrong for each held-out pixel (got "
            f"{held_out.size} and {wrong.size})."
        )
    return _falling_error(confidence, held_out, wrong)


def _falling_error(
    confidence: xr.DataArray | NDArray[Any],
    held_out: NDArray[Any],
    error: NDArray[np.float64],
    weight: NDArray[np.float64] | None = None,
) -> xr.DataArray:
    confidences = as_map(confidence, name="confidence")
    regression = IsotonicRegression(increasing=False, out_of_bounds="clip")
    regression.fit(held_out, error, sample_weight=weight)
    values = confidences.values.astype(np.float64)
    has_data = np.isfinite(values)
    values[has_data] = regression.predict(values[has_data])
    values[~has_data] = np.nan
    return confidences.copy(data=values).rename("predicted_error").drop_attrs()


def error_of_curve(confidence: xr.DataArray | NDArray[Any], curve: xr.Dataset) -> xr.DataArray:
    """Predict errors as :func:`predicted_error` does, from the rejection curve of held-out pixels.

    Such as the operating points that a model keeps: between two thresholds lie the pixels that one
    of them keeps and the other rejects.
    """
    order = np.argsort(-curve["threshold"].values, kind="stable")
    counts, threshold = counts_of(curve), curve["threshold"].values[order]
    # Thresholds fall, so what a point keeps beyond the one before lies between two thresholds.
    # A lower threshold may turn a right group into a wrong class: no count is negative.
    right, wrong = (
        np.maximum(np.diff(column[order].astype(float), prepend=0), 0)
        for column in (counts.accurate_kept, counts.misclassified_kept)
    )
    used = np.isfinite(threshold) & (right + wrong > 0)
    both = (right + wrong)[used]
    return _falling_error(confidence, threshold[used], wrong[used] / both, both)


def predicted_curve(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any],
    predicted: xr.DataArray | NDArray[Any] | None = None,
    *,
    exclude: xr.DataArray | NDArray[Any] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the coverages of a climb and the errors predicted for them; None without any."""
    regions = Frame.of(label, confidence, exclude).regions()
    errors = regions.predicted_errors(predicted)
    return None if errors is None else (regions.sizes / regions.n_all, errors)


def expected_coverage(  # noqa: PLR0913 (a climb, and how often)
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any],
    predicted: xr.DataArray | NDArray[Any] | None = None,
    *,
    n: Sequence[int] = (100, 200, 400, 800),
    max_error: Sequence[float] = (0.02, 0.05, 0.1),
    confidence_level: float = 0.9,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    n_draws: int = 20,
    seed: int = 0,
) -> xr.DataArray:
    """Return what coverage to expect of a climb, before any label: a plan for the field work.

    Errors are drawn as predicted, and the climb is climbed on them.

    Parameters
    ----------
    label, confidence, predicted, exclude
        As for :func:`hsreject.draw_sample`. Without any prediction there is nothing to expect, and
        an error.
    n : sequence of int
        Numbers of labels to plan for.
    max_error : sequence of float in (0, 1)
        What is to be promised.
    confidence_level : float in (0, 1)
        Of the promise.
    n_draws : int
        Draws that are averaged.
    seed : int
        0 or larger.

    Returns
    -------
    DataArray (max_error, n)
        Mean certified coverage, 0 where n is too small to prove anything. It is as good as the
        prediction.

    See Also
    --------
    hsreject.draw_sample : draws what was planned.
    hsreject.predicted_error : what it plans with.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import expected_coverage
    >>> confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    >>> label = np.ones((100, 100), dtype=int)
    >>> plan = expected_coverage(label, confidence, 0.3 * (1 - confidence), n=[100, 400])
    >>> bool((plan.sel(n=400) > plan.sel(n=100)).all())
    True
    """
    regions = Frame.of(label, confidence, exclude).regions()
    errors, sizes = regions.predicted_errors(predicted), regions.sizes
    if errors is None:
        raise InputError(
            "There is no prediction to plan with. Give the chance of each label to be wrong "
            "(predicted=, --predicted), or a confidence that is a calibrated probability."
        )
    rings = np.diff(sizes, prepend=0)
    # errors of whole regions become those of the rings between them, which are drawn independently
    rates = np.clip(np.diff(errors * sizes, prepend=0) / rings, 0, 1)
    rng = np.random.default_rng(seed)
    delta = 1 - check_share("confidence_level", confidence_level)
    coverage = xr.DataArray(
        np.zeros((len(max_error), len(n))),
        dims=("max_error", "n"),
        coords={"max_error": list(max_error), "n": list(n)},
        name="expected_coverage",
    )
    for row, column in np.ndindex(coverage.shape):
        terms = Terms(n[column], check_share("max_error", max_error[row]), delta)
        if not terms.looks:
            continue
        start = climb_start(regions, errors, terms)
        counts = np.minimum(rings, terms.looks[-1])  # pixels of a ring that can be looked at
        depth = np.repeat(np.arange(sizes.size), counts)
        place = np.arange(depth.size) - np.repeat(np.cumsum(counts) - counts, counts)
        n_certified = []
        for _ in range(n_draws):
            # errors fall at random at the rate of each ring; the first pixels of a ring in random
            # order are drawn as ordered exponentials
            steps = np.cumsum(rng.exponential(size=depth.size) / (rings[depth] - place))
            before = np.append(0.0, steps)[np.repeat(np.cumsum(counts) - counts, counts)]
            order = np.argsort(steps - before)
            wrong = rng.uniform(size=depth.size) < rates[depth]
            climb = Climb(regions, start, terms, depth[order], place)
            truth = np.where(wrong, WRONG, RIGHT).astype(np.int8)[order]
            (outcome,) = labelled([climb], [truth], n=terms.n)
            n_certified.append(climb.walk(outcome).n_certified)
        coverage[row, column] = np.mean(n_certified) / regions.n_all
    return coverage
