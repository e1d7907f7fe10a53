"""Properties that every rejector of the registry has."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.confidence import label_map
from hsreject.errors import InputError
from hsreject.rejection import REJECTORS
from tests.rejection.scene import CONTEXT, with_p_value
from tests.rejection.scene import SMALL as SCENE

NODATA = 255


@pytest.fixture(params=list(REJECTORS), scope="module")
def rejector(request) -> hr.Rejector:
    offered = {"context": CONTEXT, "groups": {"ground": ["soil", "wood"]}}
    options = {name: offered[name] for name in REJECTORS.options(request.param) if name in offered}
    return REJECTORS.create(request.param, **options)


def truth_is_below(answer: xr.DataArray, reference: xr.DataArray) -> np.ndarray:
    """Tell where an answer, a class or a group of classes, is right."""
    tree = hr.ClassTree.from_attrs(answer.attrs)
    same = answer.values == reference.values
    return same if tree is None else tree.holds(answer.values, reference.values)


@pytest.fixture(scope="module", params=["fraction", "accuracy", "rejection_cost"])
def maps(request, rejector) -> xr.Dataset:
    wanted = {"fraction": 0.3, "accuracy": 0.9, "rejection_cost": 0.3}[request.param]
    calibration = hr.Calibration(SCENE.calibration, training=SCENE.training)
    return rejector.reject(SCENE.probability, **{request.param: wanted}, calibration=calibration)


def test_nodata_is_neither_rejected_nor_kept(maps) -> None:
    missing = np.isnan(SCENE.probability.values[0])
    assert missing.sum() == 6
    assert (maps.label.values[missing] == NODATA).all()
    assert (maps.label_with_rejection.values[missing] == NODATA).all()
    assert not maps.rejected.values[missing].any()
    assert np.isnan(maps.confidence.values[missing]).all()
    assert maps.attrs["n_pixels"] == (~missing).sum()


def test_lower_confidences_go_first_and_equal_ones_together(maps) -> None:
    has_data = ~np.isnan(SCENE.probability.values[0])
    rejected = maps.rejected.values[has_data]
    confidence = maps.confidence.values[has_data]
    assert 0 < rejected.sum() < rejected.size
    np.testing.assert_array_equal(rejected, confidence < maps.attrs["threshold"])
    assert maps.attrs["rejected_fraction"] == rejected.mean()


def test_maps_carry_classes_and_coordinates(maps) -> None:
    assert {0, 2, 5, 9, NODATA} <= set(np.unique(maps.label_with_rejection))
    kept = ~maps.rejected.values & (maps.label.values != NODATA)
    assert truth_is_below(maps.label_with_rejection, maps.label)[kept].all()
    assert (maps.label_with_rejection.values[maps.rejected.values] == schema.REJECTED).all()
    assert maps.rejected.dtype == bool
    for name in ("label", "confidence", "rejected", "label_with_rejection"):
        assert maps[name].dims == schema.MAP_DIMS
        xr.testing.assert_equal(maps[name].y, SCENE.probability.y)
    assert schema.class_table(maps.label).names == ("soil", "water", "wood")
    assert schema.class_table(maps.label_with_rejection).names[:3] == ("soil", "water", "wood")
    assert maps.label.attrs["_FillValue"] == NODATA


def test_fraction_0_and_1_are_exact(rejector) -> None:
    nothing = rejector.reject(SCENE.probability, fraction=0.0)
    assert not nothing.rejected.any()
    assert nothing.attrs["rejected_fraction"] == 0
    everything = rejector.reject(SCENE.probability, fraction=1.0)
    assert (everything.rejected == SCENE.probability.notnull().all("category")).all()
    assert everything.attrs["rejected_fraction"] == 1
    assert set(np.unique(everything.label_with_rejection)) == {0, NODATA}


def test_plain_arrays_give_the_same_and_stay_untouched(rejector) -> None:
    expected = rejector.reject(SCENE.probability, fraction=0.2)
    plain = SCENE.probability.values.copy()
    if hasattr(rejector, "groups"):  # classes without a name are called by their number
        rejector = replace(rejector, groups={"ground": ["class 1", "class 3"]})
    found = rejector.reject(plain, fraction=0.2)
    np.testing.assert_array_equal(plain, SCENE.probability.values)
    np.testing.assert_array_equal(found.rejected.values, expected.rejected.values)
    assert set(np.unique(found.label)) == {1, 2, 3, NODATA}


def test_the_same_settings_make_the_same_rejector(rejector) -> None:
    copy = pickle.loads(pickle.dumps(rejector))
    assert copy == rejector
    assert hash(copy) == hash(rejector)
    assert replace(rejector, novelty=False) != rejector


def test_operating_points_are_those_of_the_maps(rejector) -> None:
    points = rejector.operating_points(SCENE.probability, SCENE.test)
    fraction = points.rejected_fraction.values
    assert fraction[0] == 0
    assert fraction[-1] == 1
    assert (np.diff(fraction) >= 0).all()
    n = points.accurate_kept + points.misclassified_kept
    n = n + points.accurate_rejected + points.misclassified_rejected
    used = (SCENE.test > 0) & SCENE.probability.notnull().all("category")
    assert (n == int(used.sum())).all()
    np.testing.assert_allclose(
        points.overall_accuracy, (points.accurate_kept + points.accurate_rejected) / n, rtol=1e-12
    )
    quality = points.accurate_kept + points.misclassified_rejected
    np.testing.assert_allclose(points.classification_quality, quality / n, rtol=1e-12)


def test_a_sweep_has_the_points_and_the_maps_of_each(rejector) -> None:
    swept = rejector.sweep(SCENE.probability, SCENE.test, fraction=0.2)
    varies = "operating_point" in swept["label"].dims
    assert varies != rejector.has_threshold
    used = (SCENE.test.values > 0) & SCENE.probability.notnull().all("category").values
    shares = []
    for _, point in swept.groupby("operating_point"):
        one = point.squeeze("operating_point")
        rejected = one["rejected"] if varies else one["confidence"] < one["threshold"]
        answer, coarsest = one["label"], one["label"]
        if "level_confidence" in one:  # what is rejected would have had the coarsest answer
            answer = hr.Ranking.of(one).answers(float(one["threshold"]))
            levels = one["level_confidence"]
            last = one.assign(level_confidence=levels.copy(data=levels.values * [[[0]], [[1]]]))
            coarsest = hr.Ranking.of(last).answers(1e-6)
        right = truth_is_below(answer.where(~rejected, coarsest), SCENE.test)[used]
        kept = ~rejected.values[used]
        assert int(one["accurate_kept"]) == (right & kept).sum()
        assert int(one["misclassified_rejected"]) == (~right & ~kept).sum()
        shares.append(float(rejected.sum()) / np.isfinite(SCENE.probability.values[0]).sum())
    wanted = rejector.reject(SCENE.probability, fraction=0.2).attrs["rejected_fraction"]
    assert np.abs(np.array(shares) - wanted).min() < (0.005 if varies else 0.05)


def test_a_rejector_that_only_rejects_has_operating_points(rejector) -> None:
    class Asked(hr.Rejector):
        def reject(self, maps, **options):
            return rejector.reject(maps, **options)

    points = Asked().operating_points(SCENE.probability, SCENE.test)
    assert points["rejected_fraction"].values[[0, -1]].tolist() == [0, 1]
    assert (np.diff(points["rejected_fraction"]) >= 0).all()


def test_unknown_pixels_are_rejected_beside_what_is_asked_for(rejector) -> None:
    p_value = np.full(SCENE.reference.shape, 0.5)
    p_value[8:11, 6:9] = 0.001
    maps, novel = with_p_value(SCENE, p_value), p_value < 0.025
    plain = rejector.reject(SCENE.probability, fraction=0.2)
    deaf = replace(rejector, novelty=False)
    assert (deaf.needs_p_value, rejector.needs_p_value) == (False, True)
    xr.testing.assert_equal(deaf.reject(maps, fraction=0.2), plain)
    assert "unknown" not in plain
    found = rejector.reject(maps, fraction=0.2)
    np.testing.assert_array_equal(found.unknown.values, novel)
    assert found.rejected.values[novel].all()
    assert found.attrs["unknown_fraction"] == 9 / found.attrs["n_pixels"]
    if rejector.has_threshold:
        xr.testing.assert_equal(found.label, plain.label)
        known = ~novel & ~np.isnan(SCENE.probability.values[0])
        assert found.rejected.values[known].mean() == pytest.approx(0.2, abs=1 / known.sum())
        np.testing.assert_array_equal(
            found.confidence.values[known], plain.confidence.values[known]
        )
    indifferent = rejector.reject(with_p_value(SCENE, 1.0), fraction=0.2)
    np.testing.assert_array_equal(indifferent.rejected, plain.rejected)


def test_flags_tell_the_unknown_from_the_unsure(rejector) -> None:
    p_value = np.full(SCENE.reference.shape, 0.5)
    p_value[8:11, 6:9] = 0.001
    found = rejector.reject(with_p_value(SCENE, p_value), fraction=0.2)
    flag = found["flag"]
    missing = np.isnan(SCENE.probability.values[0])
    coarse = (found.label_with_rejection != found.label).values
    masks = [missing, p_value < 0.025, found.rejected.values, coarse]
    np.testing.assert_array_equal(flag.values, np.select(masks, [255, 3, 2, 4], 1))
    names = ("kept", "rejected", "unknown", *(("group",) if rejector.answers_coarser else ()))
    assert schema.class_table(flag).names == names


def test_p_values_that_cannot_be_are_refused(rejector) -> None:
    for wrong in (np.nan, 0.0, 1.5):
        p_value = np.ones(SCENE.reference.shape)
        p_value[5, 5] = wrong
        with pytest.raises(InputError, match="not in 1 pixels"):
            rejector.reject(with_p_value(SCENE, p_value), fraction=0.1)
    with pytest.raises(InputError, match=r"novelty.*'yes'"):
        replace(rejector, novelty="yes")


def test_it_says_what_it_needs(rejector) -> None:
    with_context = rejector.context is not None
    assert (
        rejector.needs_context == with_context == (not isinstance(rejector, hr.PixelwiseRejector))
    )
    assert rejector.has_threshold == isinstance(rejector, hr.RankedRejector)
    if rejector.has_threshold:
        assert rejector.halo == (CONTEXT.halo if with_context else 0)
    for option in rejector.indifferent_options:
        assert option not in repr(rejector)
        assert hasattr(rejector, option)


def test_wishes_that_make_no_sense_are_refused(rejector) -> None:
    own = "threshold" if rejector.has_threshold else "failure_probability"
    for wish, message in (
        ({"fraction": 1.5}, r"got 1\.5"),
        ({"fraction": float("nan")}, "got nan"),
        ({"fraction": "0.2"}, "'0.2'"),
        ({"fraction": [0.1, 0.2]}, r"shape \(2,\)"),
        ({"fraction": np.full((14, 15), 0.2)}, r"shape \(14, 15\)"),
        ({own: float("nan")}, "got nan"),
        ({"accuracy": 90}, "got 90"),
        ({"rejection_cost": 2}, "Divide"),
        ({"accuracy": 0.9}, "accuracy needs calibration"),
        ({"rejection_cost": 0.2}, "rejection_cost needs calibration"),
        ({}, "exactly one of fraction"),
        ({"fraction": 0.1, own: 0.1}, f"fraction and {own}"),
    ):
        with pytest.raises(InputError, match=message):
            rejector.reject(SCENE.probability, **wish)
    found = rejector.reject(SCENE.probability, fraction=np.array(0.2, dtype=np.float32))
    assert abs(found.attrs["rejected_fraction"] - 0.2) < 0.01


def test_unreachable_accuracy_says_the_best(rejector) -> None:
    wrong = SCENE.calibration.copy(data=np.where(SCENE.calibration > 0, 77, 0))
    with pytest.raises(InputError, match="highest is 0"):
        rejector.reject(
            SCENE.probability, accuracy=0.9, calibration=hr.Calibration(wrong, training=None)
        )


def test_categories_that_cannot_be_labels_are_refused(rejector) -> None:
    wrong = xr.Dataset({"probability": SCENE.probability.assign_coords(category=[0, 1, 2])})
    for maps in (wrong["probability"], wrong, wrong.assign(hidden_field=wrong["probability"])):
        with pytest.raises(InputError, match="65534"):
            rejector.reject(maps, fraction=0.1)
        with pytest.raises(InputError, match="65534"):
            rejector.operating_points(maps, SCENE.test)


def test_chunks_along_the_categories_give_the_same(rejector) -> None:
    known = xr.Dataset({"probability": SCENE.probability, "hidden_field": SCENE.probability})
    lazy = known.chunk({"category": 1})
    xr.testing.assert_identical(
        rejector.reject(lazy, fraction=0.2), rejector.reject(known, fraction=0.2)
    )
    xr.testing.assert_identical(
        rejector.operating_points(lazy, SCENE.test), rejector.operating_points(known, SCENE.test)
    )


def test_what_is_no_evidence_is_refused(rejector) -> None:
    with pytest.raises(InputError, match="'probability'"):
        rejector.reject(SCENE.test.to_dataset(name="label"), fraction=0.1)
    with pytest.raises(InputError, match="masked"):
        rejector.reject(np.ma.masked_less(SCENE.probability.values, 0.1), fraction=0.1)
    with pytest.raises(InputError, match="complex128"):
        rejector.reject(SCENE.probability.astype(complex), fraction=0.1)
    with pytest.raises(InputError, match=r"\(3, 14\)"):
        rejector.reject(SCENE.probability.values[:, :, 0], fraction=0.1)
    with pytest.raises(InputError, match="no pixel to compare with"):
        rejector.operating_points(SCENE.probability, SCENE.test * 0)


class Odds(hr.Confidence):
    """The largest divided by the second largest: infinite where that is 0."""

    def kernel(self, field, probability):
        ordered = np.sort(field, axis=0)
        return ordered[-1] / ordered[-2]


def test_infinite_confidences_are_refused() -> None:
    probability = np.array([[[1.0, 0.9, 0.6]], [[0.0, 0.1, 0.4]]])
    with pytest.raises(InputError, match=r"infinite .*\(1 of them\)"):
        hr.PixelwiseRejector(Odds()).reject(probability, fraction=1.0)


class Transposed(hr.RankedRejector):
    """Gives its confidence as (x, y), and a number where there is no data."""

    def label_and_confidence(self, evidence, progress):
        confidence = evidence.probability.max("category").fillna(0.0)
        return label_map(evidence.probability), confidence.transpose("x", "y")


def test_maps_of_a_rejector_are_taken_by_their_dims_and_nodata_by_its_label() -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet([1, 1, 1], (5, 5)).transpose(2, 0, 1)
    probability[:, 0] = np.nan
    reference = rng.integers(1, 4, (5, 5))
    found, expected = Transposed(), hr.PixelwiseRejector()
    for fraction in (0.0, 0.3, 1.0):
        maps = found.reject(probability, fraction=fraction)
        other = expected.reject(probability, fraction=fraction)
        xr.testing.assert_equal(maps, other)
        assert maps.attrs["reachable_fractions"] == other.attrs["reachable_fractions"]
    xr.testing.assert_equal(
        found.operating_points(probability, reference),
        expected.operating_points(probability, reference),
    )


@pytest.mark.parametrize(("place", "value"), [(np.s_[:, 3:], 0.9), (np.s_[1, 4, 4], np.nan)])
def test_lazy_probabilities_are_checked_when_they_are_computed(place, value) -> None:
    values = np.full((3, 6, 7), 1 / 3)
    values[place] = value
    lazy = xr.DataArray(values, dims=schema.FIELD_DIMS).chunk(y=2, category=1)
    with pytest.raises(InputError):
        hr.PixelwiseRejector().reject(lazy, fraction=0.1)
    with pytest.raises(InputError):
        hr.PixelwiseRejector().operating_points(lazy, np.ones((6, 7), int))
