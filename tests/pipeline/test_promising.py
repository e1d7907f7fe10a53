"""A promise in a run: chosen on one half of the test pixels, measured on the other."""

import numpy as np
import pytest
from scipy.stats import hypergeom

import hsreject as hr

CONFIG = {
    "seed": 2,
    "n_seeds": 2,
    "scene": {"name": "synthetic", "rows": 60, "columns": 60, "n_classes": 3, "noise": 0.5},
    "features": [{"name": "pca", "n_components": 4}],
    "context": {"prior": "vector_tv", "weight": 1.0},
    "rejectors": ["pixelwise", "sequential", {"name": "joint", "n_points": 5}],
    "promise": {"max_error": 0.2, "confidence_level": 0.8},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("promise") / "out"
    return hr.run(CONFIG, out=folder), folder


def halves(result):
    """Return which pixels are set apart for the promise, and which are left."""
    test, apart = result["test"].values > 0, result["promise_sample"].values > 0
    has_data = np.isfinite(result["probability"].values[0])
    return apart & has_data, test & ~apart & has_data


def test_a_random_half_of_the_test_pixels_is_set_apart_by_the_seed(finished) -> None:
    result, _ = finished
    test, sample = result["test"].values, result["promise_sample"].values
    np.testing.assert_array_equal(sample[sample > 0], test[sample > 0])
    assert (sample > 0).sum() == (test > 0).sum() // 2
    counts = np.array([np.bincount(part[test > 0], minlength=4)[1:] for part in (sample, test)])
    np.testing.assert_allclose(counts[0] / counts[1], 0.5, atol=0.1)  # no class is preferred
    other = hr.run(CONFIG | {"seed": 3, "n_seeds": 1, "rejectors": ["pixelwise"]})
    assert not np.array_equal(other["promise_sample"], sample)


def test_the_promise_of_a_ranking_is_what_counting_says(finished) -> None:
    result, _ = finished
    apart, others = halves(result)
    for name in ("pixelwise", "sequential"):
        one = result.sel(rejector=name, seed=2)
        wrong = one["label"].values != result["test"].values
        kept = one["confidence"].values >= float(one["promise_threshold"])
        n, k = (kept & apart).sum(), (kept & apart & wrong).sum()
        assert (one["promise_n_sampled"], one["promise_n_kept"]) == (apart.sum(), n)
        assert one["promise_n_wrong"] == k
        error, of_all = wrong[kept & others].mean(), wrong[kept & (apart | others)].mean()
        assert float(one["promise_kept_share"]) == pytest.approx(kept[others].mean())
        assert float(one["promise_kept_error"]) == pytest.approx(error)
        assert float(one["promise_error_of_all"]) == pytest.approx(of_all)
        assert bool(one["promise_held"]) == (of_all <= 0.2)
        n_all = (kept & (apart | others)).sum()
        assert hypergeom.cdf(k, n_all, int(0.2 * n_all) + 1, n) <= 0.2 + 1e-9
        assert float(one["promise_upper_bound"]) <= 0.2


def test_joint_rejection_is_certified_along_its_operating_points(finished) -> None:
    result, _ = finished
    one = result.sel(rejector="joint", seed=2)
    points = result.isel(operating_point=result["system_of_point"].values == "joint")
    assert float(one["promise_threshold"]) in points["failure_probability"].values
    point = points.isel(
        operating_point=points["failure_probability"].values == float(one["promise_threshold"])
    ).isel(operating_point=0)
    # both halves together are the test pixels that the operating points are about
    _, others = halves(result)
    n_kept = int(one["promise_n_kept"]) + round(float(one["promise_kept_share"]) * others.sum())
    assert n_kept == int(point["accurate_kept"] + point["misclassified_kept"])
    n_wrong = int(one["promise_n_wrong"]) + round(
        float(one["promise_kept_error"] * one["promise_kept_share"]) * others.sum()
    )
    assert n_wrong == int(point["misclassified_kept"])


def test_one_sentence_each_for_the_promise_and_for_what_came_of_it(finished) -> None:
    result, folder = finished
    assert result.attrs["promise_rejector"] == "sequential"
    one = result.sel(rejector="sequential", seed=2)
    for number in ("80 %", "20 %", int(one["promise_n_kept"]), int(one["promise_n_wrong"])):
        assert f" {number} " in result.attrs["promise_statement"]
    assert "2 seeds" in result.attrs["promise_evaluation"]
    page = (folder / "report.html").read_text()
    assert result.attrs["promise_statement"] in page
    assert result.attrs["promise_evaluation"] in page
    assert "not about the unlabelled scene" in page
    assert (folder / "figures/promise.png").stat().st_size > 10_000
    assert result["promise_held"].dims == ("seed", "rejector")


def test_the_table_is_about_all_test_pixels_with_or_without_a_promise(finished) -> None:
    result, _ = finished
    plain = hr.run({**CONFIG, "rejectors": ["sequential"], "promise": None, "n_seeds": 1})
    assert not any(str(name).startswith("promise") for name in (*plain, *plain.attrs))
    for name in ("overall_accuracy", "aurc"):
        found = (data[name].sel(system="sequential", seed=2) for data in (result, plain))
        assert len({float(value) for value in found}) == 1


def test_nothing_can_be_promised_is_an_answer(tmp_path) -> None:
    small = CONFIG | {"promise": {"max_error": 0.001}, "n_seeds": 1, "rejectors": ["pixelwise"]}
    result = hr.run(small, out=tmp_path / "out")
    assert "Nothing can be certified" in result.attrs["promise_statement"]
    assert np.isnan(result["promise_threshold"]).all()
    assert (result["promise_coverage"] == 0).all()
    assert "nothing" in (tmp_path / "out/report.html").read_text()
