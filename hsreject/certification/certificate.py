"""Certificates: what is promised of a map, on what grounds, and for that map only."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from dataclasses import KW_ONLY, asdict, astuple, dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError

from hsreject import __version__, schema
from hsreject.certification.climb import (
    Climb,
    Look,
    Terms,
    cautious_rate,
    climb_start,
    least_points,
    start_of,
    ways_out,
)
from hsreject.certification.design import climb_plan, planned_climbs
from hsreject.certification.frame import (
    Frame,
    Regions,
    Stack,
    labels_of,
    node_of,
    percent,
    ranking_of,
)
from hsreject.certification.sample import (
    CANNOT_TELL,
    CLIMB,
    RANDOM,
    STRATIFIED,
    WAY_OUT,
    Design,
    Sample,
    given_sample,
)
from hsreject.errors import FileError, HsrejectWarning, InputError
from hsreject.files import existing, replacing
from hsreject.io.vectors.spreadsheet import write_csv
from hsreject.registry import check_number
from hsreject.rejection.hierarchical import answer_map
from hsreject.rejection.rejector import rejection_maps
from hsreject.schema import LABEL_WITH_REJECTION, REJECTED
from hsreject.schema.label_maps import map_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


_FORMAT = "hsreject certificate"
_FOLLOWING = (
    "statement", "applies_to", "threshold", "coverage", "n_kept", "n_errors", "upper_bound",
)  # fmt: skip
"""What follows from a certificate's tests: written for people, and compared when it is read."""
_TEMPLATES = Environment(  # noqa: S701 (plain sentences)
    loader=PackageLoader("hsreject.certification", "."), undefined=StrictUndefined
)
_TEMPLATES.filters |= {"percent": percent, "count": "{:,}".format}
_MOST_HIDDEN = 1000  # wrong pixels that the promise would allow among those
_MOST_POINTS = 10**7  # of a sample whose certificate is read


