"""Assessments: accuracies and areas of a map with rejection, with standard errors and intervals."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, astuple, dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.special import betaincinv

from hsreject.certification.frame import NODATA, labels_of
from hsreject.certification.sample import CANNOT_TELL, SEQUENTIAL, STRATIFIED, Sample, given_sample
from hsreject.errors import HsrejectWarning, InputError
from hsreject.io.grid import PixelGrid
from hsreject.io.vectors.spreadsheet import write_csv
from hsreject.measures.confusion import confusion_matrix
from hsreject.registry import check_number
from hsreject.schema import (
    CATEGORY,
    CLASS_NAME,
    DECISION,
    NO_REFERENCE,
    REJECTED,
    STATISTIC,
    class_table,
)
from hsreject.schema.class_tree import ClassTree
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    _Parts = tuple[NDArray[np.bool_], NDArray[np.bool_]]

QUANTITIES = {
    "users_accuracy": "user's accuracy",
    "producers_accuracy": "producer's accuracy",
    "area": "area in {}",
}
STATISTICS = ("estimate", "standard_error", "lower", "upper")


@dataclass(frozen=True)
class Estimate:
    """An estimate of something about a map, with its uncertainty; NaN where there is none."""

    value: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a sample shows about a map with rejection.

    Attributes
    ----------
    overall_accuracy, kept_accuracy : Estimate
        Share of all pixels that are kept with the right label (a rejected pixel is not right), and
        share of the kept pixels with the right label.
    by_class : Dataset
        `users_accuracy` (of the pixels kept as this class, the share that is), `producers_accuracy`
        (of the pixels of this class, the share that is kept as it) and `area` over (category,
        statistic), where `statistic` is estimate, standard_error, lower and upper; `mapped_area`
        (category), what counting the kept pixels gives. With the coordinate `class_name`.
    area_unit : str
        "ha", or "pixels" for maps without a projected reference system.
    total_area, rejected_area, unknown_area : float
        Of all pixels with data, and of the rejected ones. Where fewer than two rejected pixels have
        a reference, these are unknown: `area` then counts kept pixels only, producer's accuracies
        are NaN, and nothing is scaled up. Else `unknown_area` is 0.
    error_matrix : DataArray (reference, decision)
        Sampled pixels; decision 0, the last, is rejected.
    confidence_level : float
        Of the intervals.
    n_points, n_cannot_tell : int
        Sampled pixels with a reference, and those that nobody could label. Estimates leave the
        latter out, intervals hold whatever they may be.
    drawn : str
        How the sample was drawn, in words.

    See Also
    --------
    hsreject.assess : makes one.
    hsreject.plot.AreaDisplay : draws its areas.

    Examples
    --------
    A map with every third column wrong in half of the rows:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> truth = np.repeat([1, 2], 5000).reshape(100, 100)
    >>> label = np.where(np.arange(100) % 3 == 0, 1, truth)
    >>> assessment = hr.assess(label, hr.draw_sample(label, 400).with_reference(truth))
    >>> accuracy = assessment.overall_accuracy
    >>> bool(accuracy.lower < np.mean(label == truth) < accuracy.upper)
    True
    """

    _: KW_ONLY
    overall_accuracy: Estimate
    kept_accuracy: Estimate
    by_class: xr.Dataset
    area_unit: str
    total_area: float
    rejected_area: float
    unknown_area: float
    error_matrix: xr.DataArray
    confidence_level: float
    n_points: int
    n_cannot_tell: int
    drawn: str

    @property
    def classes(self) -> ClassTable:
        """The classes of the map, and those that only the reference has."""
        return class_table(self.by_class["mapped_area"])

    def rows(self) -> list[tuple[str, str, Estimate]]:
        """List quantity, class and estimate, line by line."""
        rows = [
            ("overall accuracy", "", self.overall_accuracy),
            ("kept accuracy", "", self.kept_accuracy),
        ]
        for quantity, title in QUANTITIES.items():
            values = self.by_class[quantity].transpose(CATEGORY, STATISTIC).values.tolist()
            named = zip(self.classes.names, values, strict=True)
            title_here = title.format(self.area_unit)
            rows += [(title_here, name, Estimate(*numbers)) for name, numbers in named]
        if self.unknown_area:
            area = Estimate(self.unknown_area, 0.0, self.unknown_area, self.unknown_area)
            rows.append((f"area in {self.area_unit}", "unknown (rejected)", area))
        return rows

    def write_tables(self, folder: Path) -> None:
        """Write `assessment.csv` and `error-matrix.csv` into a folder."""
        rows = [
            (title, name, *(None if np.isnan(v) else v for v in astuple(estimate)))
            for title, name, estimate in self.rows()
        ]
        write_csv(folder / "assessment.csv", ["quantity", "class", *STATISTICS], rows)
        decisions = self.error_matrix[DECISION].values[:-1].tolist()
        names = [self.classes.name_of(value) for value in decisions]
        counts = zip(names, self.error_matrix.values.tolist(), strict=True)
        write_csv(
            folder / "error-matrix.csv",
            ["reference", *names, "rejected"],
            [(name, *row) for name, row in counts],
        )


