"""Plans: where to begin, what to label next, how many labels more, and what to expect of them.

Only the power of a design depends on what is computed here. No guarantee does: tests use none of
it, and starts are fixed before the first label.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.special import bdtr
from sklearn.isotonic import IsotonicRegression

from hsreject.certification.exact_tests import ROUNDING, Progress, Requirement, least_points
from hsreject.certification.frame import Frame, NestedRegions
from hsreject.certification.sequential_design import OPEN, RIGHT, WRONG, SequentialDesign
from hsreject.errors import InputError
from hsreject.measures.curve import counts_of
from hsreject.registry import check_number
from hsreject.schema import as_map

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.certification.sample import Sample

_START_WITHOUT_PREDICTION = 0.1
_WRONG_BY = (0.35, 0.6, 1.0, 1.7, 2.8)  # factors by which a prediction may be wrong
_NEARLY_BEST = 0.97
_LIKELY, _NEARLY_CERTAIN = 0.5, 0.9
_FEWEST = 10  # points of a batch


# Where to begin.


def sequential_start(
    regions: NestedRegions, error: NDArray[np.float64] | None, requirement: Requirement
) -> int:
    """Choose the region that a sequential design begins with: 10 % without a prediction."""
    sizes = regions.sizes
    tenth = int(np.searchsorted(sizes, _START_WITHOUT_PREDICTION * regions.n_all))
    otherwise = min(tenth, sizes.size - 1) if error is None else int(np.argmin(error))
    looks = np.tile(np.array(requirement.looks, dtype=np.float64), (sizes.size, 1))
    return _best_start(sizes, error, requirement, looks=looks, otherwise=otherwise)


def fixed_sequence_start(
    regions: NestedRegions, error: NDArray[np.float64] | None, requirement: Requirement
) -> int:
    """Choose the region that the tests of a sample that was drawn at once begin with.

    Without a prediction it is where the sample will probably hold half as many points again as
    could pass without a single error.
    """
    expected = regions.sizes * (requirement.n_labels / regions.n_all)
    least = 1.5 * least_points(requirement.max_error, requirement.delta)
    enough = np.flatnonzero(expected >= least)
    otherwise = int(enough[0]) if enough.size else regions.sizes.size - 1
    looks = expected[:, None]
    return _best_start(regions.sizes, error, requirement, looks=looks, otherwise=otherwise)


def _best_start(
    sizes: NDArray[np.int64],
    error: NDArray[np.float64] | None,
    requirement: Requirement,
    *,
    looks: NDArray[Any],
    otherwise: int,
) -> int:
    """Choose the region to begin with, given the share of wrong pixels predicted for each.

    `looks` (region, look) are the numbers of pixels after which each can pass. The highest start
    within 3 % of the best is taken, on average over predictions that are wrong by factors of 0.35
    to 2.8. No label has a part in it. Without a prediction, or a chance, it is `otherwise`.
    """
    if error is None:
        return otherwise
    alpha = requirement.max_error
    # a rule of thumb: a look probably passes at an error of alpha - 1.5 sqrt(alpha (1 - alpha) / n)
    tolerated = alpha - 1.5 * math.sqrt(alpha * (1 - alpha)) / np.sqrt(np.maximum(looks, 1))
    increments, gain = np.diff(sizes, prepend=0), np.zeros(sizes.size)
    for factor, start in itertools.product(_WRONG_BY, range(sizes.size)):
        passes = factor * error[:, None] <= tolerated
        share, reached = np.zeros(sizes.size), 0  # of each increment that is labelled
        for region in range(start, sizes.size):
            needed = np.min(looks[region], where=passes[region], initial=np.inf)
            share[: region + 1] = np.maximum(share[: region + 1], min(needed / sizes[region], 1.0))
            n_needed = share @ increments
            if needed == np.inf or n_needed > requirement.n_labels * (1 + ROUNDING):
                break
            reached = int(sizes[region])
        gain[start] += reached
    return int(np.flatnonzero(gain >= _NEARLY_BEST * gain.max())[-1]) if gain.any() else otherwise


# What to label next.


def labels_to_next(
    design: SequentialDesign, outcome: NDArray[np.int8], reached: Progress
) -> int | None:
    """Estimate how many labels are likely to certify one more region; None if none are.

    At the error rate seen in it so far; before any label, at half of what is allowed.
    """
    if not reached.waiting.size:
        return None
    region = design.start + len(reached.tests) - 1
    n_open, n_wrong = design.counts(region, outcome)
    rate = (n_wrong[-1] + 0.5) / (n_open.size - 1 - n_open[-1] + 1 / design.requirement.max_error)
    steps = design.requirement.boundaries(int(design.regions.sizes[region]))
    enough = (
        int(n_open[n])
        for n, boundary in steps
        if n_open[n] and _chance(boundary - n_wrong[n], n_open[n], rate) >= _LIKELY
    )
    return next(enough, None)


def _chance(most: int, n: int, rate: float) -> float:
    """Compute the chance of at most this many errors among n pixels."""
    return float(bdtr(most, n, rate)) if most >= 0 else 0.0


def _gain_per_label(
    design: SequentialDesign, outcome: NDArray[np.int8], reached: Progress
) -> float:
    """Estimate how many pixels a label is likely to certify."""
    n_more = labels_to_next(design, outcome, reached)
    return (reached.tests[-1].n_units - reached.n_certified) / n_more if n_more else 0.0


def first_places(designs: Sequence[SequentialDesign], *, n: int) -> NDArray[np.intp]:
    """List the places of the first looks, at most n, those of the largest sequence first."""
    nothing = np.full(designs[0].first_region.size, OPEN, dtype=np.int8)
    largest_first = sorted(designs, key=lambda design: -int(design.regions.sizes[-1]))
    places = np.concatenate([design.progress_at(nothing).waiting for design in largest_first])
    return places[np.sort(np.unique(places, return_index=True)[1])][:n]


def next_places(
    designs: Sequence[SequentialDesign],
    outcomes: Sequence[NDArray[np.int8]],
    *,
    n: int,
    n_left: int,
    handed_out: NDArray[np.bool_] | None = None,
) -> NDArray[np.intp]:
    """List the places in the random order to label next, given the outcomes so far.

    Each step goes to the sequence with the most pixels per label, and takes it for granted that all
    of its points turn out right, so that points come in larger batches. A look that needs an open
    point which was `handed_out` (place) waits for it, and nothing of later looks is listed. At most
    n are handed out, and at most a quarter of the `n_left` labels (or 10, if that is more), to keep
    some for later.
    """
    known = [outcome.copy() for outcome in outcomes]
    is_out = np.zeros(known[0].size, dtype=bool) if handed_out is None else handed_out

    def look_ahead(
        design: SequentialDesign, outcome: NDArray[np.int8]
    ) -> tuple[NDArray[np.intp], float]:
        """List the places that a sequence needs next, with the gain that a label brings."""
        reached = design.progress_at(outcome)
        fresh = reached.waiting[~is_out[reached.waiting]]
        return fresh, _gain_per_label(design, outcome, reached) if fresh.size else -1.0

    ahead = list(map(look_ahead, designs, known))
    count = min(n, n_left, max(-(-n_left // 4), _FEWEST))
    batch = [np.empty(0, dtype=np.intp)]
    while count > 0:
        best, _ = max(ahead, key=lambda one: one[1])
        if not best.size:
            break
        places = best[:count]
        batch.append(places)
        count -= places.size
        for number, design in enumerate(designs):
            known[number][places] = RIGHT
            if np.isin(places, ahead[number][0]).any():
                ahead[number] = look_ahead(design, known[number])
    return np.concatenate(batch)


# What to expect.


@dataclass(frozen=True)
class Outlook:
    """What more labels, or a larger error, would probably certify; None where nothing is in sight.

    `n_more` labels are likely to certify the next region of a design that goes on; after an end
    without a guarantee, another design of `n_needed` labels, or one of as many with the error
    `smallest_error`, would almost certainly give one.
    """

    n_more: int | None = None
    n_needed: int | None = None
    smallest_error: float | None = None


def outlook(
    regions: NestedRegions,
    sample: Sample,
    start: int,
    requirement: Requirement,
    reached: Progress,
    *,
    most: int = 0,
) -> Outlook:
    """Look out for larger designs, of at most `most` labels, where tests have certified nothing."""
    if reached.n_certified:
        return Outlook()
    rate = _cautious_rate(regions, sample, start)
    n_needed, error = larger_designs(int(regions.sizes[start]), rate, requirement, most=most)
    return Outlook(n_needed=n_needed, smallest_error=error)


def _cautious_rate(regions: NestedRegions, sample: Sample, start: int) -> float:
    """Estimate an error rate that the region which a design begins with hardly exceeds.

    The larger of two: the rate among the 50 most confident labelled pixels, which assumes no trend,
    and the upper limit (95 %, by likelihood ratio) of errors that grow as a power of the rank up to
    its cube, which does not depend on a few pixels that happened to be right.
    """
    keep, all_wrong = regions.answers(sample.row, sample.column, sample.reference)
    # each labelled point counts in the smallest region around it, at the middle of its increment
    used = np.flatnonzero(keep[-1] & sample.labelled)
    first_region = keep.argmax(axis=0)[used]
    middle = (regions.sizes - np.diff(regions.sizes, prepend=0) / 2) / regions.n_all
    wrong, rank = all_wrong[first_region, used], middle[first_region]  # 0 for the most confident
    most_confident = wrong[np.argsort(rank)][:50]
    power, total = np.linspace(0, 3, 31)[:, None, None], np.geomspace(0.002, 0.9, 60)[:, None]
    chance = np.clip(total * (1 + power) * rank**power, 1e-6, 1 - 1e-6)
    likelihood = np.log(np.where(wrong, chance, 1 - chance)).sum(axis=-1)
    plausible = likelihood > likelihood.max() - 1.645**2 / 2
    rate = (total * float(regions.sizes[start] / regions.n_all) ** power)[..., 0]
    seen = (most_confident.sum() + 0.5) / (most_confident.size + 1)
    return float(max(rate[plausible].max(), seen))


def larger_designs(
    n_units: int, rate: float, requirement: Requirement, *, most: int
) -> tuple[int | None, float | None]:
    """Find how many labels, and which larger error, almost certainly certify a region.

    Labels are above the planned number, to two digits and up to `most`; None for neither.
    """

    def passes(**changes: Any) -> bool:  # at the best look, a little less likely than at any
        steps = replace(requirement, **changes).boundaries(n_units)
        return any(_chance(most, look, rate) >= _NEARLY_CERTAIN for look, most in steps)

    percentages = range(math.floor(100 * requirement.max_error + ROUNDING) + 1, 100)
    error = next((one / 100 for one in percentages if passes(max_error=one / 100)), None)
    size = max(requirement.n_labels, least_points(requirement.max_error, requirement.delta))
    while (size := 1.1 * size) <= most:
        digits = int(10 ** max(math.floor(math.log10(size)) - 1, 0))
        n = min(digits * math.ceil(size / digits), most)
        if passes(n_labels=n):
            return n, error
    return None, error


def simulated_outcomes(
    designs: Sequence[SequentialDesign],
    truths: Sequence[NDArray[np.int8]],
    *,
    n: int,
    n_batch: int = 50,
) -> list[NDArray[np.int8]]:
    """Label until designs have ended or used up n labels, given the whole truth."""
    outcomes = [np.full(truth.size, OPEN, dtype=np.int8) for truth in truths]
    places, n_left = first_places(designs, n=n), n
    while places.size:
        for outcome, truth in zip(outcomes, truths, strict=True):
            outcome[places] = truth[places]
        n_left -= places.size
        places = next_places(designs, outcomes, n=n_batch, n_left=n_left)
    return outcomes


# What to expect before any label.


def predicted_error(
    confidence: xr.DataArray | NDArray[Any],
    held_out_confidence: NDArray[Any],
    held_out_wrong: NDArray[Any],
    *,
    sample_weight: NDArray[Any] | None = None,
) -> xr.DataArray:
    """Predict how probable it is that a label is wrong, from pixels that did not train the map.

    From held-out pixels, such as the training pixels of a cross-validation, an isotonic regression
    finds how often labels of some confidence are wrong; it falls as confidence grows. It is a
    prediction and promises nothing: it only decides where a sequential design begins.

    Parameters
    ----------
    confidence : DataArray or array, dims (y, x)
        Of the map.
    held_out_confidence, held_out_wrong : array
        Of pixels whose class is known: the confidence of a map that has not learned from them, and
        whether its label is wrong, or how often in [0, 1].
    sample_weight : array, optional
        How many pixels each entry stands for.

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
    confidences = as_map(confidence, name="confidence")
    regression = IsotonicRegression(increasing=False, out_of_bounds="clip")
    regression.fit(held_out, wrong, sample_weight=sample_weight)
    values = confidences.values.astype(np.float64)
    has_data = np.isfinite(values)
    values[has_data] = regression.predict(values[has_data])
    values[~has_data] = np.nan
    return confidences.copy(data=values).rename("predicted_error").drop_attrs()


