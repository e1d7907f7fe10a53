"""Certificates of version 0.3: their facts as they are kept today, and rules of past designs.

The sentences in such a file, with which its digest was made, are not compared with those of today.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr

from hsreject.certification.exact_tests import ROUNDING, Requirement, Test, hypergeometric, too_many
from hsreject.certification.sample import SEQUENTIAL, kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True)
class EarlierTest(Test):
    """A test of a stratified sample, or of a map of which some pixels could not be drawn.

    Of a stratified sample `n_thinned` points of one `density` (per pixel) are left for a region,
    and `n_looked` and `n_wrong` count these. Up to `n_hidden` pixels of a region could not be
    drawn, if they were not stated again: then the smallest of all critical numbers counts.
    """

    n_thinned: int = 0
    density: float = 0.0
    n_hidden: int = 0

    def share_of(self, n_pixels: int) -> float:
        """Compute the share of all pixels, hidden ones included."""
        return self.n_units / (n_pixels + self.n_hidden)

    def critical_number_in(self, requirement: Requirement, *, sequential: bool) -> int:
        """Compute the critical number from the counts, the worst of all cases that may be."""
        if sequential:
            return super().critical_number_in(requirement, sequential=True)
        alpha, smallest = requirement.max_error, max(self.n_units - self.n_hidden, 0)
        n_wrong = range(too_many(smallest, alpha), too_many(self.n_units, alpha) + 1)
        # of regions that break the promise with as many wrong pixels, the largest is the worst
        n_units = [min(self.n_units, math.ceil(n / alpha - ROUNDING) - 1) for n in n_wrong]
        cases = zip(n_wrong, n_units, strict=True)
        chances = (self._chances_among(self.n_looked, *case) for case in cases)
        n_passing = ((one <= requirement.delta * (1 + ROUNDING)).sum() for one in chances)
        return int(min(n_passing)) - 1

    def _chances(self, most: int, n_wrong: int) -> NDArray[np.float64]:
        return self._chances_among(most, n_wrong, self.n_units)

    def _chances_among(self, most: int, n_wrong: int, n_units: int) -> NDArray[np.float64]:
        """Compute the chances of at most 0, 1, ..., `most` errors, were so many pixels wrong.

        Of a simple random sample they are hypergeometric. Of one thinned to a density d, errors
        among the m points left are a sum of independent draws with a mean of d M: Bin(m, d M / m)
        bounds the chance of at most d M - 1 (Hoeffding 1956).
        """
        errors = np.arange(most + 1)
        if not self.n_thinned:
            n_drawn = min(self.n_looked, n_units)
            return np.cumsum(hypergeometric(errors, n_units, n_wrong, n_drawn))
        mean = self.density * n_wrong
        chance = bdtr(errors, self.n_thinned, min(mean / self.n_thinned, 1.0))
        return np.where(errors > mean - 1, 1.0, chance)


def facts_of(entries: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert the entries of a file of version 0.3; None where its digest is of other entries."""
    digested = {key: entries[key] for key in entries if key not in {"format", "hsreject", "digest"}}
    text = json.dumps(digested, sort_keys=True, separators=(",", ":"), allow_nan=False)
    if entries["digest"] != hashlib.sha256(text.encode()).hexdigest()[:16]:
        return None
    of_classes = entries.get("by_class") or ()
    guarantees = [_guarantee(one) for one in of_classes or [entries]]
    drawn, seed = entries["drawn"], re.search(r"seed (\d+)$", entries["drawn"])
    return {
        "map_id": entries["map_id"],
        "shape": entries["shape"],
        "n_pixels": entries["n_pixels"],
        "design": kind_of(entries["design"]),
        "origin": "test pixels" if "test pixels" in drawn else "draw" if seed else "user",
        "seed": seed and int(seed[1]),
        "stacked": entries["stacked"],
        "per_class": entries["per_class"],
        "confidence_level": entries["confidence_level"],
        "guarantees": guarantees,
        "n_planned": entries["n_planned"] or entries["n_points"],
        "n_points": entries["n_points"],
        "n_kept_pixels": round(entries["coverage"] * (entries["n_pixels"] + entries["n_hidden"])),
        "waiting": (),  # was not kept
        "lost_classes": entries["lost_classes"],
        "n_cannot_tell": entries["n_cannot_tell"],
        "coverage_if_right": entries["coverage_if_right"],
    }


def _guarantee(one: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the entries of one sequence of tests."""
    is_sequential = kind_of(one["design"]) == SEQUENTIAL
    return {
        "rule": "sequential 1" if is_sequential else "fixed sequence 1",
        "requirement": {
            "n_labels": one["n_planned"] if is_sequential else one["n_points"],
            "max_error": one["max_error"],
            "delta": 1 - one["confidence_level"],
        },
        "tests": [_test(test, one["n_hidden"]) for test in one["tests"]],
        "n_pixels": one["n_pixels"],
        "n_points": one["n_points"],
        "finished": one["finished"],
        "outlook": {name: one[name] for name in ("n_more", "n_needed", "smallest_error")},
        "class_value": one["class_value"],
        "class_name": one["class_name"],
    }


def _test(test: Mapping[str, Any], n_hidden: int) -> dict[str, Any]:
    """Convert the entries of a test."""
    facts = {
        "threshold": test["threshold"],
        "n_units": test["n_pixels"],
        "coverage": test["coverage"],
        "n_looked": test["n_kept"],
        "n_wrong": test["n_errors"],
        "critical_number": test["boundary"],
    }
    if test["n_thinned"] or n_hidden:
        facts |= {"n_thinned": test["n_thinned"] or 0, "density": test["density"] or 0.0}
        facts |= {"n_hidden": n_hidden}
    return facts
