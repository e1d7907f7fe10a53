"""What a map rejects and what backs that, and what it says in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import tomli_w
import xarray as xr

from hsreject import __version__
from hsreject.certification.certificate import Certificate
from hsreject.certification.sample import SEQUENTIAL, sample_of_scene
from hsreject.errors import InputError
from hsreject.measures.choosing import ACCURACY, FRACTION, MAX_ERROR, THRESHOLD, Goal
from hsreject.measures.point import COUNTS
from hsreject.registry import check_keys
from hsreject.rejection.decision import check_reached, decide
from hsreject.rejection.novelty import UNKNOWN_BELOW
from hsreject.rejection.ranking import UNIT, UNKNOWN_FLAG, Ranking
from hsreject.schema import BAND, REJECTION_COST, X, Y, class_table
from hsreject.schema.class_tree import ClassTree, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.mapping.blocks import Blocks
    from hsreject.mapping.map_model import Similarity
    from hsreject.mapping.ranked_blocks import MapJob
    from hsreject.progress import ProgressCallback

CERTIFICATE = "certificate"
_GOALS = tuple(field.name for field in fields(Goal))

ASSUMPTION = (
    "Assumed, not measured: that this scene is like the training scene. Nobody has tested the map "
    "here, and its accuracy may be far lower than on the training scene."
)


@dataclass(frozen=True)
class Rejection:
    """Where the threshold comes from."""

    asked: str  # "fraction", "threshold", "accuracy", "rejection_cost" or "certificate"
    value: float  # what was asked of it
    threshold: float  # the smallest confidence kept
    source: str  # where the threshold comes from, in words
    assumption: str = ""  # what was assumed and not measured, in a sentence


def asked_for(
    goal: Goal | Mapping[str, float] | Certificate | str | PathLike[str], sample: Any
) -> tuple[Goal, Certificate | None]:
    """Return the goal of a map and the certificate that brings it, or say that it makes no sense.

    The goal of a certificate is what it promises.
    """
    if isinstance(goal, str | PathLike):
        goal = Certificate.read(goal)
    certificate = goal if isinstance(goal, Certificate) else None
    if certificate is not None:
        goal = Goal(max_error=certificate.max_error)
    elif not isinstance(goal, Goal):
        if not isinstance(goal, Mapping):
            raise InputError(
                "The goal of a map must be a Goal such as hr.Goal(fraction=0.1), a mapping such as "
                f'{{"fraction": 0.1}}, or a certificate or its path (got {goal!r}).'
            )
        check_keys(goal, _GOALS, section="goal")
        goal = Goal.one_of({kind: goal.get(kind) for kind in _GOALS})
    if certificate is None and goal.kind == MAX_ERROR:
        raise InputError(
            "Which threshold keeps an error, only a certificate tells: give the one that "
            "hsreject.certify made of this map as the goal. Without one, ask for an accuracy."
        )
    if sample is not None and goal.kind not in {ACCURACY, REJECTION_COST}:
        raise InputError(
            f"A sample tells which threshold an accuracy or a cost asks for, not a "
            f"{CERTIFICATE if certificate else goal.kind}. Leave the sample out."
        )
    return goal, certificate


def check_evidence(job: MapJob) -> MapJob:
    """Open the sample of a job, or raise before the work where no evidence supports its goal."""
    if job.certificate is not None:
        job.certificate.applicable_threshold  # noqa: B018 (raises if there is none)
        job.certificate.check_map(job.cube.shape[1:])  # it may still be of another map
        if job.flat and job.model.tree is not None:
            raise InputError(
                "A certificate is about the map with its groups, and a flat map keeps fewer "
                "pixels. Leave out --flat (in Python Layers(flat=True)), or certify the flat map "
                "by itself."
            )
        return job
    if job.sample is not None:
        layer = job.cube.isel({BAND: 0}, drop=True)  # its values are not read
        points = sample_of_scene(job.sample, layer, job.model.classes)
        if not points.labelled.any():
            raise InputError(
                "No sampled pixel has a reference. Fill in the column 'reference' with class names "
                "or codes."
            )
        if points.kind == SEQUENTIAL or np.ptp(points.inclusion_probability) > 0:
            raise InputError(
                "The sample was drawn more densely in some parts of the map than in others (from "
                "strata, or by a sequential design): it does not determine which threshold an "
                "accuracy asks for. Give a simple random sample, or certify the map ('hsreject "
                "certify')."
            )
        return replace(job, sample=points)
    if not job.goal.needs_reference:
        return job
    check_reached(job.model.decide(job.goal), job.goal)
    if job.similarity is not None and job.similarity.is_training_scene:
        return replace(job, reading=replace(job.reading, assume_alike=False))
    if not job.reading.assume_alike:
        raise InputError(
            f"Nothing tells which threshold reaches {job.goal.kind}={job.goal.value:g} on "
            f"this scene: the model was tested on its training scene ('{job.model.title}') alone. "
            "Give labelled pixels of this scene (--sample, drawn with 'hsreject sample') or a "
            "certificate, ask for --fraction, or say --assume-alike (in Python "
            "Reading(assume_alike=True)) to take the training scene's threshold as an assumption."
        )
    return job


def rejection_of(job: MapJob, ranking: Ranking, progress: ProgressCallback) -> Rejection:
    """Return the threshold of a map with this ranking, and where it comes from in words."""
    kind, value = job.goal.kind, job.goal.value
    if job.certificate is not None:
        identity = ranking.id
        if identity != job.certificate.map_id:  # it may have ranked unknown pixels, too
            identity = replace(ranking, unknown=None).id
        job.certificate.check_map(ranking.label.shape, identity)
        source = f"certified. {job.certificate.statement}"
        return Rejection(CERTIFICATE, value, job.certificate.applicable_threshold, source)
    source = {
        THRESHOLD: "given",
        FRACTION: "the confidence at that rank among the pixels of this scene",
        ACCURACY: f"the smallest rejection that kept an accuracy of {value:g}",
        REJECTION_COST: f"the cheapest if a rejected pixel costs {value:g} of a wrong one",
    }[kind]
    if not job.goal.needs_reference:
        source += (
            " that are not unknown" if kind == FRACTION and ranking.unknown is not None else ""
        )
        threshold = decide(ranking, job.goal, progress=progress).threshold
        return Rejection(kind, value, threshold, source)
    if job.sample is not None:
        points = job.sample.select(job.sample.labelled)
        places = {Y: points.row, X: points.column}
        units = {dim: xr.DataArray(place, dims=UNIT) for dim, place in places.items()}
        # looked up block by block: the whole map may be larger than the memory
        looked_at = ranking.isel(**units).load()
        n_points = int(looked_at.has_data.sum())
        if not n_points:
            raise InputError("No labelled point of the sample lies on a pixel with data.")
        cost = job.model.rejector.coarse_cost
        decision = decide(looked_at, job.goal, points.reference, coarse_cost=cost)
        check_reached(decision, job.goal)
        source += f", on {n_points} sampled pixels of this scene"
        return Rejection(kind, value, decision.threshold, source)
    threshold = job.model.decide(job.goal).threshold
    n_points = sum(job.model.calibration[count][0] for count in COUNTS)  # of any threshold
    source += f", on {n_points:.0f} test pixels of the training scene ('{job.model.title}')"
    return Rejection(kind, value, threshold, source, ASSUMPTION if job.reading.assume_alike else "")


@dataclass(frozen=True)
class ClassShare:
    """The pixels of a class or group: how many a map keeps as such, and where the others are."""

    value: int
    name: str
    n_kept: int
    n_rejected: int = 0
    n_as_group: int = 0
    level: str = "class"  # or "group", "group of level 2" and so on

    @property
    def n_pixels(self) -> int:
        """Pixels with this label, whatever the answer."""
        return self.n_kept + self.n_rejected + self.n_as_group


@dataclass(frozen=True)
class MapSummary:
    """What a map says in numbers."""

    rejection: Rejection
    classes: tuple[ClassShare, ...]
    groups: tuple[ClassShare, ...]  # where a map may answer coarser
    _: KW_ONLY
    n_without_data: int  # pixels
    n_unknown: int | None  # rejected pixels like no training pixel; None without novelty
    pixel_hectares: float | None  # None without a projected reference system
    scene: str  # what it is called, usually the path
    model: str  # the same
    similarity: Similarity | None  # to the training scene; None where the model has none
    blocks: Blocks
    n_continued: int  # blocks that were finished when stopped work was continued

    @property
    def n_pixels(self) -> int:
        """Pixels with data."""
        return sum(share.n_pixels for share in self.classes)

    @property
    def n_rejected(self) -> int:
        """Rejected pixels."""
        return sum(share.n_rejected for share in self.classes)

    @property
    def rejected_fraction(self) -> float:
        """The share of the pixels with data that is rejected."""
        return self.n_rejected / self.n_pixels

    @property
    def notes(self) -> list[str]:
        """What is known at which level, what is unknown, and what is assumed, in a line each."""
        notes = []
        if self.groups:
            known: Counter[str] = Counter()
            for share in (*self.classes, *self.groups):
                known[share.level] += share.n_kept
            shares = [f"{100 * known[one] / self.n_pixels:.1f} % as {one}" for one in sorted(known)]
            rejected = f"{100 * self.rejected_fraction:.1f} % rejected"
            notes.append(f"known: {', '.join(shares)}; {rejected}")
        if self.n_unknown is not None:
            notes.append(
                f"unknown: {100 * self.n_unknown / self.n_pixels:.2f} % of the pixels are like no "
                "training pixel and rejected for that (of pixels of known classes 1 to 3 % may be "
                "among them, of a class that varies more)"
            )
        return [*notes, self.rejection.assumption] if self.rejection.assumption else notes

    def hectares(self, n_pixels: int) -> float | None:
        """Return the area of a number of pixels, if it is known."""
        return None if self.pixel_hectares is None else n_pixels * self.pixel_hectares

    def to_toml(self) -> str:
        """Return the summary as TOML."""
        unknown, blocks = None, self.blocks
        if self.n_unknown is not None:
            unknown = {
                "pixels": self.n_unknown,
                "share": self.n_unknown / self.n_pixels,
                "flag": UNKNOWN_FLAG,
                "p_value_below": UNKNOWN_BELOW,
            }
        document = {
            "hsreject": __version__,
            "scene": self.scene,
            "model": self.model,
            "pixels_with_data": self.n_pixels,
            "pixels_without_data": self.n_without_data,
            "pixels_rejected": self.n_rejected,
            "rejected_fraction": self.rejected_fraction,
            "rejection": _without_gaps(asdict(self.rejection)),
            "unknown": unknown,
            "similarity": self.similarity and _without_gaps(asdict(self.similarity)),
            "blocks": {"number": len(blocks), "side": blocks.side, "halo": blocks.halo},
            "classes": [_without_gaps(self._row(share)) for share in self.classes],
            "groups": [_without_gaps(self._row(group)) for group in self.groups] or None,
        }
        return tomli_w.dumps(_without_gaps(document))

    def _row(self, share: ClassShare) -> dict[str, Any]:
        is_class = share.level == "class"
        return {
            "value": share.value,
            "name": share.name,
            "level": None if is_class else share.level,
            "pixels_kept": share.n_kept,
            "pixels_rejected": share.n_rejected if is_class else None,
            "pixels_as_group": share.n_as_group if is_class and self.groups else None,
            "hectares_kept": self.hectares(share.n_kept),
            "hectares_rejected": self.hectares(share.n_rejected) if is_class else None,
        }


def _without_gaps(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table without what is not there, which TOML cannot say."""
    return {name: value for name, value in table.items() if value not in (None, "", ())}


