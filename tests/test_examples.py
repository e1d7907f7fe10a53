"""The gallery: every script draws one clear picture, and what the pictures say is so."""

import ast
import runpy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import multivariate_normal, norm

from tests.plot.test_style import nearest

FOLDER = Path(__file__).parents[1] / "examples"
SCRIPTS = {path.stem: path for path in sorted(FOLDER.rglob("plot_*.py"))}

every_script = pytest.mark.parametrize("name", SCRIPTS)


class Drawn(NamedTuple):
    """What a script has left: its variables, by name, and its picture."""

    names: dict[str, Any]
    figure: Figure


@cache
def run(name: str) -> Drawn:
    plt.switch_backend("agg")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "show", lambda: None)
        names = runpy.run_path(str(SCRIPTS[name]), run_name="__main__")
    (number,) = plt.get_fignums()
    figure = plt.figure(number)
    plt.close(figure)
    return Drawn(names, figure)


@every_script
def test_it_draws_one_picture_with_one_legend_that_fits(name) -> None:
    figure = run(name).figure
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    assert len(legends) <= 1
    figure.draw_without_rendering()
    needed, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    margin = 0.02  # inches: less than the width of a letter
    assert -margin < needed.x0 < needed.x1 < width + margin
    assert -margin < needed.y0 < needed.y1 < height + margin
    titles = [ax.title.get_window_extent() for ax in figure.axes if ax.get_title()]
    assert not any(one.overlaps(other) for one in titles for other in titles if one is not other)


@every_script
def test_it_reads_like_a_recipe(name) -> None:
    text = SCRIPTS[name].read_text("utf-8")
    script = ast.parse(text)
    title, underline, blank, *story = ast.get_docstring(script).splitlines()
    assert underline == "=" * len(title)
    assert not blank
    assert 4 <= len(story) <= 10
    assert len(text.splitlines()) <= 75
    imported = [node for node in script.body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {getattr(node, "module", None) or node.names[0].name for node in imported}
    others = {module.split(".")[0] for module in modules - {"hsreject"}}  # public names only
    assert others <= {"matplotlib", "numpy", "scipy", "sklearn"}


# ------------------------------------------------------------------------------- four Gaussians


def test_the_posteriors_are_those_of_the_densities() -> None:
    names = run("plot_paper_3_two_rejectors").names
    samples = names["samples"]
    density = np.array([multivariate_normal(center).pdf(samples) for center in names["centers"]])
    np.testing.assert_allclose(names["probability"].T, density / density.sum(axis=0), rtol=1e-9)
    quadrant = {(-1, 1): 1, (1, 1): 2, (-1, -1): 3, (1, -1): 4}
    assert names["label"].tolist() == [quadrant[a, b] for a, b in np.sign(samples).astype(int)]


def test_a_fifth_is_black_among_colors_that_all_eyes_tell_apart() -> None:
    names, figure = run("plot_paper_3_two_rejectors")
    for ax, share in zip(figure.axes, (0, 0, 0.2, 0.2), strict=True):
        colors = ax.collections[0].get_facecolors()[:, :3]
        assert (colors == 0).all(axis=1).mean() == pytest.approx(share)
    for kind in ("protan", "deutan", "tritan"):
        assert nearest([*names["colors"][1:], "#000000", "#ffffff"], kind) > 15


def test_maximum_probability_is_the_best_rejector_of_exact_posteriors() -> None:
    names = run("plot_paper_4_measures").names
    best, other = names["curves"].values()
    n = names["correct"].size
    bayes = norm.cdf(1) ** 2  # both coordinates on their center's side of the axis
    assert abs(names["correct"].mean() - bayes) < 4 * np.sqrt(bayes * (1 - bayes) / n)
    # The cheapest threshold for rejection cost rho is 1 - rho (Chow 1970). Near its minimum the
    # cost is flat, so compare costs: within sampling noise of the cheapest.
    errors = best.misclassified_kept.values / n
    for rho in (0.1, 0.3, 0.5, 0.7):
        cost = errors + rho * best.rejected_fraction.values
        chow = int(np.searchsorted(best.threshold.values, 1 - rho))
        assert cost[chow] - cost.min() < 0.003  # about 1.3 sigma of a mean of 40,000 errors
    grid = np.linspace(0.05, 0.95, 19)
    first, second = (
        np.interp(grid, c.rejected_fraction, c.nonrejected_accuracy) for c in (best, other)
    )
    # four times the noise of a difference of two strongly correlated accuracies
    assert (first - second).min() > -0.004
    assert (first - second)[:4].min() > 0.001, "they differ where little is rejected"


# ---------------------------------------------------------------------------------- Indian Pines


@pytest.mark.parametrize(("place", "kind"), [(2, "joint"), (3, "sequential")])
def test_rejected_pixels_are_black(place, kind) -> None:
    names, figure = run("plot_paper_6_indian_pines")
    (picture,) = figure.axes[place].get_images()
    black = (np.asarray(picture.get_array())[..., :3] == 0).all(axis=-1)
    np.testing.assert_array_equal(black, names[kind].rejected.values)
    assert abs(black.mean() - 0.1) < 0.005


def test_break_even_costs_are_those_of_no_rejection() -> None:
    names, figure = run("plot_paper_8_when_rejecting_pays")
    joint = names["curves"]["joint"]
    accuracy, fraction = joint.nonrejected_accuracy.values, joint.rejected_fraction.values
    x, cost = figure.axes[2].get_lines()[1].get_data()
    drawn = np.isfinite(cost) & (x < 1)
    at = np.searchsorted(fraction, x[drawn])
    # L(no rejection) = 1 - A0 and L(r) = (1 - r)(1 - A) + rho r are equal at the drawn rho
    with_rejection = (1 - fraction[at]) * (1 - accuracy[at]) + cost[drawn] * fraction[at]
    np.testing.assert_allclose(with_rejection, 1 - accuracy[0], atol=1e-9)
    assert drawn.sum() >= 4


def test_the_promise_is_kept() -> None:
    names = run("plot_certified_coverage").names
    maps, test = names["maps"], names["test"].values
    kept = (test > 0) & (maps.confidence.values >= names["certificate"].threshold)
    assert (maps.label.values != test)[kept].mean() <= 0.05
    assert kept.sum() / (test > 0).sum() == pytest.approx(names["certificate"].coverage)


def test_the_own_prior_sees_the_rows() -> None:
    _, without, tv, own = (ax.get_title() for ax in run("plot_own_prior").figure.axes)
    share = [float(title.split()[-2].rstrip("%")) for title in (without, tv, own)]
    assert share[0] + 10 < share[1] < share[2] - 10
