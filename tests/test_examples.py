"""The scripts under examples/: what they draw and print, against closed forms and hand counts."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LogisticRegression

import hsreject as hr
from examples import paper_figures, unknown_classes
from examples.paper_figures import CENTERS, CLASS_COLORS, JOINT, SEQUENTIAL
from tests.plot.test_style import nearest

# ------------------------------------------------------------------------------- paper_figures.py


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_a_figure_by_one_command(number, tmp_path, monkeypatch, capsys) -> None:
    folder = tmp_path / "new"
    arguments = ["paper_figures.py", str(number), "--out", str(folder)]
    monkeypatch.setattr(sys, "argv", arguments)
    paper_figures.main()
    names = {f"figure-{number}.{suffix}" for suffix in ("png", "pdf", "txt")}
    assert {file.name for file in folder.iterdir()} == names
    text = (folder / f"figure-{number}.txt").read_text(encoding="utf-8")
    assert text.startswith(f"Figure {number}. ")
    assert "Differences from the paper. " in text
    assert text in capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80


def test_four_gaussians_have_the_posteriors_of_their_densities() -> None:
    problem = paper_figures.draw_samples(50, seed=1)
    density = np.array([multivariate_normal(center).pdf(problem.samples) for center in CENTERS])
    np.testing.assert_allclose(problem.probability, density / density.sum(axis=0), rtol=1e-9)
    quadrant = {(-1, 1): 1, (1, 1): 2, (-1, -1): 3, (1, -1): 4}
    signs = np.sign(problem.samples).astype(int)
    assert problem.label.tolist() == [quadrant[a, b] for a, b in signs]


def test_accuracy_is_that_of_the_bayes_rule() -> None:
    problem = paper_figures.draw_samples(10_000)
    correct = problem.label == problem.reference
    expected = norm.cdf(1) ** 2  # both coordinates on their center's side of the axis
    sigma = np.sqrt(expected * (1 - expected) / correct.size)
    assert abs(correct.mean() - expected) < 4 * sigma


def test_confidences_in_closed_form() -> None:
    problem = paper_figures.draw_samples(100, seed=5)
    near, far = np.sort(np.abs(problem.samples), axis=1).T

    def right(distance: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-2 * distance))  # posterior of the nearer of two centers

    maximum, margin = paper_figures.confidences(problem.probability).values()
    np.testing.assert_allclose(maximum, right(near) * right(far))
    np.testing.assert_allclose(margin, right(far) * (2 * right(near) - 1), atol=1e-12)


def test_maximum_probability_is_the_best_rejector_of_the_four_gaussians() -> None:
    best, other = paper_figures.synthetic_curves(20_000).values()
    # With exact posteriors the cheapest threshold for rejection cost rho is 1 - rho (Chow 1970).
    # Near its minimum the cost is flat, so compare costs: within sampling noise of the cheapest.
    errors = best.misclassified_kept.values / 80_000
    for rho in (0.1, 0.3, 0.5, 0.7):
        cost = errors + rho * best.rejected_fraction.values
        chow = int(np.searchsorted(best.threshold.values, 1 - rho))
        assert cost[chow] - cost.min() < 0.002  # about 1.2 sigma of a mean of 80,000 errors
    grid = np.linspace(0.05, 0.95, 19)
    ahead = -np.diff(
        [np.interp(grid, c.rejected_fraction, c.nonrejected_accuracy) for c in (best, other)],
        axis=0,
    )[0]
    # four times the noise of a difference of two strongly correlated accuracies
    assert ahead.min() > -0.003
    assert ahead[:4].min() > 0.001, "they differ where little is rejected"


def test_figure_3_rejects_a_fifth_in_black_among_colors_that_all_eyes_tell_apart() -> None:
    axes = paper_figures.figure_3(100).figure.axes
    for ax, share in zip(axes, (0, 0, 0.2, 0.2), strict=True):
        colors = ax.collections[0].get_facecolors()[:, :3]
        assert (colors == 0).all(axis=1).mean() == pytest.approx(share)
    for kind in ("protan", "deutan", "tritan"):
        assert nearest([*CLASS_COLORS, "#000000", "#ffffff"], kind) > 15


def test_indian_pines_follows_the_protocol_of_the_paper() -> None:
    learned = paper_figures.learn(1)
    trained = (learned.labels != 0) & (learned.test == 0)
    _, counts = np.unique(learned.labels.values[trained.values], return_counts=True)
    assert counts.tolist() == [10] * 16
    np.testing.assert_allclose(learned.evidence.hidden_field.sum("category"), 1, atol=1e-5)


def test_figure_6_shows_the_maps_and_says_what_they_are_worth() -> None:
    made = paper_figures.figure_6(1)
    titles = [ax.get_title(loc="left") for ax in made.figure.axes]
    assert titles == ["(a) false colour", "(b) reference", f"(c) {JOINT}", f"(d) {SEQUENTIAL}"]
    learned = paper_figures.learn(1)
    test = learned.test.values
    for name, ax in zip((JOINT, SEQUENTIAL), made.figure.axes[2:], strict=True):
        maps = paper_figures.rejectors(learned.context)[name].reject(learned.evidence, fraction=0.1)
        rejected = maps.rejected.values
        accuracy = (maps.label.values == test)[(test != 0) & ~rejected].mean()
        said = f"{100 * rejected.mean():.1f} % of the scene rejected, accuracy {accuracy:.3f}"
        assert f"{name}, {said}" in made.caption
        (picture,) = ax.get_images()
        black = (np.asarray(picture.get_array())[..., :3] == 0).all(axis=-1)
        np.testing.assert_array_equal(black, rejected)


def test_figure_7_quotes_the_largest_quality() -> None:
    learned = paper_figures.learn(1)
    maps = hr.SequentialRejector(learned.context).rank(learned.evidence)
    used = learned.test.values != 0
    correct = (maps.label.values == learned.test.values)[used]
    order = np.argsort(maps.confidence.values[used], kind="stable")
    right = np.concatenate([[correct.sum()], correct.sum() + np.cumsum(1 - 2 * correct[order])])
    caption = paper_figures.figure_7(6, 1).caption
    # cutting inside a tie gains at most what rounding to three digits hides here
    quoted = float(re.search(rf"{SEQUENTIAL}: (\d\.\d+) at", caption)[1])
    assert quoted == pytest.approx(right.max() / correct.size, abs=1e-3)
    assert f"on {correct.size} test pixels" in caption


def test_figure_8_draws_break_even_costs_against_no_rejection() -> None:
    made = paper_figures.figure_8(6, 1)
    joint = paper_figures.scene_curves(6, 1)[JOINT]
    accuracy, fraction = joint.nonrejected_accuracy.values, joint.rejected_fraction.values
    (line,) = made.figure.axes[2].get_lines()
    x, cost = line.get_data()
    drawn = np.isfinite(cost) & (x < 1)
    at = np.searchsorted(fraction, x[drawn])
    # L(no rejection) = 1 - A0 and L(r) = (1 - r)(1 - A) + rho r are equal at the drawn rho
    with_rejection = (1 - fraction[at]) * (1 - accuracy[at]) + cost[drawn] * fraction[at]
    np.testing.assert_allclose(with_rejection, 1 - accuracy[0], atol=1e-9)
    assert drawn.sum() >= 4
    assert "seed 1" in made.differences


# ----------------------------------------------------------------------------- unknown_classes.py


@pytest.fixture(scope="module")
def scene() -> tuple[xr.DataArray, xr.DataArray]:
    """Return four squares of class 1 to 4; class 4 lies along an axis of its own."""
    label = np.kron(np.array([[1, 2], [3, 4]]), np.ones((12, 12), dtype=int))
    center = np.array([[0, 0, 0], [2, 0, 0], [0, 2, 0], [1, 1, 9]], dtype=float)
    noise = np.random.default_rng(0).normal(size=(3, 24, 24))
    values = (center[label - 1].transpose(2, 0, 1) + noise).astype(np.float32)
    values[:, 23, 23] = np.nan  # a pixel of class 4
    cube = xr.DataArray(values, dims=("band", "y", "x"))
    return cube, xr.DataArray(label.astype(np.uint8), dims=("y", "x"))


def hold_out(
    scene, *hold_outs: tuple[int, ...], n_seeds: int = 1, joint: bool = False
) -> xr.Dataset:
    return unknown_classes.hold_out_classes(
        *scene,
        hold_outs or None,
        seeds=range(n_seeds),
        features=(),
        joint=joint,
        classifier=LogisticRegression(),
        context=hr.SegSALSA(hr.VectorTV(weight=0.5)),
    )


def test_a_far_class_is_rejected_only_with_novelty(scene) -> None:
    result = hold_out(scene, n_seeds=2)
    assert result.hold_out.values.tolist() == ["1", "2", "3", "4"]
    assert result.n_unknown.values.tolist() == [144, 144, 144, 143]
    far = result.sel(hold_out="4").mean("seed")
    assert far.novelty_auroc > 0.99
    assert (far.auroc.diff("with_novelty") > 0.3).all()
    # A class in the middle of the others cannot be told by distance.
    assert result.sel(hold_out="1").novelty_auroc.mean() < 0.7
    assert result.accuracy.dims == ("seed", "rejector", "with_novelty")
    assert ((result.accuracy > 0.5) & (result.accuracy <= 1)).all()


def test_joint_rejection_tells_a_far_class_with_novelty(scene) -> None:
    far = hold_out(scene, (4,), joint=True).sel(rejector="joint").isel(seed=0, hold_out=0)
    without, aware = far.auroc.values
    assert 0 <= without < aware <= 1


def test_auroc_by_counting_pairs() -> None:
    rng = np.random.default_rng(1)
    confidence = rng.integers(0, 6, 60).astype(float)
    confidence[:3] = np.nan
    unknown = rng.random(60) < 0.4
    has_data = ~np.isnan(confidence)
    pairs = [
        1.0 if low < high else 0.5 if low == high else 0.0
        for low in confidence[unknown & has_data]
        for high in confidence[~unknown & has_data]
    ]
    found = unknown_classes.told_apart(confidence, ~unknown, unknown)
    assert found == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize("hold", [(7,), (), (1, 2, 3)], ids=["absent", "empty", "too many"])
def test_impossible_hold_outs_are_refused(scene, hold) -> None:
    with pytest.raises(hr.errors.InputError, match=re.escape(f"{list(hold)} cannot be held out")):
        hold_out(scene, hold)


def test_unknown_classes_on_files(scene, tmp_path: Path, monkeypatch, capsys) -> None:
    np.save(tmp_path / "scene.npy", scene[0].values.transpose(1, 2, 0))
    np.save(tmp_path / "labels.npy", scene[1].values)
    files = ["--scene", str(tmp_path / "scene.npy"), "--labels", str(tmp_path / "labels.npy")]
    options = ["--n-seeds", "1", "--n-components", "2", "--out", str(tmp_path / "table.nc")]
    held = ["--hold-out", "4", "--hold-out", "2,3"]
    monkeypatch.setattr(sys, "argv", ["unknown_classes.py", *files, *options, *held])
    unknown_classes.main()
    shown = capsys.readouterr().out
    with xr.open_dataset(tmp_path / "table.nc") as written:
        for name, alone in zip(("4", "2, 3"), written.novelty_auroc.values[:, 0], strict=True):
            assert re.search(rf"^{name} .* {alone:.3f}$", shown, flags=re.MULTILINE)
    for bad in (["--scene", "x.npy"], ["--hold-out", "corn"], [*files, "--hold-out", "7"]):
        monkeypatch.setattr(sys, "argv", ["unknown_classes.py", *bad])
        with pytest.raises(SystemExit):
            unknown_classes.main()