def assess(
    label_with_rejection: xr.DataArray | NDArray[Any],
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    *,
    confidence_level: float = 0.95,
    assume_random: bool = False,
) -> Assessment:
    """Estimate the accuracies of a map and the areas of its classes, with intervals.

    Counting the pixels of a map counts its errors, too. So each sampled pixel is weighted by the
    area that it stands for. With strata h of N_h pixels, n_h of them sampled, every accuracy and
    every share of the area is a ratio R of two totals, of y (such as: kept as k and really k) and x
    (such as: kept as k), estimated as::

        Y = sum_h N_h mean_h(y)      R = Y / X
        Var(R) = sum_h N_h^2 (1 - n_h / N_h) var_h(y - R x) / n_h / X^2

    (Stehman 2014, equations 25 and 28). Of a random sample, the strata are the kept classes and the
    rejected pixels (post-stratification); kept classes with fewer than two points are put together.
    Of a stratified sample they are those that it was drawn from, which may differ from the classes
    of this map. Where strata and classes agree, this is Olofsson et al. (2014), equations 1 to 11,
    with the correction for a finite map. Pixels count by their area on the ellipsoid.

    R +- z SE is too short on accurate maps, where strata without an error have no variance. So
    intervals are made of Clopper and Pearson's (1934) for the shares of each stratum, of n_h / (1 -
    n_h / N_h) points (Korn and Graubard 1998); Wilson's would leave out the truth in up to 13 % of
    draws where one point of a rare class is found in a large stratum. R solves D(R) = sum_h (1 - R)
    Y_h - R (X_h - Y_h) = 0, and its limits are where those of D are 0, which follow from those of
    its parts (Zou, Huang and Zhang 2009).

    Parameters
    ----------
    label_with_rejection : DataArray or array of int, dims (y, x)
        The map, of any software: 0 where it rejects, ``schema.nodata_label`` without data.
    sample : Sample, path, DataArray or array of int, dims (y, x)
        Points of :func:`hsreject.draw_sample`, labelled, or their file; drawn from this map or from
        another one of the same place. An array holds reference labels on the grid of the map, 0
        where not sampled, and is trusted to be a simple random sample of the map, or of each of its
        classes. Points without a reference are left out, as if chance had chosen them; those that
        nobody could label widen the intervals to all possibilities. Missing points are refused, and
        so are those of a sequential design, which leaves out what the map rejects.
    confidence_level : float in (0, 1)
        Of the intervals.
    assume_random : bool
        Take points of unknown origin for a simple random sample.

    Returns
    -------
    Assessment

    See Also
    --------
    hsreject.certify : promises instead of estimating.
    hsreject.draw_sample : the pixels to label.
    hsreject.open_sample : reads them back.

    References
    ----------
    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected
    number of positive counts estimated from survey data. Survey Methodology 24, 193-201.

    Olofsson, P. et al. (2014). Good practices for estimating area and assessing accuracy of land
    change. Remote Sensing of Environment 148, 42-57.

    Stehman, S. V. (2014). Estimating area and map accuracy for stratified random sampling when the
    strata are different from the map classes. International Journal of Remote Sensing 35,
    4923-4939.

    Zou, G. Y., Huang, W. and Zhang, X. (2009). A note on confidence interval estimation for a
    linear function of binomial proportions. Computational Statistics and Data Analysis 53,
    1080-1085.

    Examples
    --------
    A map that calls a third of class 2 class 1, and a sample of 400 of its pixels:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> truth = np.repeat([1, 2], 5000).reshape(100, 100)
    >>> label = np.where(np.arange(100) % 3 == 0, 1, truth)
    >>> assessment = hr.assess(label, hr.draw_sample(label, 400).with_reference(truth))
    >>> area = assessment.by_class.area.sel(category=2)
    >>> assessment.by_class.mapped_area.sel(category=2).item(), area.values.round()
    (3300.0, array([4803.,  166., 4474., 5158.]))
    """
    check_number("confidence_level", confidence_level, above=0, below=1)
    on_map = labels_of(label_with_rejection, name="label_with_rejection")
    points = given_sample(sample, on_map, assume_random=assume_random)
    if points.kind == SEQUENTIAL:
        raise InputError(
            "The points of a sequential design certify a map, but do not estimate accuracies and "
            "areas: none lies where it rejects. Draw a sample with design='random' or 'stratified'."
        )
    has_data, rejected = on_map.values != NODATA, points.label == REJECTED
    n_rejected = int(np.count_nonzero(on_map.values == REJECTED))
    n_known = int(np.count_nonzero((points.reference > 0) & rejected))
    unknown = n_known < min(n_rejected, 2)  # a single point has no spread
    # a rejected point that nobody labelled still says that its place is not among the kept
    hidden = unknown & rejected
    points = replace(points, reference=np.where(hidden, 0, points.reference))
    used = points.labelled | hidden
    if not used.all():
        warnings.warn(
            f"{np.count_nonzero(~used)} of {len(points)} points have no reference and are left "
            "out, as if chance had chosen them.",
            HsrejectWarning,
            stacklevel=2,
        )
    points, classes = points.select(used), points.classes
    clear = points.select(points.reference > 0)
    hectares = PixelGrid.of(on_map).pixel_areas()
    area = np.broadcast_to(1.0 if hectares is None else hectares, on_map.shape)
    figures = _figures(points, on_map, area, kept_only=unknown, delta=1 - confidence_level)
    kept_accuracy, (users, producers, areas) = figures[0], figures[1:].reshape(3, -1, 4)
    n_labels = max(classes.values) + 1
    counted = np.bincount(on_map.values[has_data], area[has_data], minlength=n_labels)
    total, rejected_area = float(counted.sum()), float(counted[REJECTED])
    by_class = xr.Dataset(
        {
            "users_accuracy": ((CATEGORY, STATISTIC), users),
            "producers_accuracy": ((CATEGORY, STATISTIC), producers * (np.nan if unknown else 1)),
            "area": ((CATEGORY, STATISTIC), total * areas),
            "mapped_area": (CATEGORY, counted[list(classes.values)], classes.to_attrs()),
        },
        coords={
            CATEGORY: list(classes.values),
            CLASS_NAME: (CATEGORY, list(classes.names)),
            STATISTIC: list(STATISTICS),
        },
    )
    drawn = "a random sample, as stated by the user"
    if points.design is not None:
        drawn = f"a {points.kind} sample drawn by hsreject, seed {points.design.seed}"
        n_drawn, n_all = points.design.n_pixels, int(np.count_nonzero(has_data))
        if n_drawn < n_all:
            drawn += (
                f", from {n_drawn} of the {n_all} pixels of the map: figures are about all of it, "
                "as if the others were like these"
            )
    return Assessment(
        overall_accuracy=Estimate(*((1 - rejected_area / total) * kept_accuracy).tolist()),
        kept_accuracy=Estimate(*kept_accuracy.tolist()),
        by_class=by_class,
        area_unit="pixels" if hectares is None else "ha",
        total_area=total,
        rejected_area=rejected_area,
        unknown_area=rejected_area if unknown else 0.0,
        error_matrix=confusion_matrix(
            clear.reference,
            # a rejected point may have any class here: its column is another one
            np.where(clear.label == REJECTED, clear.reference, clear.label),
            rejected=clear.label == REJECTED,
            classes=classes,
        ),
        confidence_level=float(confidence_level),
        n_points=len(clear),
        n_cannot_tell=int(np.count_nonzero(points.reference == CANNOT_TELL)),
        drawn=drawn,
    )


