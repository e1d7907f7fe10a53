"""Certificates: what is promised of a map, kept in a small file and applied to that map only."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import KW_ONLY, asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import __version__
from hsreject.class_tree import ClassTree
from hsreject.errors import FileError, InputError
from hsreject.files import existing, replacing
from hsreject.promise.climb import Look, Terms, least_points
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
class Certificate:
    """What is promised of a map, and on what grounds.

    Attributes
    ----------
    max_error, confidence_level : float in (0, 1)
        What was asked for: at most `max_error` of the kept pixels are wrong. Of all samples that
        could have been drawn, at least the share `confidence_level` leads to a promise that holds.
    n_points : int
        Sampled pixels, of a climb those with a label.
    n_pixels : int
        Pixels of the map that the promise speaks of.
    drawn : str
        How the sample was drawn, in words.
    tests : tuple of Look
        The sequence as far as it was tested: threshold, pixels, sampled pixels, errors, and the
        most errors with which a region passes. Where some test failed, it is the last one.
    map_id, shape : str, tuple of int
        Tell the map, labels and confidences, from any other one; its rows and columns.
    design : str
        "random", "stratified" or "climb".
    stacked : bool
        Whether the sequence is a stack of maps instead of thresholds on one confidence.
    n_hidden : int
        Pixels of the map that could not be drawn, if they were not stated again.
    n_planned : int
        Labels that a climb was planned with.
    finished : bool
        False while a climb may go on.
    n_more : int or None
        Of a climb that may go on: how many more labels are likely to certify its next step.
    n_needed, smallest_error : int or None, float or None
        Where nothing can be certified: labels of a climb that would almost surely certify
        something, and the smallest error that as many labels would; None where neither is in sight.
    n_cannot_tell, coverage_if_right : int, float
        Sampled pixels that nobody could label, which count as wrong, and what would be kept had
        they been right: what they cost.
    lost_classes : tuple of str
        Classes of the map that lost more than nine tenths of their pixels.
    by_class, per_class : tuple of Certificate, str
        Of a climb for each class: the promise of each, with its `class_value` and `class_name`, and
        whether they hold "together" or "each". A map that may answer coarser has those of its
        groups, too, which are about all pixels below.
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
    drawn: str
    tests: tuple[Look, ...]
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
    def _promised(self) -> Look | None:
        """The last test that passed."""
        return next((test for test in reversed(self.tests) if test.passed), None)

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
        look = self._promised
        return math.nan if look is None else look.upper_bound(1 - self.confidence_level)

    # Words.

    @property
    def statement(self) -> str:
        """What is promised, for which pixels, from which sample: one sentence or two."""
        lost, cost = ", ".join(self.lost_classes), percent(self.coverage_if_right, 1)
        sentences = {
            self._of_classes() if self.by_class else self._of_kept(): self.coverage > 0,
            self._nothing(): not self.coverage > 0,
            f"Of {lost} more than nine tenths are rejected.": lost,
            f"{self.n_cannot_tell} points that nobody could label count as wrong; had they been "
            f"right, {cost} would be kept.": self.n_cannot_tell,
            self._next_step(): True,
        }
        return " ".join(sentence for sentence, holds in sentences.items() if holds and sentence)

    def _of_kept(self) -> str:
        pixels = f"pixels kept as {self.class_name}" if self.class_name else "kept pixels"
        return (
            f"With {percent(self.confidence_level)} confidence at most {percent(self.max_error)} "
            f"of the {pixels} are wrong: kept are {percent(self.coverage, 1)} of the "
            f"{self.n_pixels} pixels that the sample was drawn from, and of {self.n_points} "
            f"sampled pixels ({self.drawn}) {self.n_kept} are "
            f"{'looked at' if self.design == CLIMB else 'kept'} and {self.n_errors} of those wrong."
        )

    def _of_classes(self) -> str:
        promised = [one for one in self.by_class if one.threshold is not None]
        others = ", ".join(one.class_name for one in self.by_class if one.threshold is None)
        overlapping = sum(one.n_pixels for one in self.by_class) > self.n_pixels
        listing = ", ".join(f"{one.class_name} {percent(one.coverage, 0)}" for one in promised)
        return (
            f"With {percent(self.confidence_level)} confidence, "
            f"{'each on its own' if self.per_class == EACH else 'all together'}, at most "
            f"{percent(self.max_error)} of the pixels kept as each of these "
            f"{'classes and groups' if overlapping else 'classes'} are wrong, and so much of them "
            f"is kept: {listing}; of all {self.n_pixels} pixels {percent(self.coverage, 1)}, after "
            f"{self.n_points} labels ({self.drawn})."
        ) + (f" Cannot be promised: {others}." if others else "")

    def _nothing(self) -> str:
        error, classes = percent(self.max_error), " of any class" if self.by_class else ""
        if not self.finished:
            return f"Nothing is certified yet{classes} with {self.n_points} labels."
        nothing = f"Nothing can be certified{classes} with this sample of {self.n_points} pixels"
        least = math.ceil(1.5 * least_points(self.max_error, 1 - self.confidence_level))
        if self.n_points < least:
            return f"{nothing}: fewer than {least} do not prove {error}, even if all are right."
        if not self.tests:
            return f"{nothing}."
        first = self.tests[0]
        reason = "too many" if first.n_errors else "but so few points are not enough"
        return (
            f"{nothing}: of the surest {percent(first.coverage, 0)} "
            f"{first.n_errors} of {first.n_kept} are wrong, {reason} for a promise of {error}."
        )

    def _next_step(self) -> str:
        if not self.finished:
            if self.n_more is None:
                return "None of the next looks is likely to pass: this is probably the end."
            labels = "label is" if self.n_more == 1 else "labels are"
            return f"About {self.n_more} more {labels} likely to certify the next step."
        if self.coverage > 0:
            return ""
        if self.stacked:
            return "Label more points, allow a larger error, or improve the map."
        how = "plan a climb, which labels where it counts ('hsreject sample --for-promise')"
        n = f"about n = {self.n_needed} labels would be needed for {percent(self.max_error)}"
        error = f"with so many labels {percent(self.smallest_error or 0)} could be promised"
        ways = [text for text, it in ((n, self.n_needed), (error, self.smallest_error)) if it]
        if ways:
            return f"To go on, {how}: {', or '.join(ways)}."
        return (
            "These points do not tell how many labels would be enough. Improve the map, or allow a "
            f"larger error; then {how}."
        )

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
        digest = entries.pop("digest")
        certificate = cls._from_entries(entries)
        following = json.loads(certificate.to_json())
        if digest != _digest(entries) or not _agree(entries, following):
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
            return cls.from_json(existing(path).read_text(encoding="utf-8"))
        except InputError as error:
            raise FileError(f"{path}: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise FileError(
                f"{path} is not a certificate of this version. Give the certificate.json of "
                "'hsreject certify', or certify again."
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
            raise InputError(
                f"The certificate is of another map: that one has {self.shape[0]} rows x "
                f"{self.shape[1]} columns, this one {shape[0]} x {shape[1]}."
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
            answered = (confidences.values >= limits).any(axis=0)
            answered |= on_map.values == nodata_label(on_map.dtype)
            coarsest = coarsest.where(on_map.copy(data=answered), -math.inf)
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


def _agree(stored: Any, following: Any) -> bool:
    """Tell whether everything that is stored follows from the tests, up to rounding."""
    if isinstance(stored, dict):
        return all(_agree(value, following.get(name)) for name, value in stored.items())
    if isinstance(stored, list):
        return len(stored) == len(following) and all(map(_agree, stored, following))
    if isinstance(stored, float) and isinstance(following, float):
        return math.isclose(stored, following, rel_tol=1e-6, abs_tol=1e-12)
    return bool(stored == following)
