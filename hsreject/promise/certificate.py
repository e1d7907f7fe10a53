"""Certificates: what is promised of a map, kept in a small file and applied to that map only."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import __version__
from hsreject.class_tree import ClassTree
from hsreject.errors import FileError, InputError
from hsreject.files import existing, replacing
from hsreject.promise.climb import Terms
from hsreject.promise.fixed_sequence import ROUNDING, Counts, least_points
from hsreject.promise.frame import map_id, node_of, percent, ranking_of
from hsreject.promise.sample import CLIMB, EACH, RANDOM
from hsreject.rejection.hierarchical import answer_map
from hsreject.rejection.rejector import rejection_maps
from hsreject.schema import (
    LABEL_WITH_REJECTION,
    LEVEL,
    REJECTED,
    ZERO_MEANING,
    as_map,
    nodata_label,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FORMAT = "hsreject certificate"
_FOLLOWING = (
    "statement", "applies_to", "threshold", "coverage", "n_kept", "n_errors", "upper_bound",
)  # fmt: skip
"""What follows from a certificate's tests: written for people, and compared when it is read."""


@dataclass(frozen=True)
class TestedPoint:
    """One step of the sequence: an operating point and how its test came out."""

    threshold: float  # the smallest confidence kept, or the position of the map in its stack
    coverage: float  # share of the pixels that is kept
    n_kept: int  # sampled and kept; of a climb, the pixels of the last look at this region
    n_errors: int  # of these
    p_value: float  # of so few errors, if just too many pixels of the region were wrong
    upper_bound: float  # of the share of wrong pixels, for this region alone
    n_pixels: int  # of the region
    boundary: int | None = None  # of a climb: the most errors with which the look passes
    n_thinned: int | None = None  # of a stratified sample: points left of one density,
    density: float | None = None  # and that density

    def passes(self, confidence_level: float) -> bool:
        """Tell whether the region passed."""
        if self.boundary is not None:
            return self.n_errors <= self.boundary
        return self.p_value <= 1 - confidence_level + ROUNDING


def points_of(
    counts: Counts,
    thresholds: NDArray[np.float64],
    terms: Terms,
    *,
    n_all: int,
    n_hidden: int = 0,
    boundary: list[int] | None = None,
) -> tuple[TestedPoint, ...]:
    """Return the tests of regions, one after the other."""
    columns = (
        thresholds,
        counts.n_pixels / n_all,
        counts.n_kept,
        counts.n_errors,
        counts.p_values(terms.max_error, n_hidden),
        counts.upper_bounds(1 - terms.delta),
        counts.n_pixels,
        boundary,
        counts.n_thinned,
        None if counts.n_thinned is None else counts.density,
    )
    none = [None] * thresholds.size
    rows = (none if column is None else np.asarray(column).tolist() for column in columns)
    return tuple(TestedPoint(*values) for values in zip(*rows, strict=True))


