"""Certificates: what is promised of a map, on what grounds, and for that map only."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import __version__, schema
from hsreject.certification.earlier_certificates import EarlierTest, facts_of
from hsreject.certification.exact_tests import Requirement, Test, fewest_points
from hsreject.certification.frame import node_of, ranking_of
from hsreject.certification.planning import Outlook
from hsreject.certification.sample import EACH, RANDOM, SEQUENTIAL
from hsreject.certification.sentences import sentence
from hsreject.errors import FileError, InputError
from hsreject.files import existing, replacing
from hsreject.io.vectors.spreadsheet import write_csv
from hsreject.schema import LABEL_WITH_REJECTION
from hsreject.templates import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr
    from numpy.typing import NDArray

FORMAT_NUMBER = 2  # of the file; 1, which was not written, is that of version 0.3
_FORMAT = "hsreject certificate"
SEQUENTIAL_RULE, FIXED_SEQUENCE_RULE = "sequential 1", "fixed sequence 1"
_FIGURES = ("threshold", "coverage", "n_kept", "n_errors", "upper_bound", "max_error")
"""What follows from the facts of a certificate: written for programs, and compared when read."""
_SENTENCES = ("statement", "applies_to", "drawn")
"""A copy for readers, which is never compared."""
_TEST_COLUMNS = ("threshold", "n_pixels", "coverage", "n_kept", "n_errors", "boundary")
_MOST_WRONG = 1000  # pixels that the promise allows among all labels: boundaries take room for them
_MOST_POINTS = 10**7  # of a sample whose certificate is read


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is promised of a map, or of one of its classes or groups: one sequence of tests.

    Attributes
    ----------
    requirement : Requirement
        The largest error, the chance delta to promise too much, and the labels that can be made.
    tests : tuple of Test
        The sequence as far as it was tested: threshold, pixels, labels looked at, wrong ones, and
        the critical number, the most wrong ones with which a region passes. Where some test failed,
        it is the last one.
    n_pixels, n_points : int
        Pixels that coverages are shares of, and labelled points among them.
    finished : bool
        False while a sequential design may go on.
    outlook : Outlook
        What more labels would probably certify; no part of the guarantee.
    class_value, class_name : int, str
        The class or group that it is about; 0 and "" for the whole map.
    rule : str
        How critical numbers follow from counts: "sequential 1" (boundaries of several looks) or
        "fixed sequence 1" (one look at each region).
    """

    rule: str
    requirement: Requirement
    tests: tuple[Test, ...]
    n_pixels: int
    n_points: int
    finished: bool = True
    outlook: Outlook = field(default_factory=Outlook)
    class_value: int = 0
    class_name: str = ""

    @property
    def last_passed(self) -> Test | None:
        """The test of the region that is kept; None where nothing can be promised."""
        return next((test for test in reversed(self.tests) if test.passed), None)

    @property
    def threshold(self) -> float | None:
        """The smallest confidence to keep, or the position of the map in its stack."""
        return None if self.last_passed is None else self.last_passed.threshold

    @property
    def coverage(self) -> float:
        """Share of the pixels that is kept; 0 where nothing can be promised."""
        return 0.0 if self.last_passed is None else self.last_passed.coverage

    @property
    def n_kept(self) -> int:
        """Labelled points looked at in the region that is kept."""
        return 0 if self.last_passed is None else self.last_passed.n_looked

    @property
    def n_errors(self) -> int:
        """Wrong ones of these."""
        return 0 if self.last_passed is None else self.last_passed.n_wrong

    @property
    def max_error(self) -> float:
        """Share of the kept pixels that may be wrong."""
        return self.requirement.max_error

    @property
    def upper_bound(self) -> float:
        """Exact upper confidence bound of the share of wrong pixels among the kept.

        It would hold if this coverage had been the only one asked about; what is promised is
        `max_error`. NaN where nothing can be promised.
        """
        return math.nan if self.last_passed is None else self.upper_bound_of(self.last_passed)

    def upper_bound_of(self, test: Test) -> float:
        """Bound the share of wrong pixels of a tested region; of all its looks, not the last."""
        earlier: list[tuple[int, int]] = []
        if self.rule == SEQUENTIAL_RULE:
            steps = self.requirement.boundaries(test.n_units)
            earlier = [step for step in steps if step[0] < test.n_looked]
        return test.upper_bound(self.requirement.delta, earlier)

    def is_consistent(self) -> bool:
        """Tell whether the tests follow from their counts, under the rule."""
        if self.rule not in {SEQUENTIAL_RULE, FIXED_SEQUENCE_RULE}:
            return False
        sequential = self.rule == SEQUENTIAL_RULE
        passed = [test.passed for test in self.tests]
        sizes = [test.n_units for test in self.tests]
        critical = (
            test.critical_number_in(self.requirement, sequential=sequential) for test in self.tests
        )
        return (
            all(passed[:-1])
            and sizes == sorted(sizes)
            and all(test.coverage == test.share_of(self.n_pixels) <= 1 for test in self.tests)
            and all(
                test.critical_number == number
                for test, number in zip(self.tests, critical, strict=True)
            )
        )


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What is promised of a map, and on what grounds.

    Attributes
    ----------
    map_id, shape : str, tuple of int
        Tell the map, labels and confidences, from any other one; its rows and columns.
    n_pixels : int
        Pixels of the map that the promise is about.
    design, origin, seed : str, str, int or None
        How the points were drawn: "random" or "sequential" ("stratified" in certificates of version
        0.3); by a "draw" of hsreject with this seed, by the "user", or as half of the "test pixels"
        of a run.
    guarantees : tuple of Guarantee
        What is promised and the tests behind it: of the map, or of each class. A map that may
        answer coarser has those of its groups, too, which are about all pixels below.
    per_class, confidence_level : str, float in (0, 1)
        Whether the guarantees of classes hold "together" or "each"; "" for the map as a whole. Of
        all samples that could have been drawn, at least the share `confidence_level` leads to
        promises that hold.
    stacked : bool
        Whether the sequence is a stack of maps instead of thresholds on one confidence.
    n_planned, n_points, n_kept_pixels : int
        Labels that the design was drawn with, labelled points of it, and pixels of the map that are
        kept.
    waiting : tuple of int
        Points of a sequential design, by their numbers (`id`), that were handed out, have no answer
        yet, and hold up its next step.
    n_cannot_tell, coverage_if_right : int, float
        Sampled pixels that nobody could label, which count as wrong, and what would be kept had
        they been right: what they cost.
    lost_classes : tuple of str
        Classes of the map that lost more than nine tenths of their pixels.

    See Also
    --------
    hsreject.certify : makes one.
    hsreject.plot.CertificateDisplay : draws its tests.
    """

    map_id: str
    shape: tuple[int, ...]
    n_pixels: int
    design: str = RANDOM
    origin: str = "user"
    seed: int | None = None
    guarantees: tuple[Guarantee, ...]
    per_class: str = ""
    confidence_level: float
    stacked: bool = False
    n_planned: int
    n_points: int
    n_kept_pixels: int
    waiting: tuple[int, ...] = ()
    n_cannot_tell: int = 0
    coverage_if_right: float = 0.0
    lost_classes: tuple[str, ...] = ()

    # What follows from the guarantees.

    @property
    def by_class(self) -> tuple[Guarantee, ...]:
        """The guarantees of classes and groups; none where there is one for the whole map."""
        return self.guarantees if self.per_class else ()

    @property
    def tests(self) -> tuple[Test, ...]:
        """The tests of the map as a whole; none where each class has its own."""
        return () if self.per_class else self.guarantees[0].tests

    @property
    def max_error(self) -> float:
        """Share of the kept pixels that may be wrong."""
        return self.guarantees[0].max_error

    @property
    def threshold(self) -> float | None:
        """The smallest confidence to keep; for a stack of maps, the position of the certified one.

        None where nothing can be certified, and where each class has its own (`by_class`).
        """
        return None if self.per_class else self.guarantees[0].threshold

    @property
    def coverage(self) -> float:
        """Share of the pixels that is kept; 0 where nothing can be certified."""
        if self.per_class:
            return self.n_kept_pixels / self.n_pixels
        return self.guarantees[0].coverage

    @property
    def n_kept(self) -> int:
        """Sampled pixels that are kept; of a sequential design, those looked at in that region."""
        return sum(one.n_kept for one in self.guarantees)

    @property
    def n_errors(self) -> int:
        """Sampled pixels that are kept and wrong."""
        return sum(one.n_errors for one in self.guarantees)

    @property
    def upper_bound(self) -> float:
        """Exact upper confidence bound of the share of wrong pixels among the kept.

        It would hold if this coverage had been the only one asked about; what is promised is
        `max_error`. NaN without a threshold.
        """
        return math.nan if self.per_class else self.guarantees[0].upper_bound

    @property
    def finished(self) -> bool:
        """False while a sequential design may go on."""
        return all(one.finished for one in self.guarantees)

    # What more labels would probably do: of guarantees of classes, the nearest.

    @property
    def n_more(self) -> int | None:
        """Labels that are likely to certify the next region of a sequential design."""
        return min(
            (one.outlook.n_more for one in self.guarantees if one.outlook.n_more), default=None
        )

    @property
    def n_needed(self) -> int | None:
        """Labels of a sequential design that would almost certainly certify something."""
        return None if self.per_class else self.guarantees[0].outlook.n_needed

    @property
    def smallest_error(self) -> float | None:
        """The smallest error that as many labels would almost certainly certify."""
        errors = (one.outlook.smallest_error for one in self.guarantees)
        return min((error for error in errors if error), default=None)

    # Sentences.

    @property
    def drawn(self) -> str:
        """How the sample was drawn, in words."""
        return sentence("drawn", it=self)

    @property
    def statement(self) -> str:
        """What is promised, for which pixels, from which sample: one sentence or two."""
        chance, n_all = 1 - self.confidence_level, self.n_pixels
        least = 0 if self.design == SEQUENTIAL else fewest_points(n_all, self.max_error, chance)
        return sentence("statement", it=self, least=least)

    @property
    def applies_to(self) -> str:
        """Which map the promise is about, and which not: one sentence."""
        return sentence("applies_to", it=self)

    def rows(self) -> list[tuple[str, ...]]:
        """List class, promised error, coverage, labels looked at and wrong ones, per class."""
        rows = []
        for one in self.by_class:
            cells: tuple[object, ...] = ("cannot be promised", "", one.n_points, "")
            if one.coverage:
                share = percent(one.coverage)
                cells = (percent(one.max_error, None), share, one.n_points, one.n_errors)
            rows.append((one.class_name, *map(str, cells)))
        return rows

    # Files.

    def to_json(self) -> str:
        """Write the certificate as JSON; :meth:`from_json` is the inverse."""
        facts = asdict(self)
        figures = {name: getattr(self, name) for name in _FIGURES}
        if self.threshold is None:
            figures["upper_bound"] = None  # JSON has no NaN
        head = {"format": _FORMAT, "format_number": FORMAT_NUMBER, "hsreject": __version__}
        sentences = {name: getattr(self, name) for name in _SENTENCES}
        entries = head | {"digest": _digest(facts)} | sentences | figures | facts
        return json.dumps(entries, indent=2, allow_nan=False) + "\n"

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the certificate into a small JSON file; return its path."""
        with replacing(Path(path), overwrite=overwrite) as work:
            work.write_text(self.to_json(), encoding="utf-8")
        return Path(path)

    def write_tables(self, folder: Path) -> None:
        """Write `tests.csv` and, of guarantees of classes, `classes.csv` into a folder."""
        tests = [
            (one.class_name, *(getattr(test, name) for name in _TEST_COLUMNS))
            for one in self.guarantees
            for test in one.tests
        ]
        write_csv(folder / "tests.csv", ["class", *_TEST_COLUMNS], tests)
        if self.by_class:
            names = ("class_name", "max_error", "threshold", "coverage", "n_points", "n_errors")
            rows = [[getattr(one, name) for name in names] for one in self.by_class]
            write_csv(folder / "classes.csv", names, rows)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read the certificate that :meth:`to_json` wrote, or version 0.3; raise if it was edited.

        Every critical number, outcome and figure is computed again from the counts. The sentences
        in the file are those of the version that wrote it.
        """
        try:
            entries = json.loads(text)
            if entries["format"] != _FORMAT:
                raise ValueError(entries["format"])
            number = entries.get("format_number", 1)
            certificate = cls._read(entries, number) if number <= FORMAT_NUMBER else None
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ):
            raise InputError(
                "This is not a certificate. Give the certificate.json of 'hsreject certify', or "
                "certify again."
            ) from None
        if number > FORMAT_NUMBER:
            raise InputError(
                f"The certificate is of a newer version, hsreject {entries.get('hsreject')} "
                f"(format {number}; hsreject {__version__} reads up to {FORMAT_NUMBER}). Update "
                "hsreject, or certify again."
            )
        if certificate is None:
            raise InputError(
                "The certificate was edited, and contradicts itself: its threshold, counts or "
                "bounds do not follow from its tests, or its digest is of other facts. Take the "
                "file as it was written, or certify again."
            )
        return certificate

    @classmethod
    def _read(cls, entries: Mapping[str, Any], number: int) -> Certificate | None:
        """Make the certificate of stored entries; None if they contradict each other."""
        if number == 1:
            facts = facts_of(entries)
        else:
            facts = {one.name: entries[one.name] for one in fields(cls)}
            facts = facts if entries["digest"] == _digest(facts) else None
        if facts is None or not _counts_are_possible(facts):  # before room is made for them
            return None
        certificate = cls(
            **facts
            | {name: tuple(facts[name]) for name in ("shape", "lost_classes", "waiting")}
            | {"guarantees": tuple(map(_guarantee, facts["guarantees"]))}
        )
        figures = {name: getattr(certificate, name) for name in _FIGURES}
        if certificate.threshold is None:
            figures["upper_bound"] = None
        stored = {name: entries[name] for name in _FIGURES}
        if number == 1:  # bounds of sequential designs took the last look for the only one
            stored["upper_bound"] = figures["upper_bound"]
        return certificate if certificate._is_consistent() and figures == stored else None

    def _is_consistent(self) -> bool:
        """Tell whether the guarantees follow from their counts, and the rest from them."""
        rule = SEQUENTIAL_RULE if self.design == SEQUENTIAL else FIXED_SEQUENCE_RULE
        chance = 1 - self.confidence_level
        n_shares = 1 if self.per_class in {"", EACH} else len(self.guarantees)
        kept = [one.last_passed.n_units for one in self.guarantees if one.last_passed]
        if not max(kept, default=0) <= self.n_kept_pixels <= sum(kept):
            return False
        if not self.per_class:
            (one,) = self.guarantees
            if (one.n_pixels, one.requirement.n_labels) != (self.n_pixels, self.n_planned):
                return False
        return all(
            one.rule == rule
            and one.is_consistent()
            and one.n_pixels <= self.n_pixels
            and bool(one.class_value) == bool(self.per_class)
            and one.max_error == self.max_error
            and math.isclose(one.requirement.delta * n_shares, chance, rel_tol=1e-6)
            for one in self.guarantees
        )

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Certificate:
        """Read the certificate in a JSON file."""
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
        """Reject all that is not certified, as rejectors do.

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
        ranking = ranking_of(confidence, on_map)
        tree = ranking.tree
        self.check_map(on_map.shape, ranking.id)
        limits: Any = threshold
        if self.by_class:  # of the answer of each pixel at each level
            limits = np.full((1 if tree is None else tree.n_levels, *on_map.shape), np.inf)
            promised = [one for one in self.by_class if one.threshold is not None]
            for one in promised:
                level, below = node_of(one.class_value, tree)
                limits[level][np.isin(on_map.values, below)] = one.threshold
        maps = ranking.at(limits, attrs={"certificate": self.statement})
        answer = maps[LABEL_WITH_REJECTION]
        answer = answer.assign_attrs({schema.ZERO_MEANING: "rejected"})
        return maps.assign({LABEL_WITH_REJECTION: answer})


