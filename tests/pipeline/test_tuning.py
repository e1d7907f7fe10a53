import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import PredefinedSplit, cross_val_predict

import hsreject as hr
from hsreject.pipeline.plan import make_plan
from hsreject.pipeline.tuning import best_settings, tune
from hsreject.progress import no_progress
from hsreject.sampling.draws import deal_folds

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


def tried(scene, grid):
    cube, train, test = scene
    plan = make_plan(DOCUMENT | {"scene": (cube, test), "tuning": {"grid": grid, "n_folds": 4}})
    return tune(plan, cube, train, progress=no_progress)


def test_every_combination_is_tried_best_first(scene) -> None:
    grid = {"features.smooth.sigma": [0.5, 2.0], "context.weight": [0.0, 1.0, 4.0]}
    table = tried(scene, grid)
    assert table.sizes["candidate"] == 6
    assert np.all(np.diff(table["brier_score"].values) >= 0)
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


def test_who_knows_nothing_has_the_brier_score_of_equal_shares(scene) -> None:
    table = tried(scene, {"classifier.sparsity": [1e6]})
    # with no weights the field is the class frequencies: one third each, drawn to a constant
    assert float(table["brier_score"][0]) == pytest.approx((2 / 3) ** 2 + 2 / 9, abs=0.005)


def test_the_score_is_that_of_scikit_learn_at_temperatures_of_other_folds(scene) -> None:
    cube, train, test = scene
    document = {"scene": (cube, test), "classifier": "lda", "features": []}
    plan = make_plan(document | {"tuning": {"grid": {"classifier": ["lda"]}, "n_folds": 4}})
    table = tune(plan, cube, train, progress=no_progress)
    pixels = train.values > 0
    samples, classes = cube.values[:, pixels].T, train.values[pixels]
    fold = deal_folds(train.values, 4)[pixels]
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    held_out = cross_val_predict(
        model, samples, classes, cv=PredefinedSplit(fold), method="predict_proba"
    )
    floored = 0.99 * held_out + 0.01 / 3
    truth = classes[:, np.newaxis] == [1, 2, 3]

    def tempered(pixels: np.ndarray, temperature: float) -> np.ndarray:
        powers = floored[pixels] ** (1 / temperature)
        return powers / powers.sum(axis=1, keepdims=True)

    def best(pixels: np.ndarray) -> float:
        tried = np.geomspace(0.1, 10, 2001)
        losses = [-np.log(tempered(pixels, t)[truth[pixels]]).mean() for t in tried]
        return float(tried[np.argmin(losses)])

    squares = [
        np.square(tempered(fold == number, best(fold != number)) - truth[fold == number])
        for number in range(4)
    ]
    brier = float(np.concatenate(squares).sum(axis=1).mean())
    assert float(table["brier_score"][0]) == pytest.approx(brier, abs=1e-4)
    assert float(table["temperature"][0]) == pytest.approx(best(fold >= 0), rel=0.005)
    assert float(table["accuracy"][0]) == (held_out.argmax(axis=1) + 1 == classes).mean()


def test_an_automatic_context_tries_four_weights_and_chooses_the_same_again(scene) -> None:
    cube, train, test = scene
    plan = make_plan({**DOCUMENT, "scene": (cube, test), "context": "auto"})
    first, again = (tune(plan, cube, train, progress=no_progress) for _ in range(2))
    assert first.identical(again)
    weights = {f"context.weight={weight}" for weight in (0.0, 0.5, 1.0, 2.0)}
    assert set(first["settings"].values) == weights
    chosen = plan.changed(best_settings(first)).context
    assert chosen.priors[0].edges == "image"
    assert f"context.weight={chosen.priors[0].weight}" == first["settings"].values[0]


def test_with_one_pixel_per_class_nothing_is_left_out_and_no_context_is_taken(scene) -> None:
    cube, train, test = scene
    single, _ = hr.sample_per_class(train, 1, seed=0)
    plan = make_plan({**DOCUMENT, "scene": (cube, test), "context": "auto"})
    table = tune(plan, cube, single, progress=no_progress)
    assert best_settings(table) == ["context.weight=0.0"]
    assert np.isnan(table["brier_score"]).all()


def test_with_weight_0_the_map_is_that_of_pixelwise_rejection() -> None:
    config = DOCUMENT | {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_classes": 3, "noise": 0.8},
        "context": {"prior": "auto"},
        "tuning": {"grid": {"context.weight": [0.0]}, "n_folds": 3},
        "rejectors": ["pixelwise", "sequential"],
    }
    result = hr.run(config)
    plain = {key: value for key, value in config.items() if key not in {"context", "tuning"}}
    alone = hr.run(plain | {"rejectors": ["pixelwise"]})
    one, other = (tree["delivered/label_with_rejection"].values for tree in (result, alone))
    np.testing.assert_array_equal(one, other)


def test_a_model_carries_the_chosen_context_and_none_of_weight_0() -> None:
    config = DOCUMENT | {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_classes": 3, "n_bands": 12},
        "context": "auto",
    }
    for weight, halo in ((0.0, 0), (4.0, 32)):
        grid = {"grid": {"context.weight": [weight]}, "n_folds": 3}
        model = hr.train(config | {"features": [], "tuning": grid, "rejectors": ["sequential"]})
        assert model.rejector.halo == halo


def test_a_run_takes_the_best_candidate_and_shows_the_others(tmp_path) -> None:
    grid = {"classifier.sparsity": [1e6, 0.03]}
    config = DOCUMENT | {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_classes": 3, "n_bands": 12},
        "tuning": {"grid": grid, "n_folds": 3},
        "rejectors": ["sequential"],
    }
    result = hr.run(config, out=tmp_path / "out")
    assert best_settings(result["tuning"].to_dataset()) == ["classifier.sparsity=0.03"]
    assert result["tuning/accuracy"].sizes == {"candidate": 2}
    assert "classifier.sparsity=1000000.0" in (tmp_path / "out" / "tuning.csv").read_text()
    for file, ends in (("report.html", "<section>"), ("config.toml", "\n")):
        top = (tmp_path / "out" / file).read_text().partition(ends)[0]
        assert "classifier.sparsity=0.03" in top
    plain = {key: value for key, value in config.items() if key != "tuning"}
    again = hr.run(plain, out=tmp_path / "out", overwrite=True)
    np.testing.assert_array_equal(result["label"].values, again["label"].values)
    assert not (tmp_path / "out" / "tuning.csv").exists()  # this run has tried nothing
