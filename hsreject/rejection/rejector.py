"""The contract of a rejector, what users may ask of one, and how several compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.measures.choosing import ACCURACY, FRACTION, THRESHOLD, Goal
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.decision import Calibration, check_reached, decide, needed_calibration
from hsreject.rejection.ranking import Ranking, Stack
from hsreject.schema import OPERATING_POINT, REJECTION_COST, REJECTOR

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Rejector:
    """What decides which pixels of a map get no label.

    A rejector keeps the pixels of the largest confidence and rejects the others; equal confidences
    are kept or rejected together. Users say what they want: a rejected fraction, an accuracy of the
    kept pixels or a cost of a rejection. The last two need calibration pixels.

    A rejector defines how it ranks, and everything else follows. Most threshold a confidence: they
    derive from :class:`hsreject.RankedRejector`, which needs one method. Only a rejector whose
    labels change with the rejected fraction, like :class:`hsreject.JointRejector`, defines `rank`
    itself: its maps are a stack. One line in ``hsreject/rejection/__init__.py`` makes a rejector
    available by name and enrols it in the property tests.

    Attributes
    ----------
    needs_context : bool
        Whether its labels are those of the context (`hidden_field`), not of the classifier alone.
    has_threshold : bool
        Whether it is one threshold on a confidence, which can be carried to another scene.
    answers_coarser : bool
        Whether it may answer with a group of classes, which its `groups` list.
    coarse_cost : float
        What a right answer costs if it is a group, as a share of a rejection.
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
    >>> from hsreject.progress import no_progress
    >>> from hsreject.rejection.ranking import Stack
    >>> import hsreject as hr
    >>> class MajorityRejector(Rejector):
    ...     '''Rejects by probability, then lets the kept pixels of each row vote.'''
    ...
    ...     def rank(self, maps, *, fraction=None, reference=None, progress=no_progress):
    ...         ranking = hr.PixelwiseRejector().rank(maps)
    ...         planes = []
    ...         for share in (0, 0.25, 0.5, 0.75, 1):
    ...             plane = ranking.at(hr.decide(ranking, hr.Goal(fraction=share)).threshold)
    ...             label = plane.label.copy(deep=True)
    ...             for labels, kept in zip(label.values, ~plane.rejected.values):
    ...                 if kept.any():
    ...                     labels[kept] = np.bincount(labels[kept]).argmax()
    ...             planes.append(plane.assign(label=label))
    ...         return Stack.of_maps(planes)
    >>> probability = np.array([[[0.9, 0.8, 0.3, 0.4]], [[0.1, 0.2, 0.7, 0.6]]])
    >>> maps = MajorityRejector().reject(probability, fraction=0.25)
    >>> points = MajorityRejector().operating_points(probability, np.array([[1, 1, 1, 2]]))
    >>> maps.label_with_rejection.values, points.rejected_fraction.values[[0, -1]]
    (array([[1, 1, 1, 0]], dtype=uint8), array([0., 1.]))
    """

    has_threshold: ClassVar[bool] = False
    answers_coarser: ClassVar[bool] = False
    coarse_cost: float = 0.0
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

    def rank(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        reference: xr.DataArray | NDArray[Any] | None = None,
        progress: ProgressCallback = no_progress,
    ) -> Ranking:
        """Return the ranking that every rejection follows from, or a stack of maps.

        Parameters
        ----------
        maps, progress
            As for :meth:`reject`.
        fraction : float in [0, 1], optional
            Of a stack: a share of rejected pixels that one of the maps must come near.
        reference : DataArray or array of int (y, x), optional
            Of a stack: pixels on which its maps should differ. Without one, and with a fraction,
            the map of that fraction is all that is asked for.
        """
        if type(self).reject is Rejector.reject:
            raise NotImplementedError(f"{type(self).__name__} must define rank.")
        # of one that only rejects
        every = np.linspace(0, 1, 21 if reference is not None or fraction is None else 0)
        every = np.union1d(every, [] if fraction is None else [fraction])
        return Stack.of_maps([self.reject(maps, fraction=one, progress=progress) for one in every])

    def reject(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        threshold: float | None = None,
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
            Wanted share of rejected pixels, of those that are not unknown; the nearest share that
            can be reached is taken.
        threshold : float, optional
            The smallest confidence to keep, of a rejector that has a threshold.
        accuracy : float in [0, 1], optional
            Wanted share of right labels among the kept pixels, as measured on the calibration
            pixels, of which 30 are kept at least, or all there are; the smallest rejected fraction
            that reaches it is taken.
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
            `label`, `confidence`, `rejected`, `label_with_rejection` and `flag` (y, x). Its
            attributes say what was reached: `rejected_fraction` of the `n_pixels` with data,
            `threshold` (the smallest confidence kept) and, for a wanted fraction,
            `reachable_fractions`: the nearest ones below and above it that are known. With a
            `p_value` there is `unknown` (y, x), all of it rejected, and the attribute
            `unknown_fraction`.
        """
        requested = {FRACTION: fraction, ACCURACY: accuracy, REJECTION_COST: rejection_cost}
        if self.has_threshold:
            requested = {FRACTION: fraction, THRESHOLD: threshold, **requested}
        elif threshold is not None:
            raise InputError(
                f"{type(self).__name__} has no threshold. Ask for one of {', '.join(requested)}."
            )
        goal = Goal.one_of(requested)
        # before the solve: a forgotten calibration should not take a solve to notice
        labels = needed_calibration(calibration, goal.kind).labels if goal.needs_reference else None
        ranking = self.rank(maps, fraction=fraction, reference=labels, progress=progress)
        decision = decide(ranking, goal, labels, coarse_cost=self.coarse_cost)
        attrs: dict[str, Any] = {"rejector": repr(self), goal.kind: goal.value}
        if decision.reachable is not None:
            attrs["reachable_fractions"] = list(decision.reachable)
        check_reached(decision, goal)
        return ranking.at(decision.threshold, attrs=attrs)

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
        sweep = self.sweep(maps, reference, progress=progress)
        columns = [
            name for name, column in sweep.items() if set(column.dims).isdisjoint(schema.MAP_DIMS)
        ]
        return sweep[columns]

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
        ranking = self.rank(maps, fraction=fraction, reference=reference, progress=progress)
        points, ranked = ranking.points(reference), ranking.to_dataset()
        if isinstance(ranking, Stack):  # its maps in the order of the points
            places = points["threshold"].values.astype(int)
            points["threshold"].values[:] = np.nan
            ranked = ranked.isel({OPERATING_POINT: places})
            if all(FAILURE_PROBABILITY in one for one in ranking.facts):
                scale = [ranking.facts[place][FAILURE_PROBABILITY] for place in places]
                points = with_failure_probability(points, scale)
        return points.assign(ranked)


FAILURE_PROBABILITY = "failure_probability"


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
    """Evaluate several rejectors at all operating points on the same reference pixels.

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
