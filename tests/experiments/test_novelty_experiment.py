"""The hold-out experiment on a scene made of Gaussian classes, one of them far from the others."""

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from hsreject import schema
from hsreject.cli.application import app
from hsreject.cli.novelty import show_novelty
from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.experiments.novelty import NoveltyExperiment, auroc


@pytest.fixture(scope="module")
def scene() -> tuple[xr.DataArray, xr.DataArray]:
    """Return four squares of class 1 to 4; class 4 lies along an axis of its own."""
    rng = np.random.default_rng(0)
    label = np.kron(np.array([[1, 2], [3, 4]]), np.ones((12, 12), dtype=int))
    center = np.array([[0, 0, 0], [2, 0, 0], [0, 2, 0], [1, 1, 9]], dtype=float)
    values = center[label - 1].transpose(2, 0, 1) + rng.normal(size=(3, 24, 24))
    cube = xr.DataArray(values.astype(np.float32), dims=schema.CUBE_DIMS)
    return cube, xr.DataArray(label.astype(np.uint8), dims=schema.MAP_DIMS)


def experiment(**options) -> NoveltyExperiment:
    defaults = {
        "features": (),
        "classifier": LogisticRegression(),
        "context": SegSALSA(VectorTV(weight=0.5)),
        "n_seeds": 2,
    }
    return NoveltyExperiment(**(defaults | options))


def test_a_far_class_is_rejected_only_with_novelty(scene) -> None:
    result = experiment().run(*scene)
    assert result.hold_out.values.tolist() == ["1", "2", "3", "4"]
    assert (result.n_unknown == 144).all()
    far = result.sel(hold_out="4").mean("seed")
    assert far.novelty_auroc > 0.99
    assert (far.auroc.sel(with_novelty=True) > 0.9).all()
    assert (far.auroc.sel(with_novelty=True) > far.auroc.sel(with_novelty=False)).all()
    # A class in the middle of the others cannot be told by distance.
    assert result.sel(hold_out="1").novelty_auroc.mean() < 0.7
    assert result.accuracy.dims == ("seed", "rejector", "with_novelty")
    assert ((result.accuracy > 0.5) & (result.accuracy <= 1)).all()


def test_pixels_without_data_are_not_counted(scene) -> None:
    cube, labels = scene
    holes = cube.copy(deep=True)
    rows, columns = np.nonzero(labels.values == 4)
    holes[:, rows[0], columns[0]] = np.nan
    result = experiment(hold_outs=[(4,), (2,)], n_seeds=1).run(holes, labels)
    assert result.n_unknown.values.tolist() == [143, 144]


def test_seeds_repeat_and_progress_ends(scene) -> None:
    heard = []
    once = experiment(hold_outs=[(2, 4)], n_seeds=1)
    first = once.run(*scene, progress=lambda *news: heard.append(news))
    xr.testing.assert_identical(first, once.run(*scene))
    assert heard[-1] == ("novelty", 2, 2)
    assert first.hold_out.item() == "2, 4"


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
    assert auroc(confidence, known=~unknown, unknown=unknown) == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize(
    ("hold_outs", "message"),
    [
        ([(7,)], "not there: 7.*There are: 1, 2, 3, 4"),
        ([()], "an empty hold-out"),
        ([(1, 2, 3)], "leaves fewer than two classes"),
        ([], "hold_outs is empty"),
        ([1], r"such as \[\(10, 11\), \(14,\)\] \(got \[1\]\)"),
        (4, r"\(got 4\)"),
        (["12"], r"\(got \['12'\]\)"),
        ([(1.5,)], r"\(got \[\(1.5,\)\]\)"),
    ],
)
def test_impossible_hold_outs_are_refused(scene, hold_outs, message) -> None:
    with pytest.raises(InputError, match=message):
        experiment(hold_outs=hold_outs).run(*scene)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_seeds": 0}, r"n_seeds must be a whole number, at least 1 \(got 0\)"),
        ({"n_seeds": 1.5}, r"n_seeds must be a whole number, at least 1 \(got 1.5\)"),
        ({"n_per_class": 0}, r"n_per_class must be a whole number, at least 1 \(got 0\)"),
        ({"rejected_fraction": 10}, r"rejected_fraction must lie in \[0, 1\] \(got 10\)"),
    ],
)
def test_impossible_options_are_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        experiment(**options)


