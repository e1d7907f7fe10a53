"""The contract of a rejector: maps for what the user wants, operating points for an evaluator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.rejection.calibration import Calibration


class Rejector(ABC):
    """What decides which pixels of a map get no label.

    A rejector keeps the pixels of the largest confidence and rejects the others; equal confidences
    share one fate. It is addressed by what the user wants: a rejected fraction, an accuracy of the
    kept pixels or a cost of a rejection. The last two need calibration pixels.

    Most rejectors threshold a confidence: they derive from
    :class:`~hsreject.rejection.RankedRejector`, whose docstring holds a complete one. Only a
    rejector whose labels change with the rejected fraction, like
    :class:`~hsreject.rejection.JointRejector`, implements this class itself. One line in
    ``hsreject/rejection/__init__.py`` makes a rejector available by name and enrols it in the
    property tests.

    Attributes
    ----------
    needs_context : bool
        Whether it has a `context`, whose solution it looks at.
    has_threshold : bool
        Whether its operating points are thresholds of one confidence, which hold on other scenes.
    indifferent_options : tuple of str
        Options that change nothing about its results, such as a number of workers.
    """

    needs_context: ClassVar[bool] = False
    has_threshold: ClassVar[bool] = False
    indifferent_options: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def reject(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        accuracy: float | None = None,
        rejection_cost: float | None = None,
        calibration: Calibration | None = None,
        points: xr.Dataset | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the maps of one rejection.

        Parameters
        ----------
        maps : Dataset, DataArray or array
            Class probabilities (category, y, x), or a Dataset with `probability` and, optionally,
            `hidden_field` (category, y, x): the solution of the context, where it is known already,
            taken as it is; `novelty_p_value` (y, x) of :class:`hsreject.Novelty`; and `image`
            (band, y, x), which a context whose priors look at the image needs.
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
        points : Dataset, optional
            What :meth:`operating_points` found on the same maps. Where a fraction has to be
            searched for, the search starts from there; the others need no such help.
        progress : callable
            Called with (stage, done, total) during long work.

        Returns
        -------
        Dataset
            `label`, `confidence`, `rejected` and `label_with_rejection` (y, x). Its attributes say
            what was reached: `rejected_fraction` of the `n_pixels` with data, `threshold` (the
            smallest confidence kept) and, for a wanted fraction, `reachable_fractions`: the nearest
            ones below and above it that are known.
        """

    @abstractmethod
    def operating_points(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        *,
        calibration: Calibration | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the operating points of this rejector on reference pixels.

        Parameters
        ----------
        maps : Dataset, DataArray or array
            As for :meth:`reject`.
        reference : DataArray or array of int (y, x)
            Reference labels of the pixels to evaluate on, 0 elsewhere.
        calibration : Calibration, optional
            For rejectors whose thresholds are learned from pixels of known class.
        progress : callable
            Called with (stage, done, total) during long work.

        Returns
        -------
        Dataset over `operating_point`, rejected fraction ascending
            The variables of :func:`hsreject.rejection_curve`, and `overall_accuracy`: the accuracy
            of the same labels with nothing rejected.
        """

    def points_and_maps(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        *,
        fraction: float,
        progress: ProgressCallback = no_progress,
    ) -> tuple[xr.Dataset, xr.Dataset]:
        """Return the operating points on reference pixels, and the maps at about `fraction`.

        Parameters
        ----------
        maps, fraction, progress
            As for :meth:`reject`.
        reference : DataArray or array of int (y, x)
            As for :meth:`operating_points`.
        """
        points = self.operating_points(maps, reference, progress=progress)
        return points, self.reject(maps, fraction=fraction, points=points, progress=progress)
