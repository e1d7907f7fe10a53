import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import PredefinedSplit, cross_val_predict

import hsreject as hr
from hsreject.pipeline.plan import make_plan
from hsreject.pipeline.tuning import tune
from hsreject.splits.draws import deal_folds

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


def tried(scene, weights, **change):
    cube, train, test = scene
    context = {"context": {"prior": "vector_tv", "weight": weights}}
    return tune(make_plan(DOCUMENT | context | {"scene": (cube, test)} | change), cube, train)


def test_every_weight_is_tried_best_first(scene) -> None:
    table = tried(scene, [0.0, 1.0, 4.0])
    assert np.all(np.diff(table["brier_score"].values) >= 0)
    assert set(table["weight"].values) == {0.0, 1.0, 4.0}


def test_the_choice_depends_on_the_training_pixels_alone(scene) -> None:
    cube, train, test = scene
    first = tried(scene, [0.5, 2.0])
    assert first.identical(tried((cube, train.copy(), test * 0), [0.5, 2.0]))


def test_who_knows_nothing_has_the_brier_score_of_equal_shares(scene) -> None:
    # a huge penalty leaves no weights: every pixel gets the prior probabilities
    table = tried(scene, [0.0], classifier={"name": "smlr", "sparsity": 1e6})
    # with no weights the field is the class frequencies: one third each, drawn to a constant
    assert float(table["brier_score"][0]) == pytest.approx((2 / 3) ** 2 + 2 / 9, abs=0.005)


def test_the_score_is_that_of_scikit_learn_at_temperatures_of_other_folds(scene) -> None:
    cube, train, _ = scene
    table = tried(scene, [0.0], classifier="lda", features=[])
    pixels = train.values > 0
    samples, classes = cube.values[:, pixels].T, train.values[pixels]
    fold = deal_folds(train.values, 5)[pixels]
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
        for number in range(5)
    ]
    brier = float(np.concatenate(squares).sum(axis=1).mean())
    assert float(table["brier_score"][0]) == pytest.approx(brier, abs=1e-4)
    assert float(table["temperature"][0]) == pytest.approx(best(fold >= 0), rel=0.005)
    assert float(table["accuracy"][0]) == (held_out.argmax(axis=1) + 1 == classes).mean()


def test_an_automatic_context_tries_four_weights_and_chooses_the_same_again(scene) -> None:
    cube, train, test = scene
    plan = make_plan({**DOCUMENT, "scene": (cube, test), "context": "auto"})
    first, again = (tune(plan, cube, train) for _ in range(2))
    assert first.identical(again)
    assert set(first["weight"].values) == {0.0, 0.5, 1.0, 2.0}
    best = plan.with_weight(2.0).context.priors[0]
    assert (best.edges, best.weight) == ("image", 2.0)


def test_with_one_pixel_per_class_nothing_is_left_out_and_no_context_is_taken(scene) -> None:
    cube, train, test = scene
    single, _ = hr.sample_per_class(train, 1, seed=0)
    plan = make_plan({**DOCUMENT, "scene": (cube, test), "context": "auto"})
    table = tune(plan, cube, single)
    assert table["weight"][0] == 0
    assert np.isnan(table["brier_score"]).all()


def test_with_weight_0_the_map_is_that_of_pixelwise_rejection() -> None:
    config = DOCUMENT | {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_classes": 3, "noise": 0.8},
        "context": {"prior": "auto", "weight": [0.0]},
        "rejectors": ["pixelwise", "sequential"],
    }
    result = hr.run(config)
    plain = {key: value for key, value in config.items() if key != "context"}
    alone = hr.run(plain | {"rejectors": ["pixelwise"]})
    one, other = (tree["delivered/label_with_rejection"].values for tree in (result, alone))
    np.testing.assert_array_equal(one, other)


def test_a_model_carries_the_chosen_context_and_none_of_weight_0() -> None:
    config = DOCUMENT | {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_classes": 3, "n_bands": 12},
        "features": [],
        "rejectors": ["sequential"],
    }
    for weight, halo in ((0.0, 0), (4.0, 32)):
        model = hr.train(config | {"context": {"prior": "auto", "weight": [weight]}})
        assert model.rejector.halo == halo


def test_a_run_takes_the_best_weight_and_shows_the_others(tmp_path) -> None:
    config = DOCUMENT | {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_classes": 3, "n_bands": 12},
        "context": {"prior": "vector_tv", "weight": [50.0, 0.5]},  # 50 smooths classes away
        "rejectors": ["sequential"],
    }
    result = hr.run(config, out=tmp_path / "out")
    assert result["tuning/weight"].values.tolist() == [0.5, 50.0]
    assert float(result["tuning/accuracy"][0]) > float(result["tuning/accuracy"][1]) + 0.2
    assert "50.0" in (tmp_path / "out" / "tuning.csv").read_text()
    for file, ends in (("report.html", "<section>"), ("config.toml", "\n")):
        top = (tmp_path / "out" / file).read_text().partition(ends)[0]
        assert "context.weight = 0.5" in top
    fixed = config | {"context": {"prior": "vector_tv", "weight": 0.5}}
    again = hr.run(fixed, out=tmp_path / "out", overwrite=True)
    np.testing.assert_array_equal(result["label"].values, again["label"].values)
    assert not (tmp_path / "out" / "tuning.csv").exists()  # this run has tried nothing


def test_labels_that_the_pool_doubts_score_nothing() -> None:
    cube, labels = hr.synthetic_scene(rows=24, columns=24, n_classes=4, n_bands=8, seed=3)
    train, _ = hr.sample_per_class(labels, 14, seed=3)
    rng = np.random.default_rng(3)
    for value, size in ((1, 3), (2, 2)):  # small classes, each with a wrong label
        places = rng.permutation(np.flatnonzero(train.values == value))
        train.values.flat[places[size - 1 :]] = 0
        train.values.flat[rng.choice(np.flatnonzero(labels.values > 2))] = value
    table = tried((cube, train, labels), [0.0], classifier="auto", features=[])
    right, n_doubted = [], 0
    for probability, left_out in hr.AutoClassifier().held_out_proba(cube, train):
        trusted = left_out & ~probability.doubted.values
        n_doubted += (left_out & ~trusted).sum()
        found = probability.fillna(0).idxmax("category").values
        right.append((found == train.values)[trusted])
    assert n_doubted > 0
    assert float(table["accuracy"][0]) == np.concatenate(right).mean()