def error_of_curve(confidence: xr.DataArray | NDArray[Any], curve: xr.Dataset) -> xr.DataArray:
    """Predict errors from the rejection curve of held-out pixels, such as a model keeps."""
    order = np.argsort(-curve["threshold"].values, kind="stable")
    counts, threshold = counts_of(curve), curve["threshold"].values[order]
    # Thresholds fall, so what a point keeps beyond the one before lies between two thresholds.
    # A lower threshold may turn a right group into a wrong class: no count is negative.
    right, wrong = (
        np.maximum(np.diff(column[order].astype(float), prepend=0), 0)
        for column in (counts.accurate_kept, counts.misclassified_kept)
    )
    used, both = np.isfinite(threshold) & (right + wrong > 0), right + wrong
    share = wrong[used] / both[used]
    return predicted_error(confidence, threshold[used], share, sample_weight=both[used])


def expected_coverage(  # noqa: PLR0913 (a design, and how often)
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
    """Estimate what a sequential design will certify, before any label: a plan for the field work.

    Errors are drawn as predicted, and designs are carried out on them.

    Parameters
    ----------
    label, confidence, predicted, exclude
        As for :func:`hsreject.draw_sample`; without any prediction there is nothing to expect.
    n : sequence of int
        Numbers of labels to plan for.
    max_error : sequence of float in (0, 1)
        What is to be promised.
    confidence_level : float in (0, 1)
        Of the promise.
    n_draws, seed : int
        Draws that are averaged, and 0 or larger.

    Returns
    -------
    DataArray (max_error, n)
        Mean certified coverage, 0 where n is too small to prove anything.

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
            "There is no prediction to plan with. Give --predicted: the folder of a run, a model, "
            "or a raster with the probability of each label to be right (in Python predicted=, its "
            "chance to be wrong)."
        )
    # errors of whole regions become those of the increments between them
    increments = np.diff(sizes, prepend=0)
    rates = np.clip(np.diff(errors * sizes, prepend=0) / increments, 0, 1)
    counts = np.minimum(increments, max(n))  # pixels of an increment that can be looked at
    increment = np.repeat(np.arange(sizes.size), counts)
    rng = np.random.default_rng(seed)
    delta = 1 - check_number("confidence_level", confidence_level, above=0, below=1)
    shares = [check_number("max_error", share, above=0, below=1) for share in max_error]
    coverage = xr.DataArray(
        np.zeros((len(shares), len(n))),
        dims=("max_error", "n"),
        coords={"max_error": shares, "n": list(n)},
        name="expected_coverage",
    )
    for _ in range(n_draws):
        # the first pixels of an increment in random order, as ordered exponentials
        times = [
            np.cumsum(rng.exponential(size=n_first) / (size - np.arange(n_first)))
            for size, n_first in zip(increments, counts, strict=True)
        ]
        region = increment[np.argsort(np.concatenate(times))]
        is_wrong = rng.uniform(size=region.size) < rates[region]
        truth = np.where(is_wrong, WRONG, RIGHT).astype(np.int8)
        for row, column in np.ndindex(coverage.shape):
            requirement = Requirement(n[column], shares[row], delta)
            if requirement.looks:
                start = sequential_start(regions, errors, requirement)
                design = SequentialDesign(regions, start, requirement, region, increment)
                (outcome,) = simulated_outcomes([design], [truth], n=requirement.n_labels)
                n_certified = design.progress_at(outcome).n_certified
                coverage[row, column] += n_certified / regions.n_all / n_draws
    return coverage
