"""[promise] of a run: half of the test pixels certifies a rejection, the other half evaluates it.

The certifying half is a simple random sample of the test pixels, so the promise is about all of
them. What came of it is measured on the other half, which chose nothing, and on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from hsreject.errors import ConfigError
from hsreject.promise.certificate import Certificate
from hsreject.promise.certifying import certify, check_asked
from hsreject.registry import check_keys, in_section
from hsreject.sampling.draws import random_keys
from hsreject.schema import (
    LABEL_WITH_REJECTION,
    NO_REFERENCE,
    OPERATING_POINT,
    REJECTED,
    REJECTOR,
    SEED,
    nodata_label,
)

_STREAM = 1 << 18  # of random numbers; samplings take those of the class values, which are smaller


@dataclass(frozen=True)
class Promise:
    """What is to be promised: few errors among the kept pixels, with confidence."""

    max_error: float = 0.05
    confidence_level: float = 0.9

    @classmethod
    def from_table(cls, table: object) -> Promise:
        """Return the promise of a configuration's [promise], or say what is wrong with it."""
        if not isinstance(table, Mapping):
            raise ConfigError(f"[promise] must be a table with max_error = 0.05 (got {table!r}).")
        check_keys(table, ("max_error", "confidence_level"), section="promise")
        asked = cls(**table)
        with in_section("promise"):
            check_asked(asked.max_error, asked.confidence_level)
        return asked


def set_apart(test: xr.DataArray, seed: int) -> xr.DataArray:
    """Return a simple random half of the test pixels, as labels that are 0 elsewhere."""
    pixels = np.flatnonzero(test.values != NO_REFERENCE)
    order = np.argsort(random_keys(pixels.size, seed, _STREAM), kind="stable")
    chosen = pixels[order[: pixels.size // 2]]
    apart = np.full(test.size, NO_REFERENCE, dtype=test.dtype)
    apart[chosen] = test.values.flat[chosen]
    return test.copy(data=apart.reshape(test.shape))


def promise_of(
    promise: Promise, maps: xr.Dataset, test: xr.DataArray, sample: xr.DataArray
) -> xr.Dataset:
    """Return what can be promised of a rejector after the pixels of `sample`, and what came of it.

    `maps` holds `label` and `confidence` (y, x), or, where the labels change with what is rejected,
    `label` and `rejected` (operating_point, y, x) and what makes each point, a coordinate
    `threshold`. The promise is about test pixels: the reference of a benchmark is not a random
    sample of its scene.
    """
    label, confidence = _on_test_pixels(maps["label"], test), maps.get("confidence")
    if OPERATING_POINT in label.dims:
        label, confidence = _with_rejection(label, maps["rejected"]), None
    made = certify(
        label,
        confidence,
        sample,
        max_error=promise.max_error,
        confidence_level=promise.confidence_level,
    )
    threshold, share, error, error_of_all = made.threshold, 0.0, np.nan, np.nan
    if threshold is not None:
        if confidence is None:
            chosen = label[int(threshold)]
            threshold = float(chosen["threshold"])
        else:
            chosen = made.apply(label, confidence)[LABEL_WITH_REJECTION]
        tested = (chosen != nodata_label(chosen.dtype)).values
        others = tested & (sample == NO_REFERENCE).values
        kept, wrong = tested & (chosen != REJECTED).values, chosen.values != test.values
        share = (kept & others).sum() / others.sum()
        error = wrong[kept & others].mean() if (kept & others).any() else np.nan
        error_of_all = wrong[kept].mean()
    figures = {
        "certificate": replace(made, drawn="a random half of the test pixels").to_json(),
        "threshold": np.nan if threshold is None else threshold,
        "coverage": made.coverage,
        "upper_bound": made.upper_bound,
        "n_sampled": made.n_points,
        "n_kept": made.n_kept,
        "n_wrong": made.n_errors,
        "kept_share": share,
        "kept_error": error,
        "error_of_all": error_of_all,
        "held": not error_of_all > promise.max_error,  # nothing promised is nothing broken
    }
    return xr.Dataset({f"promise_{name}": value for name, value in figures.items()})


def _on_test_pixels(label: xr.DataArray, test: xr.DataArray) -> xr.DataArray:
    """Return label maps without data elsewhere."""
    nodata = nodata_label(label.dtype)
    return label.copy(data=np.where(test.values != NO_REFERENCE, label.values, nodata))


def _with_rejection(label: xr.DataArray, rejected: xr.DataArray) -> xr.DataArray:
    """Return a stack of maps with rejection, by what they keep of the whole scene.

    Where test pixels do not tell two maps apart, their order must not come from their labels.
    """
    order = np.argsort(-rejected.values.sum(axis=(1, 2)), kind="stable")
    rejecting = rejected.values & (label.values != nodata_label(label.dtype))
    found = label.copy(data=np.where(rejecting, REJECTED, label.values).astype(label.dtype))
    return found.isel({OPERATING_POINT: order})


def promise_attrs(promise: xr.Dataset, rejector: str) -> dict[str, str]:
    """Return what a result says of its promise: that of one rejector, which was fixed beforehand.

    Each promise holds with its confidence; the best of several, chosen afterwards, would not.
    """
    of_seeds = promise.sel({REJECTOR: rejector})
    one = of_seeds.isel({SEED: 0})
    made = Certificate.from_json(str(one["promise_certificate"].values))
    said = {"promise_rejector": rejector, "promise_statement": made.statement}
    if made.threshold is None:
        return said
    percent, level = f"{100 * made.max_error:g} %", f"{100 * made.confidence_level:g} %"
    said["promise_statement"] = (
        f"With {level} confidence at most {percent} of the test pixels that {rejector} rejection "
        f"keeps are wrong: of {made.n_points} test pixels set apart for the promise {made.n_kept} "
        f"are kept, and {made.n_errors} of those are wrong."
    )
    share, error, error_of_all = (
        100 * float(one[f"promise_{name}"]) for name in ("kept_share", "kept_error", "error_of_all")
    )
    outcome = "held" if one["promise_held"] else "did not hold"
    said["promise_evaluation"] = (
        f"On the other half of the test pixels {share:.1f} % are kept and {error:.1f} % of these "
        f"are wrong, of all kept test pixels {error_of_all:.1f} %: the promise {outcome}."
    )
    n_seeds = of_seeds.sizes[SEED]
    if n_seeds > 1:
        n_made = int((of_seeds["promise_coverage"] > 0).sum())
        n_held = n_made - int((~of_seeds["promise_held"]).sum())
        said["promise_evaluation"] += f" Of {n_made} promises with {n_seeds} seeds {n_held} held."
    return said