def _digest(facts: Mapping[str, Any]) -> str:
    """Digest the facts of a certificate, against accidents and edits by hand."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _counts_are_possible(facts: Mapping[str, Any]) -> bool:
    """Tell whether the counts of a stored certificate fit its sample, and samples that exist.

    Boundaries take room for the errors of every look, and time for the pixels that were hidden.
    """
    n_points = facts["n_points"]
    for one in facts["guarantees"]:
        requirement = one["requirement"]
        share = requirement["max_error"] if requirement["delta"] < 0.5 else 1
        n_wrong = requirement["n_labels"] * share if facts["design"] == SEQUENTIAL else 0
        n_hidden = max((test.get("n_hidden", 0) for test in one["tests"]), default=0)
        n_cases = 1 + requirement["max_error"] * n_hidden
        if (
            max(n_wrong, n_cases) > _MOST_WRONG
            or n_points * n_cases > _MOST_POINTS
            or not all(
                0 <= test["n_wrong"] <= test["n_looked"] <= n_points for test in one["tests"]
            )
        ):
            return False
    return True


def _guarantee(facts: Mapping[str, Any]) -> Guarantee:
    """Make the guarantee of stored facts."""
    requirement = Requirement(**facts["requirement"])
    made = {
        "requirement": requirement,
        "outlook": Outlook(**facts["outlook"]),
        "tests": tuple(_test(test, requirement) for test in facts["tests"]),
    }
    return Guarantee(**{**facts, **made})


def _test(facts: Mapping[str, Any], requirement: Requirement) -> Test:
    """Make the test of stored facts."""
    test = EarlierTest(**facts) if "n_thinned" in facts else Test(**facts)
    if facts["critical_number"] is None:  # the first of version 0.3 kept p-values instead
        number = test.critical_number_in(requirement, sequential=False)
        return replace(test, critical_number=number)
    return test