def _strata(
    points: Sample, on_map: xr.DataArray
) -> tuple[NDArray[np.intp], NDArray[np.float64], tuple[NDArray[Any], NDArray[Any]]]:
    """Find the stratum of each point, their sizes, and pairs of a stratum and a label in it."""
    clear = points.reference != CANNOT_TELL
    if points.kind == STRATIFIED:
        _, first, stratum = np.unique(points.stratum, return_index=True, return_inverse=True)
        sizes = points.stratum_pixels[first]
        few = (np.bincount(stratum[clear], minlength=sizes.size) < 2) & (sizes > 1)
        if few.any() or (points.design and sizes.sum() != points.design.n_pixels):
            raise InputError(
                f"{few.sum() or 'Some'} strata of the sample have fewer than two labelled points. "
                "Label at least two points of each."
            )
        return stratum, sizes.astype(np.float64), (stratum, points.label)
    labels, sizes = np.unique(on_map.values[on_map.values != NODATA], return_counts=True)
    of_label = np.searchsorted(labels, points.label)
    counts = np.bincount(of_label[clear], minlength=labels.size)
    # kept classes with fewer than two points are put together, if need be with the next larger
    rows = np.flatnonzero(labels != REJECTED)
    rows = rows[np.argsort(counts[rows], kind="stable")]
    n_few = int(np.count_nonzero((counts[rows] < 2) & (counts[rows] < sizes[rows])))
    if n_few and counts[rows].sum() < 2:
        raise InputError("Fewer than two of the kept pixels have a reference. Label more points.")
    if n_few:
        n_few = max(n_few, int(np.searchsorted(np.cumsum(counts[rows]), 2)) + 1)
    group = np.arange(labels.size)
    group[rows[:n_few]] = rows[:n_few].min(initial=labels.size)
    _, group = np.unique(group, return_inverse=True)
    return group[of_label], np.bincount(group, sizes).astype(np.float64), (group, labels)