@dataclass(frozen=True)
class Certificate:
    """What is promised of a map, and on what grounds.

    Attributes
    ----------
    max_error, confidence_level : float in (0, 1)
        What was asked for: at most `max_error` of the kept pixels are wrong. Of all samples that
        could have been drawn, at least the share `confidence_level` leads to a promise that holds.
    n_points, n_pixels : int
        Sampled pixels, of a climb those with a label, and pixels that the promise speaks of.
    drawn, design : str
        How the sample was drawn, in words, and as "random", "stratified" or "climb".
    tests : tuple of Look
        The sequence as far as it was tested: threshold, pixels, sampled pixels, errors, and the
        most errors with which a region passes. Where some test failed, it is the last one.
    map_id, shape : str, tuple of int
        Tell the map, labels and confidences, from any other one; its rows and columns.
    stacked : bool
        Whether the sequence is a stack of maps instead of thresholds on one confidence.
    n_hidden : int
        Pixels of the map that could not be drawn, if they were not stated again.
    n_planned, finished, n_more : int, bool, int or None
        Of a climb: the labels that it was planned with, False while it may go on, and how many more
        labels are then likely to certify its next step.
    n_needed, smallest_error : int or None, float or None
        Where nothing can be certified: labels of a climb that would almost surely certify
        something, and the smallest error that as many labels would; None where neither is in sight.
    n_cannot_tell, coverage_if_right : int, float
        Sampled pixels that nobody could label, which count as wrong, and what would be kept had
        they been right: what they cost.
    lost_classes : tuple of str
        Classes of the map that lost more than nine tenths of their pixels.
    by_class, per_class, n_promised : tuple of Certificate, str, int
        Of a climb for each class: the promise of each, with its `class_value` and `class_name`,
        whether they hold "together" or "each", and the pixels that they keep. A map that may answer
        coarser has those of its groups, too, which are about all pixels below.

    See Also
    --------
    hsreject.certify : makes one.
    hsreject.plot.CertificateDisplay : draws its tests.
    """

    _: KW_ONLY
    max_error: float
    confidence_level: float
    n_points: int
    n_pixels: int
    drawn: str
    tests: tuple[Look, ...] = ()
    map_id: str
    shape: tuple[int, ...]
    design: str = RANDOM
    stacked: bool = False
    n_hidden: int = 0
    n_planned: int = 0
    finished: bool = True
    n_more: int | None = None
    n_needed: int | None = None
    smallest_error: float | None = None
    n_cannot_tell: int = 0
    coverage_if_right: float = 0.0
    lost_classes: tuple[str, ...] = ()
    by_class: tuple[Certificate, ...] = ()
    per_class: str = ""
    n_promised: int = 0
    class_value: int = 0
    class_name: str = ""

    # What follows from the tests.

    @property
    def _promised(self) -> Look:
        """The last test that passed, or one of no pixels."""
        passed = (test for test in reversed(self.tests) if test.passed)
        return next(passed, Look(math.nan, 0, 0.0))

    @property
    def threshold(self) -> float | None:
        """The smallest confidence to keep; for a stack of maps, the position of the certified one.

        None where nothing can be certified, and where each class has its own (`by_class`).
        """
        return self._promised.threshold if self._promised.n_pixels else None

    @property
    def coverage(self) -> float:
        """Share of the pixels that is kept; 0 where nothing can be certified."""
        return self.n_promised / self.n_pixels if self.by_class else self._promised.coverage

    @property
    def n_kept(self) -> int:
        """Sampled pixels that are kept; of a climb, those looked at in the region that is kept."""
        return self._promised.n_kept + sum(one.n_kept for one in self.by_class)

    @property
    def n_errors(self) -> int:
        """Sampled pixels that are kept and wrong."""
        return self._promised.n_errors + sum(one.n_errors for one in self.by_class)

    @property
    def upper_bound(self) -> float:
        """Exact upper confidence bound of the share of wrong pixels among the kept.

        It would hold if this coverage had been the only one asked about; what is promised is
        `max_error`. NaN without a threshold.
        """
        delta = 1 - self.confidence_level
        return math.nan if self.threshold is None else self._promised.upper_bound(delta)

    @property
    def statement(self) -> str:
        """What is promised, for which pixels, from which sample: one sentence or two."""
        least = math.ceil(1.5 * least_points(self.max_error, 1 - self.confidence_level))
        return say("statement", it=self, least=least)

    @property
    def applies_to(self) -> str:
        """Which map the promise is about, and which not: one sentence."""
        return say("applies_to", it=self)

    def rows(self) -> list[tuple[str, ...]]:
        """Return class, promised error, coverage, labels looked at and wrong ones, per class."""
        rows = []
        for one in self.by_class:
            cells: tuple[object, ...] = ("cannot be promised", "", one.n_points, "")
            if one.coverage:
                share = percent(one.coverage, 1)
                cells = (percent(one.max_error), share, one.n_points, one.n_errors)
            rows.append((one.class_name, *map(str, cells)))
        return rows

    # Files.

    def to_json(self) -> str:
        """Return the certificate as JSON; :meth:`from_json` is the inverse."""
        entries = {name: getattr(self, name) for name in _FOLLOWING} | asdict(self)
        if self.threshold is None:
            entries["upper_bound"] = None  # JSON has no NaN
        text = json.dumps(entries, sort_keys=True, separators=(",", ":"), allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]  # against accidents
        head = {"format": _FORMAT, "hsreject": __version__, "digest": digest}
        return json.dumps(head | entries, indent=2) + "\n"

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the certificate into a small JSON file, and return its path."""
        with replacing(Path(path), overwrite=overwrite) as work:
            work.write_text(self.to_json(), encoding="utf-8")
        return Path(path)

    def write_tables(self, folder: Path) -> None:
        """Write `tests.csv` and, of a climb per class, `classes.csv` into a folder."""
        promises = self.by_class or (self,)
        tests = [(one.class_name, *astuple(test)) for one in promises for test in one.tests]
        write_csv(folder / "tests.csv", ["class", *(field.name for field in fields(Look))], tests)
        if self.by_class:
            names = ("class_name", "max_error", "threshold", "coverage", "n_points", "n_errors")
            rows = [[getattr(one, name) for name in names] for one in promises]
            write_csv(folder / "classes.csv", names, rows)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Return the certificate that :meth:`to_json` wrote; raise if it contradicts itself."""
        try:
            entries = json.loads(text)
            possible = _counts_are_possible(entries)  # before room is made for them
            certificate = cls._from_entries(entries) if possible else None
            written_again = certificate and json.loads(certificate.to_json())
        except (
            ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
            TemplateError,
        ):  # fmt: skip
            raise InputError(
                "This is not a certificate of this version. Give the certificate.json of 'hsreject "
                "certify', or certify again."
            ) from None
        if certificate is None or written_again != entries | {"hsreject": __version__}:
            raise InputError(
                "The certificate contradicts itself: its threshold, counts, bounds or statement do "
                "not follow from its tests. Take the file as it was written, or certify again."
            )
        return certificate

    @classmethod
    def _from_entries(cls, entries: dict[str, Any]) -> Certificate:
        """Return the certificate of stored facts, with tests that follow from their counts."""
        facts = {field.name: entries[field.name] for field in fields(cls)}
        terms = Terms(facts["n_planned"], facts["max_error"], 1 - facts["confidence_level"])
        options = {"climb": facts["design"] == CLIMB, "n_hidden": facts["n_hidden"]}
        n_all = facts["n_pixels"] + facts["n_hidden"]
        tests = (Look(**test | {"coverage": test["n_pixels"] / n_all}) for test in facts["tests"])
        facts["tests"] = tuple(test.judged(terms, **options) for test in tests)
        facts["by_class"] = tuple(map(cls._from_entries, facts["by_class"]))
        facts |= {name: tuple(facts[name]) for name in ("shape", "lost_classes")}
        return cls(**facts)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Certificate:
        """Return the certificate in a JSON file."""
        try:
            return cls.from_json(existing(path).read_text(encoding="utf-8", errors="replace"))
        except InputError as error:
            raise FileError(f"{path}: {error}") from None

    # The map.

    @property
    def applicable_threshold(self) -> float:
        """The threshold, or an error where there is none to apply to a confidence."""
        if self.stacked or self.by_class:
            raise InputError(
                "The certificate is of one map in a sequence, or has a threshold for each class, "
                "not one for all: take the map that 'hsreject certify' wrote beside it."
            )
        if self.threshold is None:
            raise InputError(f"The certificate has no threshold. {self.statement}")
        return self.threshold

    def check_map(self, shape: tuple[int, ...], identity: str | None = None) -> None:
        """Raise unless a map has the shape and, if known, the `map_id` of the certificate."""
        if shape != self.shape or identity not in {None, self.map_id}:
            raise InputError(
                f"The certificate is of another map ({self.map_id}, {self.shape[0]} rows x "
                f"{self.shape[1]} columns) than this one ({identity or 'unread'}, {shape[0]} x "
                f"{shape[1]}). It holds for the very same labels and confidences only. Certify "
                "this map with a sample of its own."
            )

    def apply(
        self, label: xr.DataArray | NDArray[Any], confidence: xr.DataArray | NDArray[Any]
    ) -> xr.Dataset:
        """Return the maps of the certified rejection, as rejectors do.

        Parameters
        ----------
        label, confidence : DataArray or array, dims (y, x)
            The map that was certified, with `confidence` (level, y, x) if it may answer coarser;
            another one is refused.

        Returns
        -------
        Dataset
            `label`, `confidence`, `rejected` and `label_with_rejection` (y, x).
        """
        threshold = 0.0 if self.by_class else self.applicable_threshold
        on_map = schema.as_map(label, name="label")
        confidences, tree = ranking_of(confidence, on_map)
        self.check_map(on_map.shape, map_id(on_map, confidences))
        coarsest = confidences if tree is None else confidences.isel({schema.LEVEL: -1})
        limits: Any = threshold
        if self.by_class:  # of the answer of each pixel at each level
            limits = np.full((1 if tree is None else tree.n_levels, *on_map.shape), np.inf)
            promised = [one for one in self.by_class if one.threshold is not None]
            for one in promised:
                level, below = node_of(one.class_value, tree)
                limits[level][np.isin(on_map.values, below)] = one.threshold
            answered = (confidences.values >= limits).any(axis=0)
            answered |= on_map.values == schema.nodata_label(on_map.dtype)
            coarsest = coarsest.where(on_map.copy(data=answered), -math.inf)
            threshold = min((one.applicable_threshold for one in promised), default=0.0)
        attrs = {"certificate": self.statement}
        maps = rejection_maps(on_map, coarsest, threshold=threshold, attrs=attrs)
        answer = maps[LABEL_WITH_REJECTION]
        if tree is not None:
            kept_pixels = ~maps["rejected"] & (on_map != REJECTED)
            answer = answer_map(on_map, confidences, limits)
            answer = answer.where(kept_pixels, answer.dtype.type(REJECTED))
        answer = answer.assign_attrs({schema.ZERO_MEANING: "rejected"})
        return maps.assign({LABEL_WITH_REJECTION: answer})


