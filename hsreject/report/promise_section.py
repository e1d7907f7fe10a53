"""The part of a report that says what can be promised of a run, and how it turned out."""

from __future__ import annotations

import xarray as xr

from hsreject.plot.promise_displays import CertificateDisplay
from hsreject.plot.style import COLUMN_WIDTH, new_row
from hsreject.promise.certificate import Certificate
from hsreject.promise.run_promise import promise_text
from hsreject.report.figures import Pictures
from hsreject.report.findings import percent
from hsreject.report.page import Section, Table
from hsreject.schema import SEED


def promise_sections(tree: xr.DataTree, drawn: Pictures) -> list[Section]:
    """Return the section of the promise; none without promise."""
    if "promise" not in tree:
        return []
    figure, (ax,) = new_row(1, COLUMN_WIDTH, 2.7)
    CertificateDisplay(
        Certificate.from_json(str(tree.children["promise"].attrs["certificate"]))
    ).plot(ax)
    picture = drawn.curves(
        "promise",
        figure,
        "The certificate of the delivered map",
        "Coverages are tested from left to right until one test fails; the last that passed is "
        "certified.",
    )
    promise = tree.children["promise"].to_dataset(inherit=False)
    rows = tuple(_row(promise.sel({SEED: seed})) for seed in promise[SEED].values)
    headings = ("seed", "certified", "sampled and kept", "wrong", "kept of the others", "wrong")
    table = Table(
        (*headings, "wrong of all", "outcome"),
        rows,
        "A random half of the test pixels certifies; the other half, which chose nothing, tells "
        "what to expect of others. The promise is about all test pixels and holds if few enough of "
        "those kept are wrong.",
    )
    text = promise_text(tree.children["promise"].attrs)
    return [Section("What can be promised", text, tables=(table,), pictures=(picture,))]


def _row(one: xr.Dataset) -> tuple[str, ...]:
    """Return the row of a seed."""
    seed = str(one[SEED].item())
    if not one["coverage"] > 0:
        return (seed, "nothing", *[""] * 6)
    shares = [
        percent(float(one[column]))
        for column in ("coverage", "kept_share", "kept_error", "error_of_all")
    ]
    n_kept, wrong = (str(int(one[count])) for count in ("n_kept", "n_wrong"))
    return seed, shares[0], n_kept, wrong, *shares[1:], "held" if one["held"] else "did not hold"
