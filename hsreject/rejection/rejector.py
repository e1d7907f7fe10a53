"""The contract of a rejector, what users may ask of one, its maps, and how several compare."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.measures.curve import counts_of, curve_of_points
from hsreject.measures.point import operating_point
from hsreject.progress import ProgressCallback, no_progress
from hsreject.schema import OPERATING_POINT, REJECTED, REJECTOR
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from hsreject.rejection.calibration import Calibration


class Rejector(ABC):
    """What decides which pixels of a map get no label.

    A rejector keeps the pixels of the largest confidence and rejects the others; equal confidences
    are kept or rejected together. Users say what they want: a rejected fraction, an accuracy of the
    kept pixels or a cost of a rejection. The last two need calibration pixels.

    Most rejectors threshold a confidence: they derive from
    :class:`hsreject.RankedRejector`, which needs one method. Only a rejector whose
    labels change with the rejected fraction, like :class:`hsreject.JointRejector`,
    implements this class itself: `reject`, and `sweep` if it knows its operating points. One line
    in ``hsreject/rejection/__init__.py`` makes a rejector available by name and enrols it in the
    property tests.

    Attributes
    ----------
    needs_context : bool
        Whether its labels are those of the context (`hidden_field`), not of the classifier alone.
    has_threshold : bool
        Whether it is one threshold on a confidence, which can be carried to another scene.
    answers_coarser : bool
        Whether it may answer with a group of classes, which its `groups` list.
    indifferent_options : tuple of str
        Its options that do not change a result, such as a number of workers.
    needs_p_value : bool
        Whether it looks at `p_value`, where there is one: how alike pixels are to the training
        pixels.

    See Also
    --------
    hsreject.RankedRejector : the base of those that rank.
    hsreject.JointRejector : one that does not.
    hsreject.load_plugins : makes yours known by name.

    Examples
    --------
    A complete rejector whose labels change with the rejected fraction: every kept pixel takes the
    label that most kept pixels of its row have.

    >>> import numpy as np
    >>> from hsreject import Rejector
    >>> from hsreject.errors import InputError
    >>> from hsreject.progress import no_progress
    >>> from hsreject import Goal
    >>> from hsreject.rejection.rejector import rejection_maps
    >>> import hsreject as hr
    >>> class MajorityRejector(Rejector):
    ...     '''Rejects by probability, then lets the kept pixels of each row vote.'''
    ...
    ...     def reject(self, maps, *, fraction=None, accuracy=None, rejection_cost=None,
    ...                calibration=None, progress=no_progress):
    ...         goal = hr.Goal.one_of({"fraction": fraction, "accuracy": accuracy,
    ...                                "rejection_cost": rejection_cost})
    ...         if goal.kind != "fraction":
    ...             raise InputError(f"A majority cannot be asked for {goal.kind}.")
    ...         pixelwise = hr.PixelwiseRejector().reject(maps, fraction=goal.value)
    ...         label = pixelwise.label.copy(deep=True)
    ...         for labels, kept in zip(label.values, ~pixelwise.rejected.values):
    ...             if kept.any():
    ...                 labels[kept] = np.bincount(labels[kept]).argmax()
    ...         return rejection_maps(label, pixelwise.confidence,
    ...                               threshold=pixelwise.threshold,
    ...                               attrs={goal.kind: goal.value})
    >>> probability = np.array([[[0.9, 0.8, 0.3, 0.4]], [[0.1, 0.2, 0.7, 0.6]]])
    >>> maps = MajorityRejector().reject(probability, fraction=0.25)
    >>> points = MajorityRejector().operating_points(probability, np.array([[1, 1, 1, 2]]))
    >>> maps.label_with_rejection.values, points.rejected_fraction.values[[0, -1]]
    (array([[1, 1, 1, 0]], dtype=uint8), array([0., 1.]))
    """

    has_threshold: ClassVar[bool] = False
    answers_coarser: ClassVar[bool] = False
    indifferent_options: ClassVar[tuple[str, ...]] = ()
    context: SegSALSA | None = None

    @property
    def needs_context(self) -> bool:
        """Whether it has a `context`."""
        return self.context is not None

    @property
    def needs_p_value(self) -> bool:
        """Whether it has an option `novelty` that is on."""
        return bool(getattr(self, "novelty", False))

    @abstractmethod
    def reject(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        accuracy: float | None = None,
        rejection_cost: float | None = None,
        calibration: Calibration | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the maps of one rejection.

        Parameters
        ----------
        maps : Dataset, DataArray or array
            Class probabilities (category, y, x), or a Dataset with `probability` and, optionally,
            `hidden_field` (category, y, x): the solution of the context, where it is known already,
            taken as it is; `p_value` (y, x) of :class:`hsreject.Novelty`, which tells a rejector
            with novelty what is unknown; and `image` (band, y, x), which a context whose priors
            look at the image needs.
        fraction : float in [0, 1], optional
            Wanted share of rejected pixels; the nearest share that can be reached is taken.
        accuracy : float in [0, 1], optional
            Wanted share of right labels among the kept pixels, as measured on the calibration
            pixels; the smallest rejected fraction that reaches it is taken.
        rejection_cost : float in [0, 1], optional
            Cost of a rejected pixel, a misclassified one being 1; the operating point that is
            cheapest on the calibration pixels is taken.
        calibration : Calibration, optional
            Pixels of known class that were not used for training.
        progress : callable
            Called with (stage, done, total) during long work.

        Returns
        -------
        Dataset
            `label`, `confidence`, `rejected` and `label_with_rejection` (y, x). Its attributes say
            what was reached: `rejected_fraction` of the `n_pixels` with data, `threshold` (the
            smallest confidence kept) and, for a wanted fraction, `reachable_fractions`: the nearest
            ones below and above it that are known. With a `p_value` there is `unknown` (y, x), all
            of it rejected, and the attribute `unknown_fraction`.
        """

    def operating_points(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        *,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the operating points of this rejector on reference pixels.

        Parameters
        ----------
        maps : Dataset, DataArray or array
            As for :meth:`reject`.
        reference : DataArray or array of int (y, x)
            Reference labels of the pixels to evaluate on, 0 elsewhere.
        progress : callable
            Called with (stage, done, total) during long work.

        Returns
        -------
        Dataset over `operating_point`, rejected fraction ascending
            The variables of :func:`hsreject.rejection_curve`, and `overall_accuracy`: the accuracy
            of the same labels with nothing rejected.
        """
        swept = self.sweep(maps, reference, progress=progress)
        columns = [
            name for name, column in swept.items() if set(column.dims).isdisjoint(schema.MAP_DIMS)
        ]
        return swept[columns]

    def sweep(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the operating points together with their maps: all from one pass.

        Parameters
        ----------
        maps, reference, progress
            As for :meth:`operating_points`.
        fraction : float in [0, 1], optional
            A share of rejected pixels that one of the points must come near, as of :meth:`reject`.

        Returns
        -------
        Dataset
            The variables of :meth:`operating_points`, with `label` and `confidence`. Where one
            threshold makes all points these are (y, x); else they are (operating_point, y, x), and
            so is `rejected`.
        """
        fractions = np.union1d(_SWEPT, [] if fraction is None else [fraction])
        rows = []
        for share in fractions:
            plane = self.reject(maps, fraction=share, progress=progress)
            used, correct = schema.reference_pixels(plane["label"], reference)
            rows.append((operating_point(correct, plane["rejected"].values[used]), plane))
        rows.sort(key=lambda row: (row[0].rejected_fraction, row[0].accurate_kept))
        points, planes = zip(*rows, strict=True)
        stack = xr.concat([plane.drop_attrs(deep=False) for plane in planes], dim=OPERATING_POINT)
        curve = with_overall_accuracy(curve_of_points(points))
        return curve.assign(stack[["label", "confidence", "rejected"]])


_SWEPT = np.linspace(0, 1, 21)
"""Shares of the scene that a rejector is asked for where it does not say what it offers."""

FAILURE_PROBABILITY = "failure_probability"
UNKNOWN = "unknown"
"""Map of the pixels that are like no training pixel, all of them rejected."""


def default_context() -> SegSALSA:
    """Return the context of rejectors that are given none: vector TV of weight 1."""
    return SegSALSA(VectorTV(weight=1.0))


def check_context(context: object) -> None:
    """Raise unless it is a context; a prior alone is a frequent mistake."""
    if not isinstance(context, SegSALSA):
        raise InputError(
            f"context must be a SegSALSA (got {type(context).__name__}). "
            "Put a prior into one, for example SegSALSA(VectorTV(weight=1))."
        )


def check_novelty(novelty: object) -> None:
    """Raise unless it says whether novelty counts."""
    if not isinstance(novelty, bool):
        raise InputError(f"novelty must be true or false (got {novelty!r}).")


RANK = "confidence (a rank)"
LABEL_PROBABILITY = "probability of the label"
"""What a confidence is, as `long_name`: most only rank pixels."""


def rejection_maps(
    label: xr.DataArray,
    confidence: xr.DataArray,
    *,
    threshold: float,
    unknown: xr.DataArray | None = None,
    attrs: Mapping[str, Any],
) -> xr.Dataset:
    """Return what `reject` returns, given label and confidence (y, x) and the smallest one kept.

    Pixels that are `unknown` (y, x) are rejected as well. `attrs` say more of the rejection as a
    whole than `threshold`, `rejected_fraction` (of the pixels with data), `unknown_fraction` and
    `n_pixels`, which are added.
    """
    has_data = label != schema.nodata_label(label.dtype)
    rejected = (confidence < threshold) & has_data
    n_pixels = int(has_data.sum())
    shares, layers = {}, {}
    if unknown is not None:
        rejected |= unknown
        layers[UNKNOWN] = unknown
        shares["unknown_fraction"] = int(unknown.sum()) / max(n_pixels, 1)
    with_rejection = label.where(~rejected, label.dtype.type(REJECTED))
    return xr.Dataset(
        {
            "label": label,
            "confidence": confidence.assign_attrs({"long_name": RANK} | confidence.attrs),
            "rejected": rejected,
            "label_with_rejection": with_rejection.assign_attrs(label.attrs),
            **layers,
        },
        attrs={
            **attrs,
            "threshold": float(threshold),
            "rejected_fraction": int(rejected.sum()) / max(n_pixels, 1),
            "n_pixels": n_pixels,
            **shares,
        },
    )


KEPT_FLAG, REJECTED_FLAG, UNKNOWN_FLAG, GROUP_FLAG = 1, 2, 3, 4
FLAGS = ClassTable.from_names(
    ("kept", "rejected", "unknown", "group"), colors=("#4d9221", "#bdbdbd", "#762a83", "#b8e186")
)
"""Why a pixel has a label or none: kept, rejected for its confidence, like no training pixel, or
answered with a group of classes."""


def flag_map(maps: xr.Dataset) -> xr.DataArray:
    """Return the codes of `FLAGS` (y, x) of the maps of a rejection, 255 where there is no data."""
    label, answer, rejected = maps["label"], maps["label_with_rejection"], maps["rejected"]
    flag = rejected.astype(np.uint8) + np.uint8(KEPT_FLAG)
    if UNKNOWN in maps:
        flag = flag.where(~maps[UNKNOWN], np.uint8(UNKNOWN_FLAG))
    table = FLAGS.subset((KEPT_FLAG, REJECTED_FLAG, UNKNOWN_FLAG))
    if GROUPS_ATTRIBUTE in answer.attrs:
        flag, table = flag.where(rejected | (answer == label), np.uint8(GROUP_FLAG)), FLAGS
    missing = np.uint8(schema.nodata_label(np.uint8))
    flag = flag.where(label != schema.nodata_label(label.dtype), missing).rename("flag")
    attrs = {"long_name": "why a pixel has a label or none", "_FillValue": int(missing)}
    return schema.attach_classes(flag.assign_attrs(attrs), table)


def with_overall_accuracy(curve: xr.Dataset) -> xr.Dataset:
    """Return a curve with a column `overall_accuracy`, which may differ from point to point."""
    accuracy = counts_of(curve).overall_accuracy
    attrs = {"long_name": "accuracy with nothing rejected"}
    return curve.assign(overall_accuracy=(OPERATING_POINT, accuracy, attrs))


def with_failure_probability(points: xr.Dataset, values: ArrayLike) -> xr.Dataset:
    """Return operating points with a column `failure_probability`, one value or one for each."""
    column = np.full(points.sizes[OPERATING_POINT], values)
    attrs = {"long_name": "probability of classifier failure"}
    return points.assign({FAILURE_PROBABILITY: (OPERATING_POINT, column, attrs)})


def compare_rejectors(
    rejectors: Mapping[str, Rejector],
    maps: xr.Dataset | xr.DataArray | NDArray[Any],
    reference: xr.DataArray | NDArray[Any],
    *,
    progress: ProgressCallback = no_progress,
) -> xr.Dataset:
    """Return the operating points of several rejectors on the same reference pixels.

    With sequential and joint rejection this is what the paper's figures 7 and 8 show: the curves
    side by side, and for each rejector its relative optimality and break-even costs.

    Parameters
    ----------
    rejectors : mapping of str to Rejector
        By the names that they have in the table.
    maps : Dataset, DataArray or array
        As for :meth:`Rejector.reject`. With `hidden_field` in it the context is solved only where a
        rejector needs another solve.
    reference : DataArray or array of int (y, x)
        Reference labels of the pixels to evaluate on, 0 elsewhere.
    progress : callable
        Called with (stage, done, total) during long work.

    Returns
    -------
    Dataset over `operating_point`
        One rejector after the other, each by ascending rejected fraction, with the coordinate
        `rejector`. The variables are those of :func:`hsreject.rejection_curve`, `overall_accuracy`
        (which in joint rejection differs from point to point) and `failure_probability` (NaN for
        rejectors that have none).

    See Also
    --------
    hsreject.compare : two operating points.
    hsreject.plot.RejectionCurveDisplay : draws them.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import compare_rejectors
    >>> import hsreject as hr
    >>> probability = np.array([[[0.9, 0.7, 0.3, 0.2]], [[0.05, 0.2, 0.6, 0.5]],
    ...                         [[0.05, 0.1, 0.1, 0.3]]])
    >>> rules = {name: hr.PixelwiseRejector(name) for name in ("maximum", "margin")}
    >>> points = compare_rejectors(rules, probability, np.array([[1, 2, 2, 2]]))
    >>> margin = points.isel(operating_point=points.rejector.values == "margin")
    >>> margin.rejected_fraction.values
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> hr.relative_optimality_pairs(margin).shape
    (5, 5)
    """
    named = rejectors.values() if isinstance(rejectors, Mapping) else ()
    if not named or not all(isinstance(rejector, Rejector) for rejector in named):
        raise InputError(
            "rejectors must map names to rejectors, at least one, such as {'pixelwise': "
            f"PixelwiseRejector()}} (got {rejectors!r:.80}). Call the classes, with brackets."
        )
    tables = []
    for name, rejector in rejectors.items():
        points = rejector.operating_points(maps, reference, progress=progress)
        if FAILURE_PROBABILITY not in points:
            points = with_failure_probability(points, np.nan)
        names = np.full(points.sizes[OPERATING_POINT], name)
        tables.append(points.assign_coords({REJECTOR: (OPERATING_POINT, names)}))
    return xr.concat(tables, dim=OPERATING_POINT, combine_attrs="drop_conflicts")