def _counts_are_possible(facts: Mapping[str, Any]) -> bool:
    """Tell whether the counts of a stored certificate fit its sample, and samples that exist.

    Boundaries take room for the errors of every look, and time for the pixels that were hidden.
    """
    n_points, share = facts["n_points"], facts["max_error"]
    n_wrong = facts["n_planned"] * (share if facts["confidence_level"] > 0.5 else 1)
    n_hidden = share * facts["n_hidden"]
    return (
        max(n_wrong, n_hidden) <= _MOST_HIDDEN
        and n_points * (1 + n_hidden) <= _MOST_POINTS
        and all(0 <= test["n_errors"] <= test["n_kept"] <= n_points for test in facts["tests"])
        and all(map(_counts_are_possible, facts["by_class"]))
    )


def say(name: str, **values: object) -> str:
    """Return a sentence of ``words.jinja``, about these values."""
    template: Any = _TEMPLATES.get_template("words.jinja").module
    return " ".join(str(getattr(template, name)(**values)).split())


def certify(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any] | None,
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    *,
    max_error: float | None = None,
    confidence_level: float | None = None,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    predicted: xr.DataArray | NDArray[Any] | None = None,
    assume_random: bool = False,
) -> Certificate:
    """Return the largest part of a map for which a small error can be promised.

    The map is finished. Coverages c_1 < ... < c_m are fixed beforehand, and the confidences of the
    whole map, without any label, give the threshold of each. Of a climb
    (``draw_sample(..., design="climb")``) they are climbed one by one, with exact boundaries for
    the errors at every look; the promise holds whenever one stops. Of a simple random sample they
    are tested in this order (Learn-then-Test with a fixed sequence). Of the N_j pixels kept at c_j,
    n_j were sampled and k_j of those are wrong::

        p_j = P[H(N_j, floor(alpha N_j) + 1, n_j) <= k_j]

    with alpha = `max_error`, delta = 1 - `confidence_level` and H hypergeometric: the chance to see
    so few errors if more than alpha N_j pixels were wrong. The first p_j above delta ends the
    sequence, and the last threshold that passed is certified. A stratified sample is thinned to one
    density. Then, over all samples that could have been drawn, and whatever the classifier, the
    confidence and the scene::

        P(more than alpha of the kept pixels, sampled ones included, are wrong) <= delta

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The map, with ``schema.nodata_label`` where there is no data and 0 where a pixel is rejected
        already and stays so. Or a stack (operating_point, y, x) of maps with rejection, with
        `confidence` None: the operating points of a joint rejector at fractions that were fixed
        beforehand. They are tested by ascending coverage.
    confidence : DataArray or array, dims (y, x), or None
        Larger is more certain. Equal confidences are kept or rejected together. Of a map that may
        answer coarser, the `level_confidence` (level, y, x) of
        :class:`hsreject.HierarchicalRejector`: the confidence of its coarsest answer ranks a pixel,
        and an answer is wrong where the truth is not below it.
    sample : Sample, path, DataArray or array of int, dims (y, x)
        The points of :func:`hsreject.draw_sample`, labelled, or their file. Points that nobody
        could label or has labelled count as errors where they are kept, which keeps the promise;
        those after the last labelled one, in the order of the draw, are left out. Unlabelled points
        of a climb are still asked for. An array holds reference labels on the grid of the map, 0
        where not sampled, and is trusted: every pixel of the map had the same chance to be in it,
        wherever it lies, and none was used to train, tune or choose the map.
    max_error, confidence_level : float in (0, 1), optional
        Share of wrong pixels among the kept ones that is allowed, and 1 - delta: 0.05 and 0.9, or
        what a climb was planned for, which cannot be changed.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 at training pixels. The promise is about the others. A sample that holds some is
        refused. One that was drawn without them keeps less if they are not given again.
    predicted : DataArray or array, dims (y, x), optional
        Chance of each label to be wrong (:func:`hsreject.predicted_error`): the sequence of a
        sample that was drawn at once begins where this prediction lets it come far.
    assume_random : bool
        Take points of unknown origin, or of a sample drawn from another map, for a simple random
        sample of this map, as an array is.

    Returns
    -------
    Certificate
        Its `threshold` is None where nothing can be certified.

    See Also
    --------
    hsreject.draw_sample : the pixels to label.
    hsreject.assess : estimates accuracies and areas.
    hsreject.expected_coverage : what to expect.

    References
    ----------
    Angelopoulos, A. N., Bates, S., Candes, E. J., Jordan, M. I. and Lei, L. (2021). Learn then
    Test: calibrating predictive algorithms to achieve risk control.

    Examples
    --------
    A map whose most confident 60 % are right:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    >>> label = np.where(confidence < 0.4, 2, 1)
    >>> sample = hr.draw_sample(label, 500).with_reference(np.ones((100, 100), dtype=int))
    >>> certificate = hr.certify(label, confidence, sample)
    >>> certificate.coverage, round(certificate.threshold, 2), certificate.n_errors
    (0.6, 0.4, 0)
    >>> certificate.apply(label, confidence).rejected_fraction
    0.4
    """
    if confidence is None and np.ndim(label) != 3:
        raise InputError(
            "Give a confidence beside the label map, or a stack (operating_point, y, x) of maps "
            f"with rejection (got the shape {np.shape(label)})."
        )
    maps = [labels_of(one) for one in (label if confidence is None else [label])]
    frame = Frame.of(maps[0], confidence, exclude)
    points = given_sample(sample, frame.label, assume_random=assume_random)
    n_excluded = int(np.count_nonzero(~frame.inside[points.row, points.column]))
    if n_excluded:
        raise InputError(
            f"{n_excluded} of the {len(points)} sampled pixels are excluded: training pixels, or "
            "places that nobody can label. Draw the sample without them (exclude=, --exclude)."
        )
    facts = {
        "map_id": "".join(map_id(one, frame.confidence) for one in maps),
        "shape": frame.label.shape,
        "design": points.kind or RANDOM,
        "stacked": confidence is None,
    }
    asked = {"max_error": max_error, "confidence_level": confidence_level}
    if points.kind == CLIMB:
        plan = climb_plan(points, frame)
        for name, share in asked.items():
            if share not in {None, getattr(plan, name)}:
                raise InputError(
                    f"{name} is {getattr(plan, name):g} in the plan of this climb and cannot be "
                    f"changed after the draw (got {share:g}). Leave it out, or draw a new sample."
                )
        climbs = planned_climbs(plan, frame, points)
        certificate_of = partial(_climbed, climbs=climbs, plan=plan, facts=facts)
    else:
        points = _points(points, maps, frame.n_pixels, assume_random=assume_random)
        defaults = {"max_error": 0.05, "confidence_level": 0.9}
        alpha, level = (
            check_number(name, defaults[name] if share is None else share, above=0, below=1)
            for name, share in asked.items()
        )
        n_looks = 1 if points.design is None else max(len(points.design.looks), 1)
        drawn = "a simple random sample, as the caller says"
        if points.design is not None and not assume_random:
            kind = "simple random" if points.kind == RANDOM else points.kind
            drawn = f"a {kind} sample drawn by hsreject, seed {points.design.seed}"
        certificate_of = partial(
            _tested,
            regions=Stack.of(maps, frame) if confidence is None else frame.regions(),
            terms=Terms(len(points), alpha, (1 - level) / n_looks),
            predicted=predicted,
            facts=facts | {"drawn": drawn},
        )
    certificate, unclear = certificate_of(points), points.reference == CANNOT_TELL
    if not unclear.any():
        return certificate
    right = replace(points, reference=np.where(unclear, points.label, points.reference))
    return replace(certificate, coverage_if_right=certificate_of(right).coverage)


