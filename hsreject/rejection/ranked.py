"""Rejectors that rank the pixels by a confidence and reject the lowest ones."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.confidence import samples_of_maps, without_confidence
from hsreject.confidence.field import OF_THE_SCENE, without_probability
from hsreject.errors import InputError
from hsreject.measures.curve import rejection_curve
from hsreject.measures.curve_table import curve_of_samples
from hsreject.measures.inputs import sortable_values
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.base import Rejector
from hsreject.rejection.choice import calibrated_index, needed_calibration
from hsreject.rejection.class_balance import Thresholds, equal_accuracy, equal_rejection
from hsreject.rejection.evidence import Evidence
from hsreject.rejection.goal import FRACTION, Goal
from hsreject.rejection.maps import rejection_maps
from hsreject.rejection.reference import labels_on_grid, samples_with_data
from hsreject.rejection.threshold import threshold_for_fraction
from hsreject.schema import CATEGORY, MAP_DIMS, check_dims, nodata_label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.context.scene_image import SceneImage
    from hsreject.rejection.calibration import Calibration


class RankedRejector(Rejector):
    """A rejector with one label map and one confidence: every operating point by one sort.

    Subclasses implement :meth:`label_and_confidence`. Pixels with a confidence below a threshold
    are rejected; the threshold follows from what the user wants, or is given.

    Attributes
    ----------
    thresholds : {"common", "equal_rejection", "equal_accuracy"}
        One threshold for all pixels, or one a class: such that every class loses the same share of
        its pixels, or such that every class is kept as accurately on the calibration pixels. In the
        last two cases the returned `confidence` is the one on the scale common to the classes.

    Examples
    --------
    A complete rejector, which trusts pixels whose neighbours look alike:

    >>> from hsreject.confidence import label_map
    >>> class NeighbourRejector(RankedRejector):
    ...     '''Rejects pixels whose probability differs from that of their left neighbour.'''
    ...
    ...     def label_and_confidence(self, evidence, progress):
    ...         difference = evidence.probability - evidence.probability.shift(x=1)
    ...         return label_map(evidence.probability), -abs(difference).max("category").fillna(0)
    >>> probability = np.array([[[0.9, 0.9, 0.2, 0.1]], [[0.1, 0.1, 0.8, 0.9]]])
    >>> NeighbourRejector().reject(probability, fraction=0.25).label_with_rejection.values
    array([[1, 1, 0, 2]], dtype=uint8)
    """

    thresholds: Thresholds = "common"
    has_threshold = True

    @property
    def reach(self) -> int | None:
        """How many pixels around a block decide its labels and confidences; None: the whole scene.

        A scene can be mapped in blocks only by a rejector that knows. By default nothing is
        promised.
        """
        return None

    def on_scene(self, scene: SceneImage) -> RankedRejector:
        """Return this rejector for the blocks of one scene; itself, unless it looks at the image.

        What it takes from the image as a whole is fixed, and every block is solved by one thread.
        """
        return self

    @abstractmethod
    def label_and_confidence(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the label and the confidence of every pixel, both (y, x).

        Without data the label is ``schema.nodata_label`` and the confidence NaN.
        """

    def reference_samples(
        self, reference: NDArray[np.integer], evidence: Evidence, progress: ProgressCallback
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
        """Return which pixels with a reference are right, and their confidences, both (sample).

        All that operating points with one threshold need, in row order; without data the confidence
        is NaN. To be overridden where :meth:`label_and_confidence` of the whole map can be spared.

        Parameters
        ----------
        reference : array of int (y, x)
            0 where there is no reference.
        """
        label, confidence = self._maps(evidence, progress)
        return samples_of_maps(reference, label.values, confidence)

    def _maps(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, NDArray[np.floating]]:
        """Return the label and the values of the confidence, both (y, x) and in memory."""
        label, confidence = self.label_and_confidence(evidence, progress)
        confidence = check_dims(confidence, MAP_DIMS, name="confidence")
        return check_dims(label, MAP_DIMS, name="label").load(), np.asarray(confidence.values)

    def rank(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        calibration: Calibration | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return `label` and `confidence` (y, x): all that every rejection follows from."""
        label, confidence = self._ranked(Evidence.of(maps), calibration, progress)
        return xr.Dataset(
            {"label": label.variable, "confidence": (label.dims, confidence)}, coords=label.coords
        )

    def _ranked(
        self,
        evidence: Evidence,
        calibration: Calibration | None,
        progress: ProgressCallback,
    ) -> tuple[xr.DataArray, NDArray[np.floating]]:
        """Return the label and the confidence on the scale of the thresholds, both (y, x)."""
        label, found = self._maps(evidence, progress)
        has_data = label.values != nodata_label(label.dtype)
        if not has_data.all():
            found = np.where(has_data, found, found.dtype.type(np.nan))
        _check_ranked(label.values, found, evidence)
        if self.thresholds == "common":
            return label, found
        labels, sure = label.values[has_data], found[has_data]
        balanced = np.full(found.shape, np.nan)
        if self.thresholds == "equal_rejection":
            balanced[has_data] = equal_rejection(labels, sure)
        else:
            calibration = needed_calibration(calibration, "thresholds='equal_accuracy'")
            used, correct = calibration.pixels(label)
            balanced[has_data] = equal_accuracy(labels, sure, used=used[has_data], correct=correct)
        return label, balanced

    def reject(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        threshold: float | None = None,
        accuracy: float | None = None,
        rejection_cost: float | None = None,
        calibration: Calibration | None = None,
        points: xr.Dataset | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the maps of one rejection (see :meth:`hsreject.rejection.Rejector.reject`).

        `threshold` rejects the pixels with a confidence below it.
        """
        goal = Goal.one_of(
            {
                "fraction": fraction,
                "threshold": threshold,
                "accuracy": accuracy,
                "rejection_cost": rejection_cost,
            }
        )
        if goal.needs_calibration:
            needed_calibration(calibration, goal.name)
        ranking = self.rank(maps, calibration=calibration, progress=progress)
        return reject_ranked(ranking, goal, calibration=calibration, rejector=repr(self))

    def operating_points(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        *,
        calibration: Calibration | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return every operating point that a threshold can reach on reference pixels."""
        evidence = Evidence.of(maps)
        labels = labels_on_grid(evidence.probability, reference)
        if self.thresholds == "common":
            samples = self.reference_samples(labels, evidence, progress)
        else:  # thresholds a class depend on all pixels
            label, confidence = self._ranked(evidence, calibration, progress)
            samples = samples_of_maps(labels, label.values, confidence)
        try:
            correct, sure = samples_with_data(*samples)
        except InputError:
            evidence.check_same_categories()
            raise
        return curve_of_samples(correct, sortable_values(sure), with_overall_accuracy=True)


def _check_ranked(
    label: NDArray[np.unsignedinteger], confidence: NDArray[np.floating], evidence: Evidence
) -> None:
    """Raise where a pixel has a label and no confidence, or an infinite one."""
    if np.isinf(confidence).any():
        raise InputError(
            f"{OF_THE_SCENE} have an infinite confidence ({int(np.isinf(confidence).sum())} of "
            "them), above which there is no threshold. Choose another confidence, or let it end at "
            "a largest number."
        )
    without = without_confidence(label, confidence)
    if without.any() or (label == nodata_label(label.dtype)).all():
        evidence.check_same_categories()
    if not without.any():
        return
    n_pixels = int(without.sum())
    if evidence.probability.isnull().any(CATEGORY).values[without].all():
        raise without_probability(n_pixels, pixels=OF_THE_SCENE)
    raise InputError(
        f"{OF_THE_SCENE} have a label but no confidence, which is NaN ({n_pixels} of them). "
        "A rejector needs a number wherever there is a label: choose another confidence, or give "
        "the pixels the label of no data."
    )


def reject_ranked(
    ranking: xr.Dataset, goal: Goal, *, calibration: Calibration | None, rejector: str
) -> xr.Dataset:
    """Return the maps of the rejection that `goal` asks for, given label and confidence."""
    attrs: dict[str, Any] = {"rejector": rejector, goal.name: goal.value}
    confidence = ranking["confidence"]
    sure = confidence.values[~np.isnan(confidence.values)]
    if sure.size == 0:
        raise InputError("No pixel of the scene has data, so there is nothing to reject or keep.")
    threshold = goal.value
    if goal.name == FRACTION:
        found = threshold_for_fraction(sure, goal.value)
        threshold = found.value
        attrs["reachable_fractions"] = [found.reachable_below, found.reachable_above]
    elif goal.needs_calibration:
        used, correct = needed_calibration(calibration, goal.name).pixels(ranking["label"])
        points = rejection_curve(correct, confidence.values[used])
        threshold = points["threshold"].values[calibrated_index(points, goal)].item()
    return rejection_maps(ranking["label"], confidence, threshold=threshold, attrs=attrs)
