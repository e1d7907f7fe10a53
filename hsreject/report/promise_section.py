"""The part of a report that says what can be promised of a run, and what came of it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hsreject.plot.promise_displays import CertificateDisplay
from hsreject.plot.style import COLUMN_WIDTH, new_row
from hsreject.promise.certificate import Certificate
from hsreject.report.figures import Pictures
from hsreject.report.page import Section, Table
from hsreject.schema import REJECTOR, SEED

ABOUT = (
    "The promise is about pixels like the reference pixels, not about the unlabelled scene: for "
    "that, label a random sample of the map (hsreject sample, hsreject certify)."
)
"""What a promise on a benchmark is about."""


def promise_words(dataset: xr.Dataset) -> str:
    """Return what is promised, what came of it and which pixels it is about; "" without any."""
    words = (dataset.attrs.get(f"promise_{name}") for name in ("statement", "evaluation"))
    said = " ".join(filter(None, words))
    return f"{said} {ABOUT}" if "promise_evaluation" in dataset.attrs else said


def promise_sections(dataset: xr.Dataset, drawn: Pictures) -> list[Section]:
    """Return the section of the promise; none without promise."""
    if "promise_certificate" not in dataset:
        return []
    first = dataset.isel({SEED: 0})
    chosen = first.sel({REJECTOR: dataset.attrs["promise_rejector"]})
    figure, (ax,) = new_row(1, COLUMN_WIDTH, 2.7)
    made = Certificate.from_json(str(chosen["promise_certificate"].values))
    CertificateDisplay(made).plot(ax)
    picture = drawn.curves(
        "promise",
        figure,
        f"The certificate, {dataset.attrs['promise_rejector']}",
        "Coverages are tested from left to right until one test fails; the last that passed is "
        "certified.",
    )
    headings = ("system", "certified", "sampled and kept", "wrong", "kept of the others", "wrong")
    rows = tuple(_row(first.sel({REJECTOR: name})) for name in dataset[REJECTOR].values)
    table = Table(
        (*headings, "wrong of all", "outcome"),
        rows,
        "A random half of the test pixels certifies; the other half, which chose nothing, tells "
        "what to expect of others. The promise is about all test pixels and holds if few enough of "
        "those kept are wrong.",
    )
    return [
        Section(
            "What can be promised", promise_words(dataset), tables=(table,), pictures=(picture,)
        )
    ]


def _row(one: xr.Dataset) -> tuple[str, ...]:
    """Return the row of a rejector."""
    name = str(one[REJECTOR].values)
    if not one["promise_coverage"] > 0:
        return (name, "nothing", *[""] * 6)
    shares = [
        ""
        if np.isnan(one[f"promise_{column}"])
        else f"{100 * float(one[f'promise_{column}']):.1f} %"
        for column in ("coverage", "kept_share", "kept_error", "error_of_all")
    ]
    kept, wrong = (str(int(one[f"promise_{count}"])) for count in ("n_kept", "n_wrong"))
    outcome = "held" if one["promise_held"] else "did not hold"
    return name, shares[0], kept, wrong, *shares[1:], outcome