def _points(
    points: Sample, maps: list[xr.DataArray], n_pixels: int, *, assume_random: bool
) -> Sample:
    """Return the points drawn at once that count, or say why they cannot certify anything."""
    if points.kind == STRATIFIED and (assume_random or len(maps) > 1):
        raise InputError(
            "A stratified sample certifies thresholds of the map that it was drawn from, and it is "
            "not a simple random one. Draw a sample with design='random' or 'climb'."
        )
    if points.design is not None and not assume_random:
        if points.design.map_id not in {map_id(one) for one in maps}:
            raise InputError(
                f"The sample was drawn from another map ({points.design.map_id}) than this one "
                f"({map_id(maps[0])}), which may have learned from it. {WAY_OUT}"
            )
        if points.design.n_pixels < n_pixels:
            _warn(
                f"{n_pixels - points.design.n_pixels} pixels could not be drawn, and are not "
                "excluded now: the promise holds whichever they are, and keeps less. Exclude them "
                "again (exclude=, --exclude)."
            )
        looks, last = points.design.looks, int(points.id[points.labelled].max(initial=0))
        if looks and last not in looks:
            raise InputError(
                f"{last} of {len(points)} points are labelled, but looks at this sample were "
                f"planned after {', '.join(map(str, looks))} labels. Looking at other times until "
                "it works breaks the promise: label on to the next look."
            )
        n_after = int(np.count_nonzero(points.id > last))
        if n_after and not looks:
            _warn(
                f"The last {n_after} of {len(points)} points have no reference: the first {last} "
                "are taken for the sample. This is right if labelling did not end because of what "
                "had been found, and nobody looks a second time; plan looks, or a climb, to look "
                "more often."
            )
        points = points.select(points.id <= last)
    n_open = int(np.count_nonzero(~points.labelled))
    if n_open:
        _warn(
            f"{n_open} of {len(points)} points have no reference: they count as errors where they "
            "are kept."
        )
    return points


