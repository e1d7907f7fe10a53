"""The dial of a map: what a rejection is to reach, what backs it, and the resulting threshold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.mapping.map_summary import Rejection
from hsreject.measures.choosing import ACCURACY, FRACTION, THRESHOLD, Goal
from hsreject.measures.point import COUNTS
from hsreject.promise.frame import labels_of, map_id
from hsreject.promise.sample import given_sample
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.schema import BAND, LEVEL_CONFIDENCE, MAP_DIMS, REJECTION_COST, X, Y

if TYPE_CHECKING:
    from hsreject.mapping.ranking import MapJob
    from hsreject.progress import ProgressCallback
    from hsreject.promise.certificate import Certificate

CERTIFICATE = "certificate"

ASSUMPTION = (
    "Assumed, not measured: that this scene is like the training scene. Nobody has tested the map "
    "here, and its accuracy may be far lower than on the training scene."
)


def goal_of(wishes: dict[str, Any], certificate: Certificate | None, sample: Any) -> Goal:
    """Return the only goal that is not None, or say that there is no single one."""
    if certificate is not None and all(wish is None for wish in wishes.values()):
        return Goal(max_error=certificate.max_error)
    goal = Goal.one_of({**wishes, CERTIFICATE: certificate})
    if sample is not None and not goal.needs_reference:
        raise InputError(
            f"A sample tells which threshold an accuracy or a cost asks for, not a "
            f"{goal.kind}. Leave the sample out."
        )
    return goal


def backed(job: MapJob) -> MapJob:
    """Return the job with its sample opened, or say before the work that nothing backs its goal.

    A certificate may still turn out to be of another map. `assume_alike` stays where the training
    scene gives the threshold, and this is another one.
    """
    if job.certificate is not None:
        job.certificate.applicable_threshold  # noqa: B018 (raises if there is none)
        job.certificate.check_map(job.cube.shape[1:])
        if job.flat and job.model.tree is not None:
            raise InputError(
                "A certificate is about the map with its groups, and a flat map keeps fewer "
                "pixels. Leave out --flat (in Python flat=True), or certify the flat map by "
                "itself."
            )
        return job
    if job.sample is not None:
        grid = xr.ones_like(job.cube.isel({BAND: 0}, drop=True), dtype=np.uint16)
        on_map = labels_of(grid.drop_attrs(deep=False).assign_attrs(job.model.classes.to_attrs()))
        points = given_sample(job.sample, on_map, assume_random=False)
        if np.ptp(points.inclusion_probability) > 0:
            raise InputError(
                "The sample was drawn from strata, more densely in some than in others: it "
                "does not tell which threshold an accuracy asks for. Give a simple random "
                "sample, or certify the map ('hsreject certify')."
            )
        return replace(job, sample=points)
    if not job.goal.needs_reference:
        return job
    job.model.threshold_for(job.goal)  # raises if it has none
    if job.similarity is not None and job.similarity.is_training_scene:
        return replace(job, assume_alike=False)
    if not job.assume_alike:
        raise InputError(
            f"Nothing tells which threshold reaches {job.goal.kind}={job.goal.value:g} on "
            f"this scene: the model was tested on its training scene ('{job.model.title}') alone. "
            "Give labelled pixels of this scene (--sample, drawn with 'hsreject sample') or a "
            "certificate, ask for --fraction, or say --assume-alike (in Python "
            "assume_alike=True) to take the training scene's threshold as an assumption."
        )
    return job


def rejection_of(job: MapJob, ranking: xr.Dataset, progress: ProgressCallback) -> Rejection:
    """Return the threshold of a map with these labels and confidences, and its source.

    Confidences below the lowest are those of unknown pixels, which every threshold rejects.
    """
    kind, value, lowest = job.goal.kind, job.goal.value, job.lowest
    if job.certificate is not None:
        confidence = ranking.get(LEVEL_CONFIDENCE, ranking["confidence"])
        label = ranking["label"]
        job.certificate.check_map(label.shape, map_id(label, confidence))
        source = f"certified. {job.certificate.statement}"
        return Rejection(CERTIFICATE, value, job.certificate.applicable_threshold, source)
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
    if job.sample is not None:
        threshold, n_points = _threshold_of_sample(job, ranking)
        source += f", on {n_points} sampled pixels of this scene"
        return Rejection(kind, value, max(threshold, lowest), source)
    threshold = job.model.threshold_for(job.goal)
    n_points = sum(job.model.calibration[count][0] for count in COUNTS)  # of any threshold
    source += f", on {n_points:.0f} test pixels of the training scene ('{job.model.title}')"
    assumption = ASSUMPTION if job.assume_alike else ""
    return Rejection(kind, value, max(threshold, lowest), source, assumption)


def _threshold_of_sample(job: MapJob, ranking: xr.Dataset) -> tuple[float, int]:
    """Return what the goal asks for on a simple random sample of the scene, and its size."""
    points = job.sample.on_map(labels_of(ranking["label"]))
    points = points.select(points.labelled & (points.label > 0))
    if not len(points):
        raise InputError("No labelled point of the sample lies on a pixel with data.")
    rows, columns = (xr.DataArray(place, dims=X) for place in (points.row, points.column))
    looked_at = ranking.drop_vars(MAP_DIMS, errors="ignore").isel({Y: rows, X: columns})
    as_map = looked_at.expand_dims(Y).transpose(..., *MAP_DIMS).compute()  # of one row
    curve = job.model.rejector.points(as_map, points.reference[None])
    index = job.model.rejector.chosen_point(curve, job.goal)
    return float(curve["threshold"].values[index]), len(points)