# Ratios of areas. A quantity says of each point whether it counts as right, as wrong or not at all:
# its value is right / (right + wrong), by area.


def _figures(
    points: Sample,
    on_map: xr.DataArray,
    area: NDArray[np.float64],
    *,
    kept_only: bool,
    delta: float,
) -> NDArray[np.float64]:
    """Compute `STATISTICS` (quantity, 4) of all that is kept, then of `QUANTITIES` by class.

    Where nobody knows the rejected pixels, areas are of kept ones only. Intervals hold whatever the
    points are that nobody could label: right if they can, or wrong.
    """
    codes, tree = np.array(points.classes.values)[:, None], ClassTree.from_attrs(on_map.attrs)

    def counted(label: NDArray[Any], reference: NDArray[Any]) -> _Parts:
        """Tell which points count as right, and which as wrong (quantity, point)."""
        agree = label == reference
        if tree is not None:  # a group is right where the reference lies below it
            agree |= tree.holds(label, reference)
        kept, mapped, real = label > 0, label == codes, reference == codes
        in_area = real & (kept | (not kept_only))
        right = np.vstack([kept & agree, mapped & agree, mapped & real, in_area])
        return right, np.vstack([kept & ~agree, mapped & ~agree, ~mapped & real, ~in_area])

    def undecided(label: NDArray[Any]) -> _Parts:
        """Tell which labels may count as right, and as wrong, depending on the reference."""
        kept, mapped = label > 0, label == codes
        in_area = np.broadcast_to(kept | (not kept_only), mapped.shape)
        right = np.vstack([kept, mapped, mapped, in_area])
        return right, np.vstack([kept, mapped, ~mapped, in_area])

    stratum, sizes, (of_stratum, its_label) = _strata(points, on_map)
    strata, weight = np.eye(sizes.size), area[points.row, points.column]
    doubts = [part @ strata[of_stratum] > 0 for part in undecided(its_label)]
    unseen = counted(np.array([REJECTED]), np.array([NO_REFERENCE]))[1]

    def ratios(right: Any, wrong: Any, used: Any = slice(None)) -> NDArray[np.float64]:
        inside, mass = strata[stratum[used]], weight[used] / weight.mean()
        return _ratios(right[:, used], wrong[:, used], inside, mass, sizes, doubts, unseen, delta)

    right, wrong = counted(points.label, points.reference)
    unclear = points.reference == CANNOT_TELL
    figures = ratios(right, wrong, ~unclear)
    if unclear.any():
        may_be_right, may_be_wrong = (unclear & part for part in undecided(points.label))
        lower = ratios(right, wrong | may_be_wrong)[:, 2]
        upper = ratios(right | may_be_right, wrong & ~may_be_right)[:, 3]
        figures[:, 2], figures[:, 3] = np.fmin(figures[:, 2], lower), np.fmax(figures[:, 3], upper)
    return figures