def shares_of(maps: xr.Dataset) -> tuple[tuple[ClassShare, ...], tuple[ClassShare, ...]]:
    """Return how many pixels of each class a map keeps and rejects, and those of each group."""
    label, answer = maps["label"], maps["label_with_rejection"]
    classes, nodes = class_table(label), class_table(answer)  # classes come first among the nodes
    n_classes, n_answers = len(classes), len(nodes) + 1  # the last: rejected, or without data

    # counted block by block: the rows of label and answer in their tables make one number
    def pairs(label: NDArray[Any], answer: NDArray[Any]) -> NDArray[np.intp]:
        return rows_of(classes, label) * n_answers + rows_of(nodes, answer)

    layers = (da.asanyarray(one.data) for one in (label, answer))
    both = da.map_blocks(pairs, *layers, dtype=np.intp)
    counts = da.bincount(both.ravel(), minlength=(n_classes + 1) * n_answers).compute()
    table = counts.reshape(-1, n_answers)[:-1]
    n_kept, n_rejected = table.diagonal(), table[:, -1]
    columns = (n_kept, n_rejected, table.sum(axis=1) - n_kept - n_rejected)
    shares = map(ClassShare, classes.values, classes.names, *(one.tolist() for one in columns))
    tree = ClassTree.from_attrs(answer.attrs)
    levels = [] if tree is None else [tree.level_names[level] for level in tree.levels]
    groups = zip(nodes.values, nodes.names, table.sum(axis=0).tolist(), levels, strict=False)
    return tuple(shares), tuple(
        ClassShare(value, name, n_pixels, level=level)
        for value, name, n_pixels, level in list(groups)[n_classes:]
    )
