import numpy as np
import pytest

import hsreject as hr
from hsreject.pipeline.plan import make_plan
from hsreject.pipeline.tuning import best_settings, tune
from hsreject.progress import no_progress

DOCUMENT = {
    "features": [{"name": "pca", "n_components": 4}, {"name": "smooth", "sigma": 1.0}],
    "classifier": {"name": "smlr", "sparsity": 0.03},
    "context": {"prior": "vector_tv", "weight": 1.0},
}


@pytest.fixture(scope="module")
def scene():
    cube, labels = hr.synthetic_scene(rows=40, columns=40, n_classes=3, n_bands=12, noise=0.6)
    train, test = hr.sample_per_class(labels, 8, seed=1)
    return cube, train, test


def tried(scene, grid, *, seed=0):
    cube, train, test = scene
    plan = make_plan(DOCUMENT | {"scene": (cube, test), "tuning": {"grid": grid, "n_folds": 4}})
    return tune(plan, cube, train, seed=seed, progress=no_progress)


def test_every_combination_is_tried_best_first(scene) -> None:
    grid = {"features.smooth.sigma": [0.5, 2.0], "context.weight": [0.0, 1.0, 4.0]}
    table = tried(scene, grid)
    assert table.sizes["candidate"] == 6
    assert np.all(np.diff(table["accuracy"].values) <= 0)
    assert len(set(table["settings"].values)) == 6
    assert best_settings(table)[0].startswith("features.smooth.sigma=")


def test_what_is_useless_is_not_chosen(scene) -> None:
    # a huge penalty leaves no weights: every pixel gets the prior probabilities
    table = tried(scene, {"classifier.sparsity": [1e6, 0.03]})
    assert best_settings(table) == ["classifier.sparsity=0.03"]
    assert float(table["accuracy"][0]) > float(table["accuracy"][1]) + 0.2


def test_the_choice_depends_on_the_training_pixels_alone(scene) -> None:
    cube, train, test = scene
    first = tried(scene, {"context.weight": [0.5, 2.0]})
    again = tried((cube, train.copy(), test * 0), {"context.weight": [0.5, 2.0]})
    assert first.identical(again)


def test_the_log_score_is_the_held_out_likelihood(scene) -> None:
    table = tried(scene, {"classifier.sparsity": [1e6]})
    # with no weights the field is the class frequencies: one third each, drawn to a constant
    assert float(table["log_score"][0]) == pytest.approx(np.log(1 / 3), abs=0.02)


def test_a_run_takes_the_best_candidate_and_shows_the_others(tmp_path) -> None:
    grid = {"classifier.sparsity": [1e6, 0.03]}
    config = DOCUMENT | {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_classes": 3, "n_bands": 12},
        "tuning": {"grid": grid, "n_folds": 3},
        "rejectors": ["sequential"],
    }
    result = hr.run(config, out=tmp_path / "out")
    assert list(result["chosen_settings"].values) == ["classifier.sparsity=0.03"]
    assert result["tuning_accuracy"].sizes == {"candidate": 2}
    assert "classifier.sparsity=1000000.0" in (tmp_path / "out" / "tuning.csv").read_text()
    plain = {key: value for key, value in config.items() if key != "tuning"}
    again = hr.run(plain, out=tmp_path / "out")
    np.testing.assert_array_equal(result["label"].values, again["label"].values)
    assert not (tmp_path / "out" / "tuning.csv").exists()  # this run has tried nothing
