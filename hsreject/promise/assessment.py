"""Assessments: accuracies and areas of a map with rejection, with standard errors and intervals."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import KW_ONLY, astuple, dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.stats import norm

from hsreject.class_tree import ClassTree
from hsreject.classes import ClassTable
from hsreject.errors import HsrejectWarning, InputError
from hsreject.io.grid import Grid
from hsreject.measures.confusion import confusion_matrix
from hsreject.promise.frame import NODATA, check_share, labels_of
from hsreject.promise.sample import CANNOT_TELL, CLIMB, STRATIFIED, Sample, write_csv
from hsreject.promise.sample_file import check_complete, given_sample
from hsreject.schema import (
    CATEGORY,
    CLASS_NAME,
    DECISION,
    REJECTED,
    STATISTIC,
    class_table,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

QUANTITIES = {
    "users_accuracy": "user's accuracy",
    "producers_accuracy": "producer's accuracy",
    "area": "area in {}",
}
STATISTICS = ("estimate", "standard_error", "lower", "upper")


@dataclass(frozen=True)
class Estimate:
    """A number that a sample tells about a map, and how well it tells it; NaN where it cannot."""

    value: float
    standard_error: float
    lower: float
    upper: float

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of something that is larger by a factor."""
        return Estimate(*(factor * number for number in astuple(self)))