@dataclass(frozen=True)
class Certificate:
    """What is promised of a map, and why.

    Attributes
    ----------
    max_error, confidence_level : float in (0, 1)
        What was asked for: at most `max_error` of the kept pixels are wrong. Of all samples that
        could have been drawn, at least the share `confidence_level` leads to a promise that holds.
    n_points : int
        Sampled pixels, of a climb those with a label.
    n_pixels : int
        Pixels of the map that the promise speaks of.
    n_needed : int or None
        Labels of a climb that would probably certify something, where a sample that was drawn at
        once certifies nothing; None otherwise, and where no number is in sight that would do.
    drawn : str
        How the sample was drawn, in words.
    tests : tuple of TestedPoint
        The sequence as far as it was tested. Where some test failed, it is the last one.
    map_id : str
        Tells the map, labels and confidences, from any other one.
    shape : tuple of int
        Rows and columns of the map.
    stacked : bool
        Whether the sequence is a stack of maps instead of thresholds on one confidence.
    design : str
        "random", "stratified" or "climb".
    n_hidden : int
        Pixels of the map that could not be drawn, where nobody has said again which.
    n_planned : int
        Labels that a climb was planned with.
    finished : bool
        False while a climb may go on.
    n_more : int or None
        Of a climb that may go on: how many more labels are likely to certify its next step; None if
        none of its looks is likely to pass.
    smallest_error : float or None
        Where nothing can be certified: the smallest error that a climb of so many labels would
        probably promise.
    n_cannot_tell : int
        Sampled pixels that nobody could label, which count as wrong.
    coverage_if_right : float
        What would be kept had all of these been right: what they cost.
    lost_classes : tuple of str
        Classes of the map that lost more than nine tenths of their pixels.
    by_class : tuple of Certificate
        Of a climb for each class: the promise of each, with its `class_value` and `class_name`. A
        map that may answer coarser has those of its groups, too, which are about all pixels below.
    per_class : str
        "together" or "each": whether all these promises hold with the confidence level, or each.
    n_promised : int
        Pixels that the promises of classes and groups keep.

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
    n_needed: int | None
    drawn: str
    tests: tuple[TestedPoint, ...]
    map_id: str
    shape: tuple[int, int]
    stacked: bool = False
    design: str = RANDOM
    n_hidden: int = 0
    n_planned: int = 0
    finished: bool = True
    n_more: int | None = None
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

    @cached_property
    def _promised(self) -> TestedPoint | None:
        """The last test that passed."""
        passed = [test for test in self.tests if test.passes(self.confidence_level)]
        return passed[-1] if passed else None

    @property
    def threshold(self) -> float | None:
        """The smallest confidence to keep; for a stack of maps, the position of the certified one.

        None where nothing can be certified, and where each class has its own (`by_class`).
        """
        return None if self._promised is None else self._promised.threshold

    @property
    def coverage(self) -> float:
        """Share of the pixels that is kept; 0 where nothing can be certified."""
        if self.by_class:
            return self.n_promised / self.n_pixels
        return 0.0 if self._promised is None else self._promised.coverage

    @property
    def n_kept(self) -> int:
        """Sampled pixels that are kept; of a climb, those looked at in the region that is kept."""
        own = 0 if self._promised is None else self._promised.n_kept
        return own + sum(one.n_kept for one in self.by_class)

    @property
    def n_errors(self) -> int:
        """Sampled pixels that are kept and wrong."""
        own = 0 if self._promised is None else self._promised.n_errors
        return own + sum(one.n_errors for one in self.by_class)

    @property
    def upper_bound(self) -> float:
        """Exact upper confidence bound of the share of wrong pixels among the kept.

        It would hold if this coverage had been the only one asked about; what is promised is
        `max_error`. NaN without a threshold.
        """
        return math.nan if self._promised is None else self._promised.upper_bound

    # Words.

    @property
    def statement(self) -> str:
        """What is promised, for which pixels, from which sample: one sentence or two."""
        lost = ""
        if self.lost_classes:
            lost = f"Of {', '.join(self.lost_classes)} more than nine tenths are rejected."
        cost = ""
        if self.n_cannot_tell:
            cost = (
                f"{self.n_cannot_tell} points that nobody could label count as wrong; had they "
                f"been right, {percent(self.coverage_if_right, 1)} would be kept."
            )
        promise = self._promise() if self.coverage > 0 else self._nothing()
        return " ".join(filter(None, [promise, lost, cost, self._next_step()]))

    def _promise(self) -> str:
        error, level = percent(self.max_error), percent(self.confidence_level)
        if self.by_class:
            return self._promise_of_classes(error, level)
        which = "kept pixels" if not self.class_name else f"pixels kept as {self.class_name}"
        looked = "looked at" if self.design == CLIMB else "kept"
        return (
            f"With {level} confidence at most {error} of the {which} are wrong: kept are "
            f"{percent(self.coverage, 1)} of the {self.n_pixels} pixels that the sample was drawn "
            f"from, and of {self.n_points} sampled pixels ({self.drawn}) {self.n_kept} are "
            f"{looked} and {self.n_errors} of those wrong."
        )

    def _promise_of_classes(self, error: str, level: str) -> str:
        promised = [one for one in self.by_class if one.threshold is not None]
        others = [one.class_name for one in self.by_class if one.threshold is None]
        which = "each on its own" if self.per_class == EACH else "all together"
        overlapping = sum(one.n_pixels for one in self.by_class) > self.n_pixels
        named = "classes and groups" if overlapping else "classes"
        listed = ", ".join(f"{one.class_name} {percent(one.coverage, 0)}" for one in promised)
        cannot = f" Cannot be promised: {', '.join(others)}." if others else ""
        return (
            f"With {level} confidence, {which}, at most {error} of the pixels kept as each of "
            f"these {named} are wrong, and so much of them is kept: {listed}; of all "
            f"{self.n_pixels} pixels {percent(self.coverage, 1)}, after {self.n_points} labels "
            f"({self.drawn}).{cannot}"
        )

    def _nothing(self) -> str:
        error, classes = percent(self.max_error), " of any class" if self.by_class else ""
        if self.design == CLIMB and not self.finished:
            return f"Nothing is certified yet{classes} with {self.n_points} labels."
        wish = f"Nothing can be certified{classes} with this sample of {self.n_points} pixels"
        least = math.ceil(1.5 * least_points(self.max_error, self.confidence_level))
        if self.n_points < least:
            return f"{wish}: fewer than {least} do not prove {error}, even if all are right."
        if not self.tests:
            return f"{wish}."
        first = self.tests[0]
        return (
            f"{wish}: of the surest {percent(first.coverage, 0)} {first.n_errors} of "
            f"{first.n_kept} are wrong, too many for a promise of {error}."
        )

    def _next_step(self) -> str:
        if self.design == CLIMB and not self.finished:
            if self.n_more is None:
                return "None of the next looks is likely to pass: this is probably the end."
            labels = "label is" if self.n_more == 1 else "labels are"
            return f"About {self.n_more} more {labels} likely to certify the next step."
        if self.coverage > 0:
            return ""
        if self.stacked:
            return "Label more points, allow a larger error, or improve the map."
        ways = []
        if self.n_needed is not None:
            ways.append(
                f"about n = {self.n_needed} labels would be needed for {percent(self.max_error)}"
            )
        if self.smallest_error is not None:
            ways.append(
                f"with so many labels {percent(self.smallest_error)} could probably be promised"
            )
        how = "plan a climb, which labels where it counts ('hsreject sample --for-promise')"
        if not ways:
            return f"Improve the map, or allow a larger error; then {how}."
        return f"To go on, {how}: {', or '.join(ways)}."

    @property
    def applies_to(self) -> str:
        """Which map the promise is about, and which not: one sentence."""
        return (
            f"It is about this very map ({self.map_id}, {self.shape[0]} rows x {self.shape[1]} "
            "columns): the same labels and confidences. It does not hold for a map made again with "
            "other settings, by 'hsreject map' from the model of a run, of another scene or date."
        )

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return class, promised error, coverage, labels looked at and wrong ones, per class."""
        return [
            (one.class_name, "cannot be promised", "", str(one.n_points), "")
            if one.threshold is None
            else (
                one.class_name,
                percent(one.max_error),
                percent(one.coverage, 1),
                str(one.n_points),
                str(one.n_errors),
            )
            for one in self.by_class
        ]

    # Files.

    def to_json(self) -> str:
        """Return the certificate as JSON; :meth:`from_json` is the inverse."""
        entries = {name: getattr(self, name) for name in _FOLLOWING} | asdict(self)
        if self.threshold is None:
            entries["upper_bound"] = None  # JSON has no NaN
        entries = json.loads(json.dumps(entries, allow_nan=False))
        head = {"format": _FORMAT, "hsreject": __version__, "digest": _digest(entries)}
        return json.dumps(head | entries, indent=2) + "\n"

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the certificate into a small JSON file, and return its path."""
        with replacing(Path(path), overwrite=overwrite) as work:
            work.write_text(self.to_json(), encoding="utf-8")
        return Path(path)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Return the certificate that :meth:`to_json` wrote; raise if it contradicts itself."""
        entries = json.loads(text)
        if entries.pop("format") != _FORMAT:
            raise KeyError
        entries.pop("hsreject")
        digest = entries.pop("digest", None)
        if digest is None:
            raise InputError(
                "The certificate is of hsreject 0.2 and cannot be checked. Certify the map again."
            )
        read = cls._from_entries(entries)
        if digest != _digest(entries) or not _agree(entries, json.loads(_rebuilt(read).to_json())):
            raise InputError(
                "The certificate contradicts itself: its threshold, counts, bounds or statement do "
                "not follow from its tests. Take the file as it was written, or certify again."
            )
        return read

    @classmethod
    def _from_entries(cls, entries: dict[str, Any]) -> Certificate:
        names = {field.name for field in fields(cls)}
        facts = {name: value for name, value in entries.items() if name in names}
        facts["tests"] = tuple(TestedPoint(**test) for test in facts["tests"])
        facts["shape"] = tuple(facts["shape"])
        facts["lost_classes"] = tuple(facts["lost_classes"])
        facts["by_class"] = tuple(cls._from_entries(one) for one in facts["by_class"])
        return cls(**facts)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Certificate:
        """Return the certificate in a JSON file."""
        try:
            return cls.from_json(existing(path).read_text(encoding="utf-8"))
        except InputError as error:
            raise FileError(f"{path}: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise FileError(
                f"{path} is not a certificate. Give the certificate.json of 'hsreject certify'."
            ) from None

    # The map.

    @property
    def applicable_threshold(self) -> float:
        """The threshold, or an error where there is none to apply to a confidence."""
        if self.stacked:
            raise InputError(
                "The certificate is of one map in a sequence, not of a threshold on a confidence: "
                "take that map as it is."
            )
        if self.by_class:
            raise InputError(
                "The certificate has a threshold for each class, not one: take the map that "
                "'hsreject certify' wrote beside it, or Certificate.apply."
            )
        if self.threshold is None:
            raise InputError(f"The certificate has no threshold. {self.statement}")
        return self.threshold

    def check_map(self, label: xr.DataArray, confidence: xr.DataArray) -> None:
        """Raise unless label and confidence (y, x) are those that the certificate was made for."""
        self.check_shape(label.shape)
        identity = map_id(label, confidence)
        if identity != self.map_id:
            raise InputError(
                f"The certificate is of another map ({self.map_id}, this one is {identity}). It "
                "holds for the very same labels and confidences only: the same scene, model and "
                "block size. Certify this map with a sample of its own."
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless a map has the size of the one that the certificate was made for."""
        if shape != self.shape:
            ours, theirs = (
                f"{rows} rows x {columns} columns" for rows, columns in (self.shape, shape)
            )
            raise InputError(
                f"The certificate is of another map: that one has {ours}, this one {theirs}."
            )

    def apply(
        self,
        label: xr.DataArray | NDArray[Any],
        confidence: xr.DataArray | NDArray[Any],
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
        threshold: Any = None if self.by_class else self.applicable_threshold
        on_map = as_map(label, name="label")
        confidences, tree = ranking_of(confidence, on_map)
        self.check_map(on_map, confidences)
        coarsest = confidences if tree is None else confidences.isel({LEVEL: -1})
        limits = threshold
        if self.by_class:
            limits = self._limits(on_map, tree)
            kept = (confidences.values >= limits).any(axis=0)
            kept |= on_map.values == nodata_label(on_map.dtype)
            coarsest = coarsest.where(on_map.copy(data=kept), -math.inf)
            promised = [one.threshold for one in self.by_class if one.threshold is not None]
            threshold = min(promised, default=0.0)
        attrs = {"certificate": self.statement}
        maps = rejection_maps(on_map, coarsest, threshold=threshold, attrs=attrs)
        answer = maps[LABEL_WITH_REJECTION]
        if tree is not None:
            answer = answer_map(on_map, confidences, limits)
            kept_pixels = ~maps["rejected"] & (on_map != REJECTED)
            answer = answer.where(kept_pixels, answer.dtype.type(REJECTED))
        return maps.assign({LABEL_WITH_REJECTION: answer.assign_attrs({ZERO_MEANING: "rejected"})})

    def _limits(self, label: xr.DataArray, tree: ClassTree | None) -> NDArray[np.float64]:
        """Return the threshold of the answer of each pixel at each level (level, y, x)."""
        limits = np.full((1 if tree is None else tree.n_levels, *label.shape), np.inf)
        for one in self.by_class:
            if one.threshold is not None:
                level, below = node_of(one.class_value, tree)
                limits[level][np.isin(label.values, below)] = one.threshold
        return limits


def _digest(entries: dict[str, Any]) -> str:
    """Return 16 hexadecimal digits of the entries of a certificate, against accidents."""
    text = json.dumps(entries, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _agree(stored: Any, rebuilt: Any) -> bool:
    """Tell whether everything that is stored is what follows from the tests, up to rounding."""
    if isinstance(stored, dict):
        return all(_agree(value, rebuilt.get(name)) for name, value in stored.items())
    if isinstance(stored, list):
        return len(stored) == len(rebuilt) and all(map(_agree, stored, rebuilt))
    if isinstance(stored, float) and isinstance(rebuilt, float):
        return math.isclose(stored, rebuilt, rel_tol=1e-6, abs_tol=1e-12)
    return bool(stored == rebuilt)


def _rebuilt(certificate: Certificate) -> Certificate:
    """Return the certificate that follows from the counts of its own tests."""
    if certificate.by_class:
        return replace(certificate, by_class=tuple(_rebuilt(one) for one in certificate.by_class))
    if not certificate.tests:
        return certificate
    column: Any = {
        name: np.array([getattr(test, name) for test in certificate.tests])
        for name in ("n_pixels", "n_kept", "n_errors", "n_thinned", "density", "threshold")
    }
    threshold, boundary = column.pop("threshold"), None
    if certificate.tests[0].n_thinned is None:
        column |= {"n_thinned": None, "density": None}
    terms = Terms(certificate.n_planned, certificate.max_error, 1 - certificate.confidence_level)
    if certificate.design == CLIMB:
        boundary = [
            dict(terms.boundaries(test.n_pixels)).get(test.n_kept, -1) for test in certificate.tests
        ]
    tests = points_of(
        Counts(**column),
        threshold,
        terms,
        n_all=certificate.n_pixels + certificate.n_hidden,
        n_hidden=certificate.n_hidden,
        boundary=boundary,
    )
    return replace(certificate, tests=tests)
