"""Rankings and decisions against what they mean, unit by unit."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from hsreject.rejection.decision import check_reached
from hsreject.rejection.ranking import Stack
from tests.rejection.toys import TREE, toy_rankings

TOYS = {name: parts for name, *parts in toy_rankings()}
RANKED = [name for name in TOYS if "stack" not in name]


def answer_of(maps: xr.Dataset, place: tuple[int, int], threshold: float) -> int:
    """Return the code of the answer of one pixel by the definition."""
    one = {"y": place[0], "x": place[1]}
    label = int(maps["label"].isel(one))
    if label == 255:
        return 255
    if "unknown" in maps and bool(maps["unknown"].isel(one)):
        return 0
    levels = maps.get("level_confidence", maps["confidence"].expand_dims("level")).isel(one).values
    codes = [label, 4 if label < 3 else label]  # oak or pine: forest
    reached = [code for code, sure in zip(codes, levels, strict=False) if sure >= threshold]
    return reached[0] if reached else 0


@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("lazily", [False, True])
def test_maps_are_those_of_the_definition(name, lazily) -> None:
    maps, _ = TOYS[name]
    ranking = hr.Ranking.of(maps.chunk({"y": 2}) if lazily else maps)
    confidences = maps.get("level_confidence", maps["confidence"]).values
    for threshold in [-np.inf, *np.nanquantile(confidences, [0.1, 0.5, 0.9]), np.inf]:
        made = ranking.at(float(threshold), attrs={"why": "a test"})
        assert lazily == isinstance(made["label_with_rejection"].data, da.Array)
        answers = made["label_with_rejection"].values
        expected = [[answer_of(maps, (y, x), threshold) for x in range(12)] for y in range(5)]
        np.testing.assert_array_equal(answers, expected)
        np.testing.assert_array_equal(ranking.answers(float(threshold)), answers)
        np.testing.assert_array_equal(made["rejected"], answers == 0)
        label = maps["label"].values
        unknown = maps["unknown"].values if "unknown" in maps else np.zeros((5, 12), bool)
        masks = [label == 255, unknown, answers == 0, answers != label]
        np.testing.assert_array_equal(made["flag"], np.select(masks, [255, 3, 2, 4], 1))
        assert made.attrs["why"] == "a test"
        assert made.attrs["n_pixels"] == 58
        assert made.attrs["rejected_fraction"] == (answers == 0).sum() / 58


@pytest.mark.parametrize("name", RANKED)
def test_points_are_those_of_the_maps_at_each_threshold(name) -> None:
    maps, reference = TOYS[name]
    ranking = hr.Ranking.of(maps)
    points = ranking.points(reference)
    has_unknown = "unknown" in maps
    assert (points["threshold"].values[0] == -np.inf) == has_unknown
    for place in range(has_unknown, points.sizes["operating_point"]):
        expected = hr.OperatingPoint.from_curve(points, place)
        found = ranking.point(expected.threshold, reference)
        assert found.counts == expected.counts
    assert points["rejected_fraction"].values[0] == 0


@pytest.mark.parametrize("name", TOYS)
def test_a_decision_is_the_best_of_all_thresholds(name) -> None:
    """Every map that there is, tried one by one."""
    maps, reference = TOYS[name]
    ranking = hr.Ranking.of(maps)
    places = range(5)
    if name in RANKED:
        confidences = maps.get("level_confidence", maps["confidence"]).values
        places = [-np.inf, *np.unique(confidences[np.isfinite(confidences)]), np.inf]
    points = [ranking.point(float(place), reference) for place in places]
    for cost in (0.1, 0.3, 0.6):
        decision = hr.decide(ranking, hr.Goal(rejection_cost=cost), reference)
        assert decision.reached
        assert decision.point.cost(cost) == pytest.approx(min(one.cost(cost) for one in points))
    kept = np.array([one.accurate_kept + one.misclassified_kept for one in points])
    many = [one for one, n in zip(points, kept, strict=True) if n >= min(30, kept.max())]
    for accuracy in (0.4, 0.72, 1.0):
        decision = hr.decide(ranking, hr.Goal(accuracy=accuracy), reference)
        enough = [one for one in many if one.nonrejected_accuracy >= accuracy]
        assert decision.reached == bool(enough)
        if enough:
            least = min(one.rejected_fraction for one in enough)
            assert decision.point.rejected_fraction == least
        else:
            best = max(one.nonrejected_accuracy for one in many)
            assert decision.point.nonrejected_accuracy == best
        promised = hr.decide(ranking, hr.Goal(max_error=0.3), reference, certified=1.0)
        assert (promised.threshold, promised.reached) == (1.0, True)


def test_unknown_pixels_choose_nothing_and_are_always_rejected() -> None:
    maps, reference = TOYS["plain"]
    all_unknown = hr.Ranking.of(maps.assign(unknown=maps["label"] != 255))
    decision = hr.decide(all_unknown, hr.Goal(accuracy=0.5), reference)
    assert (decision.threshold, decision.reached) == (-np.inf, False)
    assert set(np.unique(all_unknown.at(-np.inf)["label_with_rejection"])) == {0, 255}
    with pytest.raises(InputError, match="none keeps anything"):
        check_reached(decision, hr.Goal(accuracy=0.5))


def test_a_ranking_goes_to_a_dataset_and_back() -> None:
    for name, (maps, reference) in TOYS.items():
        ranking = hr.Ranking.of(maps)
        again = hr.Ranking.of(ranking.to_dataset())
        assert isinstance(again, Stack) == ("stack" in name)
        xr.testing.assert_identical(again.to_dataset(), ranking.to_dataset())
        xr.testing.assert_identical(again.points(reference), ranking.points(reference))
        if name in RANKED:
            assert again.id == ranking.id
            lazy = hr.Ranking.of(maps.chunk({"x": 5}))
            assert lazy.id == ranking.id
            assert lazy.load().label.chunks is None


def test_the_id_is_that_of_what_can_be_kept() -> None:
    maps, _ = TOYS["unknown"]
    ranking = hr.Ranking.of(maps)
    odd = maps.assign(confidence=maps["confidence"].where(~maps["unknown"], 0.5))
    assert hr.Ranking.of(odd).id == ranking.id
    assert hr.Ranking.of(maps.drop_vars("unknown")).id != ranking.id
    rejected = maps["label"].where(~maps["unknown"], 0).assign_attrs(maps["label"].attrs)
    assert hr.Ranking(rejected, maps["confidence"]).id == ranking.id


def test_objects_are_units_as_pixels_are() -> None:
    label, confidence = np.array([1, 2, 2, 1]), np.array([0.9, 0.4, 0.8, 0.3])
    parcels = hr.Ranking(label=label, confidence=confidence)
    assert parcels.label.dims == ("unit",)
    reference = np.array([1, 1, 2, 2])
    decision = hr.decide(parcels, hr.Goal(rejection_cost=0.2), reference)
    assert parcels.answers(decision.threshold).values.tolist() == [1, 0, 2, 0]
    as_map = hr.Ranking(label[None], confidence[None])
    xr.testing.assert_equal(parcels.points(reference), as_map.points(reference[None]))
    maps, _ = TOYS["groups"]
    some = hr.Ranking.of(maps).isel(y=xr.DataArray([1, 2]), x=xr.DataArray([3, 4]))
    assert some.tree.table == TREE.table
    answers = hr.Ranking.of(maps).answers(0.3).values
    assert some.answers(0.3).values.tolist() == [answers[1, 3], answers[2, 4]]


def test_a_flat_ranking_keeps_classes_alone() -> None:
    maps, _ = TOYS["groups and unknown"]
    ranking = hr.Ranking.of(maps)
    answers = ranking.answers(0.4)
    flat = ranking.flat().answers(0.4)
    np.testing.assert_array_equal(flat, np.where(answers == 4, 0, answers))
    assert hr.ClassTree.from_attrs(flat.attrs) is None


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"confidence": np.zeros((2, 4))}, "2 rows x 4"),
        ({"confidence": np.full((2, 3), np.nan)}, "NaN in 6 pixels"),
        ({"confidence": np.array([["a"] * 3] * 2)}, "must hold numbers"),
        ({"label": np.ones((2, 3))}, "integers"),
        ({"label": np.ones((1, 2, 3), int)}, "map"),
        ({"confidence": np.zeros((2, 2, 3))}, "class tree"),
        ({"unknown": np.zeros((3, 3), bool)}, "3 rows"),
    ],
)
def test_what_is_no_ranking_is_refused(parts, message) -> None:
    whole = {"label": np.ones((2, 3), int), "confidence": np.zeros((2, 3))}
    with pytest.raises(InputError, match=message):
        hr.Ranking(**whole | parts)
    with pytest.raises(InputError, match="needs a reference"):
        hr.decide(hr.Ranking(**whole), hr.Goal(accuracy=0.9))