UNKNOWN = Estimate(np.nan, np.nan, np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class Assessment:
    """What a sample says about a map with rejection.

    Attributes
    ----------
    overall_accuracy : Estimate
        Share of all pixels that are kept with the right label. A rejected pixel is not right.
    kept_accuracy : Estimate
        Share of the kept pixels with the right label.
    by_class : Dataset
        `users_accuracy` (of the pixels kept as this class, the share that is), `producers_accuracy`
        (of the pixels of this class, the share that is kept as it) and `area` over (category,
        statistic), where `statistic` is estimate, standard_error, lower and upper; `mapped_area`
        (category), what counting the kept pixels gives. With the coordinate `class_name`.
    area_unit : str
        "ha", or "pixels" for maps without a projected reference system.
    total_area : float
        Of all pixels with data.
    rejected_area : float
        Of the rejected pixels.
    unknown_area : float
        The rejected area, where fewer than two rejected pixels have a reference: `area` then
        counts kept pixels only, producer's accuracies are NaN, and nothing is scaled up. Else 0.
    error_matrix : DataArray (reference, decision)
        Sampled pixels; decision 0, the last, is rejected.
    confidence_level : float
        Of the intervals.
    n_points : int
        Sampled pixels with a reference.
    n_cannot_tell : int
        Sampled pixels that nobody could label. Estimates leave them out, intervals hold whatever
        they may be.
    drawn : str
        How the sample was drawn, in words.

    See Also
    --------
    hsreject.assess : makes one.
    hsreject.plot.AreaDisplay : draws its areas.
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
        """Return quantity, class and estimate, line by line."""
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

    Counting pixels of a map counts its errors, too. What a sample says is weighted by what it
    stands for. With strata h of N_h pixels, n_h of them sampled, every accuracy and every share of
    the area is a ratio R of two totals, of y (such as: kept as k and really k) and x (such as: kept
    as k), estimated as::

        Y = sum_h N_h mean_h(y)      R = Y / X
        Var(R) = sum_h N_h^2 (1 - n_h / N_h) var_h(y - R x) / n_h / X^2

    (Stehman 2014, equations 25 and 28). Of a random sample, the strata are the kept classes and the
    rejected pixels (post-stratification); kept classes with fewer than two points are put together.
    Of a stratified sample they are those that it was drawn from, which may differ from the classes
    of this map. Where strata and classes agree, this is Olofsson et al. (2014), equations 1 to 11,
    with the correction for a finite map. Pixels count by their area, which differs on geographic
    and Mercator grids.

    R +- z SE is too short on accurate maps, where strata without an error have none to tell. So
    intervals are made of Wilson's (1927) for the shares of each stratum, of n_h / (1 - n_h / N_h)
    points: R solves D(R) = sum_h (1 - R) Y_h - R (X_h - Y_h) = 0, and its limits are where those of
    D are 0, which follow from those of its parts (Zou, Huang and Zhang 2009). A stratum that is
    sampled whole leaves no doubt, and no bound exceeds what is possible.

    Parameters
    ----------
    label_with_rejection : DataArray or array of int, dims (y, x)
        The map, of any software: 0 where it rejects, ``schema.nodata_label`` without data.
    sample : Sample, path, DataArray or array of int, dims (y, x)
        Points of :func:`hsreject.draw_sample`, labelled, or their file; drawn from this map or from
        another one of the same place. An array holds reference labels on the grid of the map, 0
        where not sampled, and is taken at the caller's word: a simple random sample of the map, or
        of each of its classes. Points without a reference are left out, as if chance had chosen
        them; those that nobody could label widen the intervals by all that they may be. Missing
        points are refused, and so are those of a climb, which leaves out what it rejects.
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
    >>> from hsreject import assess
    >>> import hsreject as hr
    >>> truth = np.repeat([1, 2], 5000).reshape(100, 100)
    >>> label = np.where(np.arange(100) % 3 == 0, 1, truth)
    >>> assessment = assess(label, hr.draw_sample(label, 400).with_reference(truth))
    >>> area = assessment.by_class.area.sel(category=2)
    >>> assessment.by_class.mapped_area.sel(category=2).item(), area.values.round()
    (3300.0, array([4803.,  166., 4489., 5151.]))
    """
    check_share("confidence_level", confidence_level)
    on_map = labels_of(label_with_rejection, name="label_with_rejection")
    points = _points(sample, on_map, assume_random=assume_random)
    n_rejected = int(np.count_nonzero(on_map.values == REJECTED))
    n_known = int(np.count_nonzero((points.reference > 0) & (points.label == REJECTED)))
    unknown = n_known < min(n_rejected, 2)  # one point tells nothing about its spread
    # a rejected point that nobody labelled still says that its place is not among the kept
    hidden = unknown & (points.label == REJECTED)
    points = replace(points, reference=np.where(hidden, 0, points.reference))
    used = points.labelled | hidden
    if not used.all():
        warnings.warn(
            f"{np.count_nonzero(~used)} of {len(points)} points have no reference and are left "
            "out, as if chance had chosen them.",
            HsrejectWarning,
            stacklevel=2,
        )
    points = points.select(used)
    hectares = Grid.of(on_map).pixel_areas()
    area = np.broadcast_to(1.0 if hectares is None else hectares, on_map.shape)
    total = float(area[on_map.values != NODATA].sum())
    rejected_area = float(area[on_map.values == REJECTED].sum())
    estimator = _Estimator.of(points, on_map, area, confidence_level)
    kept_accuracy = estimator.estimate(
        _Quantity("users_accuracy", None, ClassTree.from_attrs(on_map.attrs))
    )
    return Assessment(
        overall_accuracy=kept_accuracy.scaled(1 - rejected_area / total),
        kept_accuracy=kept_accuracy,
        by_class=_by_class(estimator, on_map, area, kept_only=unknown),
        area_unit="pixels" if hectares is None else "ha",
        total_area=total,
        rejected_area=rejected_area,
        unknown_area=rejected_area if unknown else 0.0,
        error_matrix=_error_matrix(points),
        confidence_level=float(confidence_level),
        n_points=int(np.count_nonzero(points.reference > 0)),
        n_cannot_tell=int(np.count_nonzero(points.reference == CANNOT_TELL)),
        drawn="a random sample, as the caller says"
        if points.design is None
        else f"a {points.design.kind} sample drawn by hsreject, seed {points.design.seed}",
    )


def _points(
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    on_map: xr.DataArray,
    *,
    assume_random: bool,
) -> Sample:
    """Return the points where the map has data, or say why they tell nothing about it."""
    points = given_sample(sample, on_map, assume_random=assume_random)
    if points.design is not None and points.design.kind == CLIMB:
        raise InputError(
            "The points of a climb certify a map, but do not estimate accuracies and areas: none "
            "lies where it rejects. Draw a sample with design='random' or 'stratified'."
        )
    if points.design is not None and not assume_random:
        check_complete(points, points.design)
    points = points.select(points.label != NODATA)
    if not (points.reference > 0).any():
        raise InputError(
            "No sampled pixel has a reference where the map has data. Fill in the column "
            "'reference' with class names or codes."
        )
    return points


def _strata(points: Sample, on_map: xr.DataArray) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the stratum of each point, from 0, and how many pixels each stratum has."""
    if points.design is not None and points.design.kind == STRATIFIED:
        values, place = np.unique(points.stratum, return_inverse=True)
        sizes = np.array([points.stratum_pixels[place == h][0] for h in range(values.size)], float)
        missing = points.design.n_pixels - int(sizes.sum())
        few = (np.bincount(place) < 2) & (sizes > 1)
        if few.any() or missing:
            raise InputError(
                f"{int(few.sum()) or 'Some'} strata of the sample have fewer than two labelled "
                "points. Label at least two points of each."
            )
        return place, sizes
    labels, sizes = np.unique(on_map.values[on_map.values != NODATA], return_counts=True)
    place = np.searchsorted(labels, points.label)
    counts = np.bincount(place, minlength=labels.size)
    group = np.arange(labels.size)
    scarce = _scarce(labels, counts, sizes)
    group[scarce] = scarce[0] if scarce.size else 0
    kept_groups, of_label = np.unique(group, return_inverse=True)
    merged = np.asarray(np.bincount(of_label, sizes, minlength=kept_groups.size), float)
    return of_label[place], merged


def _scarce(
    labels: NDArray[np.uint16], counts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.intp]:
    """Return which kept classes to put together, so that two points are in each stratum."""
    kept = np.flatnonzero(labels != REJECTED)
    kept = kept[np.argsort(counts[kept], kind="stable")]
    n_few = int(np.count_nonzero((counts[kept] < 2) & (counts[kept] < sizes[kept])))
    if not n_few:
        return np.empty(0, dtype=np.intp)
    while counts[kept[:n_few]].sum() < 2 and n_few < kept.size:
        n_few += 1
    if counts[kept[:n_few]].sum() < 2:
        raise InputError("Fewer than two of the kept pixels have a reference. Label more points.")
    return np.sort(kept[:n_few])


@dataclass(frozen=True)
class _Quantity:
    """A ratio of two areas: what counts as right, and out of what."""

    name: str  # of `QUANTITIES`
    value: int | None  # of the class; None for all that is kept
    tree: ClassTree | None = None  # a group is right where the reference lies below it
    kept_only: bool = False  # where nobody knows the rejected pixels

    def extremes(self, label: NDArray[np.int64]) -> tuple[Any, Any]:
        """Return the references of unclear points that make the ratio smallest and largest."""
        best = label if self.value is None else np.full_like(label, self.value)
        if self.name == "producers_accuracy":
            mapped = label == best
            return np.where(mapped, 0, best), np.where(mapped, best, 0)
        return np.zeros_like(label), best

    def ratio(
        self, label: NDArray[np.int64], reference: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None, NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which points are right, which are counted, and which may be right or wrong at all.

        None are counted where it is the whole map, whose area is known. Where a pixel of the map
        cannot be right, or wrong, whatever its reference, there is no doubt: a pixel that is mapped
        as another class never adds to the right ones of this class.
        """
        mapped = label != REJECTED if self.value is None else label == self.value
        if self.name == "users_accuracy":
            right = label == reference
            if self.tree is not None:
                right |= self.tree.holds(label, reference)
            return mapped & right, mapped, mapped, mapped
        real = reference == self.value
        if self.name == "producers_accuracy":
            return mapped & real, real, mapped, ~mapped
        possible = (label != REJECTED) | (not self.kept_only)
        return possible & real, None, possible, possible


@dataclass(frozen=True, eq=False)
class _Estimator:
    """Ratios of totals, estimated from points in strata."""

    points: Sample
    stratum: NDArray[np.intp]  # of each point
    sizes: NDArray[np.float64]  # pixels of each stratum
    weight: NDArray[np.float64]  # area of each point
    confidence_level: float
    without_unclear: _Estimator | None = None  # of the points with a reference, if not of all

    @classmethod
    def of(
        cls, points: Sample, on_map: xr.DataArray, area: NDArray[np.float64], level: float
    ) -> _Estimator:
        """Return the estimator of points, and of those with a reference if these are fewer."""
        weight = area[points.row, points.column]
        unclear = points.reference == CANNOT_TELL
        others = cls.of(points.select(~unclear), on_map, area, level) if unclear.any() else None
        return cls(points, *_strata(points, on_map), weight / weight.mean(), level, others)

    def estimate(self, quantity: _Quantity) -> Estimate:
        """Return a ratio; its interval holds whatever points that nobody could label may be."""
        label, reference = self.points.label, self.points.reference
        if self.without_unclear is None:
            return self._ratio(*quantity.ratio(label, reference))
        unclear = reference == CANNOT_TELL
        low, high = (
            self._ratio(*quantity.ratio(label, np.where(unclear, extreme, reference)))
            for extreme in quantity.extremes(label)
        )
        middle = self.without_unclear.estimate(quantity)
        ends = np.fmin(low.lower, middle.lower), np.fmax(high.upper, middle.upper)
        return replace(middle, lower=float(ends[0]), upper=float(ends[1]))

    def _ratio(
        self,
        right: NDArray[np.bool_],
        counted: NDArray[np.bool_] | None,
        may_be_right: NDArray[np.bool_],
        may_be_wrong: NDArray[np.bool_],
    ) -> Estimate:
        """Return the share of the counted area that is right."""
        area = self.sizes * self._mean_weight
        above = self._totals(self.weight * right)
        below = area if counted is None else self._totals(self.weight * counted)
        if not below.sum() > 0:
            return UNKNOWN
        share = float(above.sum() / below.sum())
        residual = self.weight * right - share * self.weight * (
            True if counted is None else counted
        )
        error = float(np.sqrt(self._variance(residual)) / below.sum())
        lower, upper = _ratio_limits(
            self._part(above, area, may_be_right), self._part(below - above, area, may_be_wrong)
        )
        error = error if error > 1e-12 else 0.0  # less is rounding
        return Estimate(share, error, min(lower, share), max(upper, share))

    def _sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(self.stratum, values, minlength=self.sizes.size).astype(np.float64)

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        """Points of each stratum, 1 where there is none: what is divided by it is 0 there."""
        return np.maximum(self._sums(np.ones(self.stratum.size)), 1)

    @cached_property
    def _mean_weight(self) -> NDArray[np.float64]:
        """Mean area of the points of each stratum, 1 where there is none."""
        there = self._sums(np.ones(self.stratum.size)) > 0
        return np.where(there, self._sums(self.weight) / self._counts, 1.0)

    def _totals(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.sizes * self._sums(values) / self._counts)

    def _variance(self, residual: NDArray[np.float64]) -> float:
        """Return the variance of the estimated total of what a ratio leaves over."""
        n, size = self._counts, self.sizes
        mean = self._sums(residual) / n
        spread = self._sums((residual - mean[self.stratum]) ** 2) / np.maximum(n - 1, 1)
        return float((size**2 * (1 - n / size) * spread / n).sum())

    def _part(
        self,
        total: NDArray[np.float64],
        area: NDArray[np.float64],
        possible: NDArray[np.bool_],
    ) -> _Part:
        """Return the area of something in each stratum with Wilson's limits, if it is possible."""
        share = np.clip(total / area, 0.0, 1.0)
        z = norm.ppf(0.5 + self.confidence_level / 2)
        left = 1 - self._counts / self.sizes  # a stratum that is sampled whole leaves no doubt
        inverse = z**2 * left / self._counts
        middle = (share + inverse / 2) / (1 + inverse)
        half = np.sqrt(share * (1 - share) * inverse + inverse**2 / 4) / (1 + inverse)
        doubt = area * (self._sums(possible) > 0)
        below, above = share - middle + half, middle + half - share
        return _Part(total, share, doubt * np.maximum(below, 0), doubt * np.maximum(above, 0))


@dataclass(frozen=True, eq=False)
class _Part:
    """The area of something in each stratum, and how far it may lie below and above."""

    total: NDArray[np.float64]
    share: NDArray[np.float64]
    below: NDArray[np.float64]
    above: NDArray[np.float64]


def _ratio_limits(right: _Part, wrong: _Part) -> tuple[float, float]:
    """Return the limits of right / (right + wrong): where the limits of D(R) are 0.

    D(R) = sum_h (1 - R) right_h - R wrong_h is 0 at the ratio R. Its limits follow from those of
    its parts (Zou, Huang and Zhang 2009), with the correlation of two shares of one sample.
    """
    product = right.share * wrong.share
    room = (1 - right.share) * (1 - wrong.share)
    whole = right.share + wrong.share > 1 - 1e-12
    correlation = -np.sqrt(np.where(whole, 1.0, product / np.where(room > 0, room, 1.0)))

    def limit(ratio: float, side: int) -> float:
        first = (1 - ratio) * (right.below if side < 0 else right.above)
        second = ratio * (wrong.above if side < 0 else wrong.below)
        spread = np.sqrt((first**2 + second**2 - 2 * correlation * first * second).sum())
        middle = (1 - ratio) * right.total.sum() - ratio * wrong.total.sum()
        return float(middle + side * spread)

    lower, upper = 0.0, 1.0
    if limit(0.0, -1) > 0:
        lower = brentq(limit, 0.0, 1.0, args=(-1,))
    if limit(1.0, 1) < 0:
        upper = brentq(limit, 0.0, 1.0, args=(1,))
    return lower, upper


def _by_class(
    estimator: _Estimator,
    on_map: xr.DataArray,
    area: NDArray[np.float64],
    *,
    kept_only: bool,
) -> xr.Dataset:
    """Return the table of the classes of map and reference; areas of kept pixels only, if asked."""
    tree, classes = ClassTree.from_attrs(on_map.attrs), estimator.points.classes
    inside = on_map.values != NODATA
    columns: dict[str, list[tuple[float, ...]]] = {name: [] for name in QUANTITIES}
    for name, value in itertools.product(QUANTITIES, classes.values):
        estimate = estimator.estimate(_Quantity(name, value, tree, kept_only))
        if name == "producers_accuracy" and kept_only:
            estimate = UNKNOWN
        elif name == "area":
            estimate = estimate.scaled(float(area[inside].sum()))
        columns[name].append(astuple(estimate))
    labels = on_map.values[inside]
    counted = np.bincount(labels, area[inside], minlength=max(classes.values) + 1)
    table = xr.Dataset(
        {name: ((CATEGORY, STATISTIC), np.array(rows)) for name, rows in columns.items()}
        | {"mapped_area": (CATEGORY, counted[list(classes.values)])},
        coords={
            CATEGORY: list(classes.values),
            CLASS_NAME: (CATEGORY, list(classes.names)),
            STATISTIC: list(STATISTICS),
        },
    )
    table["mapped_area"].attrs.update(classes.to_attrs())
    return table


def _error_matrix(points: Sample) -> xr.DataArray:
    labelled = points.select(points.reference > 0)
    rejected = labelled.label == REJECTED
    # a rejected point may have any class here: its column is another one
    label = np.where(rejected, labelled.reference, labelled.label)
    return confusion_matrix(labelled.reference, label, rejected=rejected, classes=points.classes)