def test_two_classes_are_too_few_to_hold_one_out(scene) -> None:
    cube, labels = scene
    two = labels.where(labels < 3, 0)
    with pytest.raises(InputError, match=r"at least three classes.*there are: 1, 2\)"):
        experiment().run(cube, two)
    with pytest.raises(InputError, match=r"with data there are: none"):
        experiment().run(cube, xr.zeros_like(labels))
    with pytest.raises(InputError, match=r"there are: 1, 2\)"):
        experiment().run(cube.where(labels < 3), labels)


def test_a_class_without_data_is_not_held_out(scene) -> None:
    cube, labels = scene
    holed = cube.where(labels != 3)
    result = experiment(n_seeds=1).run(holed, labels)
    assert result.hold_out.values.tolist() == ["1", "2", "4"]
    with pytest.raises(InputError, match=r"not there: 3\). There are: 1, 2, 4\."):
        experiment(hold_outs=[(3,)]).run(holed, labels)
    values = np.array([0.3, np.nan])
    with pytest.raises(InputError, match="there are 1 known and 0 unknown ones"):
        auroc(values, known=np.array([True, False]), unknown=np.array([False, True]))


def test_command_on_files(scene, tmp_path) -> None:
    cube, labels = scene
    np.save(tmp_path / "scene.npy", cube.values.transpose(1, 2, 0))
    np.save(tmp_path / "labels.npy", labels.values)
    done = CliRunner().invoke(
        app,
        [
            "novelty",
            *("--scene", str(tmp_path / "scene.npy"), "--labels", str(tmp_path / "labels.npy")),
            *("--hold-out", "4", "--hold-out", "2,3", "--seeds", "1"),
            *("--components", "2", "--smoothing", "0", "--out", str(tmp_path / "table.nc")),
        ],
        catch_exceptions=False,
    )
    assert done.exit_code == 0
    assert "2, 3" in done.stdout
    assert "sequential" in done.stdout
    with xr.open_dataset(tmp_path / "table.nc") as written:
        assert written.auroc.sizes["hold_out"] == 2


@pytest.mark.parametrize("terminal", [False, True], ids=["log", "terminal"])
def test_table_fits_80_columns_with_whole_numbers(scene, terminal) -> None:
    result = experiment(hold_outs=[(4,), (2, 3)], n_seeds=1).run(*scene)
    console = Console(force_terminal=terminal, width=80, color_system=None)
    with console.capture() as captured:
        show_novelty(result, console)
    rows = [line.rsplit(maxsplit=6) for line in captured.get().splitlines()]
    shown = {row[0].strip(): row[-5:] for row in rows if len(row) == 7}
    for name, alone in zip(("4", "2, 3"), result.novelty_auroc.values[:, 0], strict=True):
        assert shown[name][-1] == f"{alone:.3f}"
    headings = ["sequential", "+", "novelty", "novelty", "alone"]
    assert any(row[-5:] == headings for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scene", "x.npy"], "Give --scene and --labels together"),
        (["--hold-out", "corn"], r"such as 10,11 \(got 'corn'\)"),
        (["--seeds", "0"], r"n_seeds must be .* at least 1 \(got 0\)"),
        (["--seeds", "-1"], r"n_seeds must be .* at least 1 \(got -1\)"),
        (["--per-class", "0"], r"n_per_class must be .* at least 1 \(got 0\)"),
    ],
)
def test_command_refuses_nonsense(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["novelty", *arguments], catch_exceptions=False)