def _warn(text: str) -> None:
    warnings.warn(text, HsrejectWarning, stacklevel=4)


def _tested(
    points: Sample,
    *,
    regions: Regions,
    terms: Terms,
    predicted: xr.DataArray | NDArray[Any] | None,
    facts: dict[str, Any],
) -> Certificate:
    """Return what a fixed sequence of tests certifies, from a start that no label decides."""
    errors, sizes, n_all = regions.predicted_errors(predicted), regions.sizes, regions.n_all
    keep, wrong = regions.answers(points.row, points.column, points.reference)
    n_hidden = 0 if points.design is None else max(n_all - points.design.n_pixels, 0)
    if terms.max_error * n_hidden > _MOST_HIDDEN:
        raise InputError(
            f"{n_hidden} pixels could not be drawn, too many to promise anything without knowing "
            "which. Exclude the same pixels as for the draw (exclude=, --exclude)."
        )
    n_thinned, density = np.zeros_like(sizes), np.full(sizes.size, len(points) / n_all)
    if points.kind == STRATIFIED:
        left, n_thinned, density = _thinned(points, regions)
        keep = keep & left
    # No label may decide where to begin. Without a prediction it is where the sample will probably
    # hold half as many points again as could pass without a single error.
    expected = sizes * density
    enough = np.flatnonzero(expected >= 1.5 * least_points(terms.max_error, terms.delta))
    otherwise = int(enough[0]) if enough.size else sizes.size - 1
    tests: list[Look] = []
    # Fixed-sequence testing: every test may spend all of delta, because the first that fails is the
    # last. A broken promise needs the first bad region of a fixed order to pass.
    start = start_of(sizes, errors, terms, looks=expected[:, None], otherwise=otherwise)
    for at in range(start, sizes.size):
        look = replace(
            Look.at(regions, at),
            n_kept=int(keep[at].sum()),
            n_errors=int((keep[at] & wrong[at]).sum()),
            n_thinned=int(n_thinned[at]),
            density=float(density[at]) if n_thinned[at] else 0.0,
        )
        tests.append(look.judged(terms, climb=False, n_hidden=n_hidden))
        if not tests[-1].passed:
            break
    facts = facts | {"n_points": len(points), "n_pixels": n_all - n_hidden, "n_hidden": n_hidden}
    begin = 0 if facts["stacked"] else climb_start(regions, errors, terms)
    return _promise(points, regions, terms, tests, start=begin, most=n_all, **facts)


