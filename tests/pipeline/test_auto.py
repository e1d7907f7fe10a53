"""Runs in which everything is chosen from the training pixels, and what a model carries of them."""

import numpy as np
import pytest

import hsreject as hr
from hsreject.pipeline.run_report import curve_table

CONFIG = {
    "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_bands": 20, "noise": 0.6},
    "context": "auto",
    "rejectors": ["pixelwise", "sequential"],
    "baselines": ["svm", "paper"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auto") / "out"
    return hr.run(CONFIG, out=folder), folder


def test_the_result_holds_what_was_tried_and_how_it_was_weighed(finished) -> None:
    result, folder = finished
    assert {"mnf", "raw"} <= set(result["pool/chain"].values)
    assert float(result["pool/weight"].sum()) == pytest.approx(1)
    assert result["tuning/brier_score"].sizes == {"candidate": 4}
    page = (folder / "report.html").read_text()
    assert "What the classifier tried" in page
    assert "Weights of the context that were tried" in page


def test_the_probability_of_the_label_is_that_of_the_map_and_comes_true(finished) -> None:
    result, folder = finished
    said = result["label_probability"].values
    main = result["delivered"].attrs["rejector"]
    test, label = result["test"].values, result["label"].sel(rejector=main).values
    used = (test > 0) & np.isfinite(said)
    correct = label[used] == test[used]
    error = hr.expected_calibration_error(correct, said[used])
    row = result["summary/calibration_error"].sel(system=main)
    assert float(row[0]) == pytest.approx(error)
    assert error < 0.1
    written = hr.open_map(folder / "maps" / "label_probability.tif")
    np.testing.assert_array_equal(written.values, result["label_probability"].values)


def test_a_rank_is_called_a_rank(finished) -> None:
    result, _ = finished
    meaning = dict(zip(result["rejector"].values, result["confidence_meaning"].values, strict=True))
    assert "probability" in meaning["pixelwise"]
    assert "rank" in meaning.get("sequential", "a rank")


def test_a_context_of_weight_0_leaves_the_plan_and_its_rejectors_with_it() -> None:
    small = {**CONFIG, "classifier": "lda", "features": ["scale"], "baselines": []}
    named = [{"name": "sequential", "novelty": True}, {"name": "joint", "n_points": 3}]
    without = {"context": {"prior": "vector_tv", "weight": 0.0}, "rejectors": named}
    result = hr.run(small | without)
    assert list(result["rejector"].values) == ["pixelwise"]
    assert "hidden_field" not in result
    plain = hr.run(
        {key: value for key, value in small.items() if key != "context"}
        | {"rejectors": [{"name": "pixelwise", "novelty": True}]}
    )
    np.testing.assert_array_equal(result["label_with_rejection"], plain["label_with_rejection"])


def test_baselines_stand_below_the_rejectors(finished) -> None:
    result, _ = finished
    names = [row[0] for row in curve_table(result)[1]]
    assert names[-3:] == ["svm", "paper", "coordinates"]


def test_what_is_carried_is_what_was_fitted_without_space(tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=32, columns=32, n_bands=8, noise=0.5)
    train, _ = hr.sample_per_class(labels, 6, seed=0)
    carried = hr.AutoClassifier().fit(cube, train)
    alone = hr.AutoClassifier(spatial=False).fit(cube, train)
    expected = alone.predict_proba(cube)
    np.testing.assert_allclose(carried.predict_proba(cube), expected, atol=1e-6)
    again = hr.load_model(hr.save_model(alone, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.predict_proba(cube), expected)
