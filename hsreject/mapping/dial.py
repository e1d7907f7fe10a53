"""The dial of a map: what a rejection is to reach, what backs it, and the resulting threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.mapping.map_summary import Rejection
from hsreject.measures.choosing import ACCURACY, FRACTION, THRESHOLD, Goal
from hsreject.promise.certificate import Certificate
from hsreject.promise.frame import labels_of, map_id
from hsreject.promise.sample import given_sample
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.schema import BAND, LEVEL_CONFIDENCE, MAP_DIMS, REJECTION_COST, X, Y

if TYPE_CHECKING:
    from hsreject.mapping.foreign import Similarity
    from hsreject.mapping.map_model import MapModel
    from hsreject.progress import ProgressCallback
    from hsreject.rejection import RankedRejector

CERTIFICATE = "certificate"

ASSUMPTION = (
    "Assumed, not measured: that this scene is like the training scene. Nobody has tested the map "
    "here, and its accuracy may be far lower than on the training scene."
)


@dataclass(frozen=True, eq=False)
class Dial:
    """What a rejection is to reach, and what backs it on an untested scene."""

    goal: Goal
    certificate: Certificate | None = None
    sample: Any = None  # of the scene, with its classes
    assume_alike: bool = False

    @classmethod
    def of(
        cls, wishes: dict[str, Any], certificate: Any, sample: Any, *, assume_alike: bool
    ) -> Dial:
        """Return the dial of the only goal that is not None, or say that there is no single one."""
        if certificate is not None and all(wish is None for wish in wishes.values()):
            if not isinstance(certificate, Certificate):
                certificate = Certificate.read(certificate)
            return cls(Goal(max_error=certificate.max_error), certificate)
        goal = Goal.one_of({**wishes, CERTIFICATE: certificate})
        if sample is not None and not goal.needs_reference:
            raise InputError(
                f"A sample tells which threshold an accuracy or a cost asks for, not a "
                f"{goal.kind}. Leave the sample out."
            )
        return cls(goal, None, sample, assume_alike)

    def on_scene(
        self, cube: xr.DataArray, model: MapModel, similarity: Similarity | None, *, flat: bool
    ) -> Dial:
        """Return the dial with its sample opened, or say before the work that nothing backs it.

        A certificate may still turn out to be of another map. `assume_alike` stays where the
        training scene gives the threshold, and this is another one.
        """
        if self.certificate is not None:
            self.certificate.applicable_threshold  # noqa: B018 (raises if there is none)
            self.certificate.check_map(cube.shape[1:])
            if flat and model.tree is not None:
                raise InputError(
                    "A certificate is about the map with its groups, and a flat map keeps fewer "
                    "pixels. Leave out --flat (in Python flat=True), or certify the flat map by "
                    "itself."
                )
            return self
        if self.sample is not None:
            grid = xr.ones_like(cube.isel({BAND: 0}, drop=True), dtype=np.uint16)
            on_map = labels_of(grid.drop_attrs(deep=False).assign_attrs(model.classes.to_attrs()))
            points = given_sample(self.sample, on_map, assume_random=False)
            if np.ptp(points.inclusion_probability) > 0:
                raise InputError(
                    "The sample was drawn from strata, more densely in some than in others: it "
                    "does not tell which threshold an accuracy asks for. Give a simple random "
                    "sample, or certify the map ('hsreject certify')."
                )
            return replace(self, sample=points)
        if not self.goal.needs_reference:
            return self
        model.threshold_for(self.goal)  # raises if it has none
        if similarity is not None and similarity.is_training_scene:
            return replace(self, assume_alike=False)
        if not self.assume_alike:
            raise InputError(
                f"Nothing tells which threshold reaches {self.goal.kind}={self.goal.value:g} on "
                f"this scene: the model was tested on its training scene ('{model.title}') alone. "
                "Give labelled pixels of this scene (--sample, drawn with 'hsreject sample') or a "
                "certificate, ask for --fraction, or say --assume-alike (in Python "
                "assume_alike=True) to take the training scene's threshold as an assumption."
            )
        return self

    def rejection(
        self, ranking: xr.Dataset, model: MapModel, *, lowest: float, progress: ProgressCallback
    ) -> Rejection:
        """Return the threshold of a map with these labels and confidences, and its source.

        Confidences below `lowest` are those of unknown pixels, which every threshold rejects.
        """
        kind, value = self.goal.kind, self.goal.value
        if self.certificate is not None:
            confidence = ranking.get(LEVEL_CONFIDENCE, ranking["confidence"])
            label = ranking["label"]
            self.certificate.check_map(label.shape, map_id(label, confidence))
            source = f"certified. {self.certificate.statement}"
            return Rejection(CERTIFICATE, value, self.certificate.applicable_threshold, source)
        if kind == THRESHOLD:
            return Rejection(kind, value, max(value, lowest), "given")
        if kind == FRACTION:
            confidence = ranking["confidence"].where(ranking["confidence"] >= lowest)
            threshold = threshold_for_fraction(confidence, value, progress=progress).value
            source = "the confidence at that rank among the pixels of this scene"
            source += " that are not unknown" if np.isfinite(lowest) else ""
            return Rejection(kind, value, threshold, source)
        source = {
            ACCURACY: f"the smallest rejection that kept an accuracy of {value:g}",
            REJECTION_COST: f"the cheapest if a rejected pixel costs {value:g} of a wrong one",
        }[kind]
        if self.sample is not None:
            threshold, n_points = self._threshold_of_sample(ranking, model.rejector)
            source += f", on {n_points} sampled pixels of this scene"
            return Rejection(kind, value, max(threshold, lowest), source)
        threshold, n_points = model.threshold_for(self.goal), model.n_calibration_pixels
        source += f", on {n_points} test pixels of the training scene ('{model.title}')"
        assumption = ASSUMPTION if self.assume_alike else ""
        return Rejection(kind, value, max(threshold, lowest), source, assumption)

    def _threshold_of_sample(
        self, ranking: xr.Dataset, rejector: RankedRejector
    ) -> tuple[float, int]:
        """Return what the goal asks for on a simple random sample of the scene, and its size."""
        points = self.sample.on_map(labels_of(ranking["label"]))
        points = points.select(points.labelled & (points.label > 0))
        if not len(points):
            raise InputError("No labelled point of the sample lies on a pixel with data.")
        rows, columns = (xr.DataArray(place, dims=X) for place in (points.row, points.column))
        looked_at = ranking.drop_vars(MAP_DIMS, errors="ignore").isel({Y: rows, X: columns})
        as_map = looked_at.expand_dims(Y).transpose(..., *MAP_DIMS).compute()  # of one row
        curve = rejector.points(as_map, points.reference[None])
        index = rejector.chosen_point(curve, self.goal)
        return float(curve["threshold"].values[index]), len(points)
