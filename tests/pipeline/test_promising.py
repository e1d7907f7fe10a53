"""A promise in a run: chosen on one half of the test pixels, measured on the other."""

import json

import numpy as np
import pytest
import rasterio
from scipy.stats import hypergeom

import hsreject as hr

CONFIG = {
    "seed": 2,
    "scene": {"name": "synthetic", "rows": 60, "columns": 60, "n_classes": 3, "noise": 0.5},
    "features": [{"name": "pca", "n_components": 4}],
    "context": {"prior": "vector_tv", "weight": 1.0},
    "rejectors": ["pixelwise", "sequential", {"name": "joint", "n_points": 5}],
    "goal": {"max_error": 0.2},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("promise") / "out"
    return hr.run(CONFIG, out=folder), folder


def halves(result):
    """Return which pixels are set apart for the promise, and which are left."""
    test, apart = result["test"].values > 0, result["calibration"].values > 0
    has_data = np.isfinite(result["probability"].values[0])
    return apart & has_data, test & ~apart & has_data


def promise(result):
    return result["promise"].to_dataset(inherit=False).sel(seed=2)


def test_a_random_half_of_the_test_pixels_is_set_apart_by_the_seed(finished) -> None:
    result, _ = finished
    test, sample = result["test"].values, result["calibration"].values
    np.testing.assert_array_equal(sample[sample > 0], test[sample > 0])
    assert (sample > 0).sum() == (test > 0).sum() // 2
    counts = np.array([np.bincount(part[test > 0], minlength=4)[1:] for part in (sample, test)])
    np.testing.assert_allclose(counts[0] / counts[1], 0.5, atol=0.1)  # no class is preferred
    other = hr.run(CONFIG | {"seed": 3, "rejectors": ["pixelwise"]})
    assert not np.array_equal(other["calibration"], sample)


def test_the_promised_map_is_the_delivered_map_and_counts_as_it_says(finished) -> None:
    result, folder = finished
    with rasterio.open(folder / "maps" / "map.tif") as file:
        delivered = file.read(1)
    apart, others = halves(result)
    one = promise(result)
    wrong, kept = delivered != result["test"].values, delivered != 0
    n, k = (kept & apart).sum(), (kept & apart & wrong).sum()
    assert (one["n_sampled"], one["n_kept"], one["n_wrong"]) == (apart.sum(), n, k)
    error, of_all = wrong[kept & others].mean(), wrong[kept & (apart | others)].mean()
    assert float(one["kept_share"]) == pytest.approx(kept[others].mean())
    assert float(one["kept_error"]) == pytest.approx(error)
    assert float(one["error_of_all"]) == pytest.approx(of_all)
    assert bool(one["held"]) == (of_all <= 0.2)
    n_all = (kept & (apart | others)).sum()
    assert hypergeom.cdf(k, n_all, int(0.2 * n_all) + 1, n) <= 0.1 + 1e-9
    assert float(one["upper_bound"]) <= 0.2
    shown = float(result["delivered/nonrejected_accuracy"])
    assert shown == pytest.approx(1 - error)  # of the half that has chosen nothing
    certificate = hr.Certificate.read(folder / "certificate.json")
    assert certificate.threshold == float(result["delivered/threshold"])


def test_joint_rejection_is_certified_along_its_operating_points() -> None:
    alone = {**CONFIG, "rejectors": CONFIG["rejectors"][2:]}
    result = hr.run(alone)
    assert result["delivered"].attrs["rejector"] == "joint"
    one, (apart, others) = promise(result), halves(result)
    delivered = result["delivered/label_with_rejection"].values
    wrong, kept = delivered != result["test"].values, delivered != 0
    assert (one["n_kept"], one["n_wrong"]) == ((kept & apart).sum(), (kept & apart & wrong).sum())
    assert float(one["kept_share"]) == pytest.approx(kept[others].mean())


def test_one_sentence_each_for_the_promise_and_for_what_came_of_it(finished) -> None:
    result, folder = finished
    words, one = result["promise"].attrs, promise(result)
    for number in ("90 %", "20 %", f"{int(one['n_kept']):,}", int(one["n_wrong"])):
        assert f" {number} " in words["statement"]
    page = (folder / "report.html").read_text()
    assert words["statement"] in page[: page.index("<section")]
    assert words["evaluation"] in page
    assert "not about the unlabelled scene" in page
    assert (folder / "figures/promise.png").stat().st_size > 10_000
    assert result["promise/held"].dims == ("seed",)


def test_the_explorer_opens_with_the_promised_map_and_marks_it(finished) -> None:
    result, folder = finished
    page = (folder / "explorer.html").read_text("utf-8")
    payload = json.loads(page.partition('id="payload">')[2].partition("</script>")[0])
    share = float(result["delivered/rejected_share_of_scene"])
    assert payload["systems"][0]["name"] == "sequential"
    assert payload["systems"][0]["certified"] == pytest.approx(share)
    assert payload["share"] == pytest.approx(share)


def test_the_summary_is_about_all_test_pixels_with_or_without_a_promise(finished) -> None:
    result, _ = finished
    plain = hr.run({**CONFIG, "rejectors": ["sequential"], "goal": None})
    assert "promise" not in plain
    assert "calibration" not in plain
    for name in ("overall_accuracy", "aurc"):
        found = (one[f"summary/{name}"].sel(system="sequential", seed=2) for one in (result, plain))
        assert len({float(value) for value in found}) == 1


def test_nothing_can_be_promised_is_an_answer(tmp_path) -> None:
    small = CONFIG | {"goal": {"max_error": 0.001}, "rejectors": ["pixelwise"]}
    result = hr.run(small, out=tmp_path / "out")
    assert "Nothing can be certified" in result["promise"].attrs["statement"]
    assert (result["promise/coverage"] == 0).all()
    assert result["delivered"].attrs["goal_reached"] == 0
    top = (tmp_path / "out/report.html").read_text().partition("<section")[0]
    assert "Nothing is promised of this map" in top
    assert "What an accuracy costs" in top


def test_pixels_of_polygons_promise_nothing_but_say_what_does(tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=60, columns=60, n_classes=3, noise=0.5)
    corners = np.zeros(labels.shape, dtype=bool)
    for row in range(2, 60, 12):
        for column in range(2, 60, 12):
            corners[row : row + 5, column : column + 5] = True
    labels = labels.where(corners, 0).astype(labels.dtype)
    config = {**CONFIG, "scene": (cube, labels), "rejectors": ["sequential"]}
    result = hr.run(config | {"sampling": {"name": "polygons", "buffer": 1}}, out=tmp_path / "out")
    assert "promise" not in result
    top = (tmp_path / "out/report.html").read_text().partition("<section")[0]
    assert "hsreject sample maps/label_sequential.tif" in top
    assert "hsreject certify" in top
    assert "promised" not in top.partition("<main")[2].replace("nothing is promised", "").replace(
        "Nothing is promised", ""
    )
    polygon, chose = result["test"].polygon.values, result["calibration"].values > 0
    judges = (result["test"].values > 0) & ~chose
    classes_of = {
        int(n): set(result["test"].values[polygon == n]) for n in np.unique(polygon[judges])
    }
    halved = set(polygon[judges]) & set(polygon[chose])
    assert all(len(classes_of[int(n)]) for n in halved)
    assert len(halved) <= 3  # none but the only polygon of a class is in both halves