def _ratios(
    right: NDArray[np.bool_],  # (quantity, point)
    wrong: NDArray[np.bool_],
    inside: NDArray[np.float64],  # which stratum a point lies in (point, stratum)
    weight: NDArray[np.float64],
    sizes: NDArray[np.float64],  # pixels of the strata
    doubts: list[NDArray[np.bool_]],  # where right and wrong areas may vary (quantity, stratum)
    unseen: NDArray[np.bool_],  # whether a stratum without a point counts as wrong (quantity, 1)
    delta: float,
) -> NDArray[np.float64]:
    """Compute ratios, their errors and limits."""
    n_points = inside.sum(axis=0)
    n = np.maximum(n_points, 1)
    mean = weight @ inside / n
    areas = sizes * np.where(mean > 0, mean, 1.0)
    shares = [(part * weight) @ inside * sizes / n / areas for part in (right, wrong)]
    shares[1][:, n_points == 0] = unseen  # only the rejected pixels may have no point
    above, others = (share @ areas for share in shares)
    with np.errstate(invalid="ignore"):  # nothing at all
        ratio = above / (above + others)
    residual = (right - (right | wrong) * ratio[:, None]) * weight
    left = 1 - n / sizes  # a stratum that is sampled whole leaves no doubt
    spread = residual**2 @ inside / n - (residual @ inside / n) ** 2
    variance = (spread * sizes**2 * left / np.maximum(n - 1, 1)).sum(axis=1)
    error = np.sqrt(np.maximum(variance, 0.0)) / (above + others)
    error[error < 1e-7] = 0.0  # less is rounding

    # How far the shares of each stratum may lie below and above: Clopper and Pearson's limits
    distances = []
    for doubtful, share in zip(doubts, shares, strict=True):
        doubt = doubtful * areas * (left > 0)
        n_free = n / np.maximum(left, 1e-9)
        hits, misses = share * n_free, (1 - share) * n_free
        some, not_all = hits > 1e-9, misses > 1e-9
        low = np.where(some, betaincinv(np.where(some, hits, 1.0), misses + 1, delta / 2), 0.0)
        high = betaincinv(hits + 1, np.where(not_all, misses, 1.0), 1 - delta / 2)
        high = np.where(not_all, high, 1.0)
        distances.append((doubt * (share - low), doubt * (high - share)))

    # D(R) = (1 - R) A - R B, of the right area A and the wrong area B, is 0 at the ratio R, and its
    # limits are 0 at those of R. They are D +- sqrt(sum_h (1 - R)^2 a_h^2 + R^2 b_h^2 + 2 c_h R (1
    # - R) a_h b_h) for distances a_h, b_h of the parts (Zou, Huang and Zhang 2009) and the
    # correlation c_h of two shares of one sample. The odds R / (1 - R) solve a quadratic equation.
    room = (1 - shares[0]) * (1 - shares[1])
    product = shares[0] * shares[1] / np.where(room > 0, room, 1.0)
    correlation = np.sqrt(np.where(shares[0] + shares[1] > 1 - 1e-12, 1.0, product))

    def terms(of_right: Any, of_wrong: Any) -> tuple[Any, Any, Any]:
        first = above**2 - (of_right**2).sum(axis=1)
        last = others**2 - (of_wrong**2).sum(axis=1)
        middle = above * others + (correlation * of_right * of_wrong).sum(axis=1)
        return first, last, middle + np.sqrt(np.maximum(middle**2 - first * last, 0.0))

    (right_low, right_high), (wrong_low, wrong_high) = distances
    first, _, root = terms(right_low, wrong_high)
    lower = np.divide(first, first + root, out=np.zeros_like(ratio), where=first > 0)
    _, last, root = terms(right_high, wrong_low)
    upper = np.divide(root, last + root, out=np.ones_like(ratio), where=last > 0)
    return np.stack([ratio, error, np.minimum(lower, ratio), np.maximum(upper, ratio)], axis=1)