def _promise(
    points: Sample,
    regions: Regions,
    terms: Terms,
    tests: list[Look],
    *,
    start: int,
    most: int = 0,
    **facts: Any,
) -> Certificate:
    """Return the certificate of some tests, with the ways out if nothing has passed to the end.

    A climb would begin with the region `start`, and has at most `most` labels.
    """
    n_cannot_tell = int(np.count_nonzero(points.reference == CANNOT_TELL))
    facts |= {"confidence_level": 1 - terms.delta, "n_cannot_tell": n_cannot_tell}
    promise = Certificate(max_error=terms.max_error, tests=tuple(tests), **facts)
    if promise.threshold is not None and regions.node is None:
        return replace(promise, lost_classes=_lost_classes(regions, promise.threshold))
    if promise.threshold is not None or promise.stacked or not promise.finished:
        return promise
    rate = cautious_rate(regions, points, start)
    n_needed, error = ways_out(int(regions.sizes[start]), rate, terms, most=most)
    return replace(promise, n_needed=n_needed, smallest_error=error)


def _thinned(
    points: Sample, regions: Regions
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """Return which points (region, point) are left of one density, how many, and that density.

    The density is that of the sparsest stratum which a region touches; of the other strata the
    first points, in the order of the draw, are kept.
    """
    _, first, stratum, n_drawn = np.unique(
        points.stratum, return_index=True, return_inverse=True, return_counts=True
    )
    n_pixels, label = points.stratum_pixels[first], points.label[first]
    rank = np.empty(len(points), dtype=np.int64)  # within its stratum, in the order of the draw
    order = np.lexsort((points.id, stratum))
    rank[order] = np.arange(len(points)) - np.repeat(np.cumsum(n_drawn) - n_drawn, n_drawn)
    first_region = [regions.depth[regions.frame.label.values == one].min() for one in label]
    touched = np.array(first_region) <= np.arange(regions.sizes.size)[:, None]
    # Strata were sampled at different densities. The sparsest one in a region sets the density for
    # all: then every pixel of the region had the same chance, as in a random sample.
    share = np.where(touched, n_drawn / n_pixels, np.inf).min(axis=1, keepdims=True)
    quota = np.where(touched, np.floor(share * n_pixels + 1e-9), 0).astype(np.int64)
    density = np.where(touched, quota / n_pixels, np.inf).min(axis=1)
    return rank < quota[:, stratum], quota.sum(axis=1), density


def _lost_classes(regions: Regions, threshold: float) -> tuple[str, ...]:
    """Return the names of classes that lost more than nine tenths of their pixels."""
    counts = np.bincount(regions.kept_labels(regions.thresholds[-1]).ravel())
    left = np.bincount(regions.kept_labels(threshold).ravel(), minlength=counts.size)
    gone = [int(value) for value in np.flatnonzero(left < 0.1 * counts) if value != REJECTED]
    return tuple(map(schema.class_table(regions.frame.label).completed(gone).name_of, gone))


def _climbed(
    sample: Sample, *, climbs: list[Climb], plan: Design, facts: dict[str, Any]
) -> Certificate:
    """Return how far a climb, or those of the classes, has come with the labels that there are."""
    used_up = len(sample) >= plan.n_points and bool(sample.labelled.all())
    drawn = f"a climb drawn by hsreject, seed {plan.seed}"
    facts = facts | {"drawn": drawn, "per_class": plan.per_class}
    frame = climbs[0].regions.frame
    parts, kept_pixels = [], np.zeros(frame.label.shape, dtype=bool)
    for climb in climbs:
        walk, regions = climb.walk(climb.outcome(sample)), climb.regions
        finished = used_up or not walk.asked.size
        mine = sample.select(regions.depth[sample.row, sample.column] < regions.sizes.size)
        part = _promise(
            mine,
            regions,
            climb.terms,
            [look for look in walk.looks if look.n_kept],
            start=climb.start,
            n_points=int(np.count_nonzero(mine.labelled)),
            n_pixels=regions.n_all,
            n_planned=climb.terms.n,
            finished=finished,
            n_more=None if finished else walk.n_more,
            class_value=regions.node or 0,
            class_name="" if regions.node is None else frame.nodes.name_of(regions.node),
            **facts,
        )
        if part.threshold is not None:
            kept_pixels |= regions.kept_labels(part.threshold) != REJECTED
        parts.append(part)
    if not plan.per_class:
        return parts[0]
    errors = [one.smallest_error for one in parts if one.smallest_error]
    return replace(
        parts[0],
        confidence_level=plan.confidence_level,
        n_points=int(np.count_nonzero(sample.labelled)),
        n_pixels=frame.n_pixels,
        tests=(),
        n_planned=plan.n_points,
        finished=all(one.finished for one in parts),
        n_more=min((one.n_more for one in parts if one.n_more), default=None),
        smallest_error=min(errors, default=None),
        n_cannot_tell=int(np.count_nonzero(sample.reference == CANNOT_TELL)),
        by_class=tuple(parts),
        n_promised=int(np.count_nonzero(kept_pixels)),
        class_value=0,
        class_name="",
    )
