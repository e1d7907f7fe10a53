"""What users give to joint rejection: maps on a grid, odd number types, and slips."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from hsreject.confidence import Margin
from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.rejection import JointRejector, PixelwiseRejector, SequentialRejector
from tests.rejection.scene import make_scene

CONTEXT = SegSALSA(VectorTV(weight=0.3))


@pytest.fixture(scope="module")
def scene():
    return make_scene()


def top_rows(scene, value, elsewhere) -> xr.DataArray:
    """Return a map that differs in its first rows, on the grid of the scene."""
    like = scene.probability.isel(category=0, drop=True)
    values = np.where(np.arange(like.sizes["y"])[:, None] < 8, value, elsewhere)
    return like.copy(data=np.broadcast_to(values, like.shape))


def test_maps_follow_the_names_of_their_dimensions(scene) -> None:
    rejector = JointRejector(CONTEXT, n_points=4)
    q = top_rows(scene, 0.9, 0.1)
    found = rejector.reject(scene.probability, failure_probability=q)
    xr.testing.assert_equal(rejector.reject(scene.probability, failure_probability=q.T), found)
    within = top_rows(scene, 1, 0).astype(bool)
    expected = rejector.sweep(scene.probability, within=within)
    xr.testing.assert_equal(rejector.sweep(scene.probability, within=within.T), expected)


def test_maps_of_another_place_are_refused(scene) -> None:
    rejector = JointRejector(CONTEXT, n_points=4)
    q = top_rows(scene, 0.9, 0.1)
    for wrong, message in (
        (q.assign_coords(y=q.y + 1000), "probability and failure_probability lie on different"),
        (q.rename(y="row"), r"failure_probability must have the dims \(y, x\)"),
        (q[:3], "failure_probability has 3 rows"),
        (q.values[:3], r"failure_probability must be a map \(y, x\) of the shape \(14, 15\)"),
        ("0.2", r"failure_probability must be a number \(got '0.2'"),
        (q.where(q > 0.5), "NaN in .* pixels that have data"),
    ):
        with pytest.raises(InputError, match=message):
            rejector.reject(scene.probability, failure_probability=wrong)
    with pytest.raises(InputError, match=r"within must be a map \(y, x\) of the shape \(14, 15\)"):
        rejector.sweep(scene.probability, within=q.values[:1] > 0)
    with pytest.raises(InputError, match="probability and within lie on different grids"):
        rejector.sweep(scene.probability, within=q.assign_coords(x=q.x + 1000) > 0)


def test_a_map_of_nothing_is_the_context_where_there_is_data(scene) -> None:
    nothing = scene.probability.isel(category=0, drop=True) * 0  # NaN where there is no data
    assert nothing.isnull().any()
    rejector = JointRejector(CONTEXT)
    found = rejector.reject(scene.probability, failure_probability=nothing)
    expected = rejector.reject(scene.probability, failure_probability=0.0)
    xr.testing.assert_equal(found, expected)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
def test_certain_classes_may_be_whole_numbers(dtype) -> None:
    certain = np.zeros((3, 6, 6), dtype)
    certain[0, :3] = certain[1, 3:] = 1
    found = JointRejector(CONTEXT).reject(certain, failure_probability=0.2)
    expected = JointRejector(CONTEXT).reject(certain.astype(float), failure_probability=0.2)
    np.testing.assert_array_equal(found.label, expected.label)
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=1e-3)


def test_a_scene_without_pixels_is_told() -> None:
    with pytest.raises(InputError, match=r"must be a non-empty array .*got shape \(3, 0, 5\)"):
        JointRejector(CONTEXT).reject(np.ones((3, 0, 5)), fraction=0.1)


@pytest.mark.parametrize("kind", [SequentialRejector, JointRejector])
def test_a_prior_is_no_context(kind) -> None:
    with pytest.raises(InputError, match=r"must be a SegSALSA \(got VectorTV\)"):
        kind(VectorTV(1.0))


@pytest.mark.parametrize("rejector", [PixelwiseRejector(), JointRejector(CONTEXT)], ids=repr)
def test_wishes_that_are_no_numbers_are_refused(rejector, scene) -> None:
    for wrong in ("0.2", [0.1, 0.2], np.array([0.2])):
        with pytest.raises(InputError, match="fraction must be a number"):
            rejector.reject(scene.probability, fraction=wrong)
    found = rejector.reject(scene.probability, fraction=np.array(0.2, dtype=np.float32))
    assert abs(found.attrs["rejected_fraction"] - 0.2) < 0.01
    with pytest.raises(InputError, match="Divide the cost of a rejection by that of an error"):
        rejector.reject(scene.probability, rejection_cost=2)


def test_a_threshold_is_a_number(scene) -> None:
    with pytest.raises(InputError, match=r"threshold must be a number \(got nan"):
        PixelwiseRejector().reject(scene.probability, threshold=float("nan"))


def novel(scene, p_value) -> xr.Dataset:
    like = scene.probability.isel(category=0, drop=True)
    return xr.Dataset({"probability": scene.probability, "novelty_p_value": 0 * like + p_value})


@pytest.mark.parametrize("wanted", [0.1, 0.5, 0.9])
def test_novelty_of_the_whole_scene_only_shifts_the_search(scene, wanted) -> None:
    rejector = JointRejector(CONTEXT, novelty_exponent=1.0)
    plain = JointRejector(CONTEXT).reject(scene.probability, fraction=wanted).attrs
    found = rejector.reject(novel(scene, 0.001), fraction=wanted).attrs
    assert found["n_solves"] <= 12
    off = abs(found["rejected_fraction"] - wanted)
    assert off <= max(0.005, abs(plain["rejected_fraction"] - wanted) + 0.002)


def test_a_sweep_reaches_down_to_novel_pixels(scene) -> None:
    rejector = JointRejector(CONTEXT, novelty_exponent=1.0)
    fraction = rejector.sweep(novel(scene, 0.001)).rejected_fraction.values
    assert ((fraction > 0) & (fraction < 1)).sum() >= 8
    mixed = novel(scene, top_rows(scene, 0.006, 1.0))
    fraction = rejector.sweep(mixed).rejected_fraction.values
    assert ((fraction > 0) & (fraction < 0.5)).any()  # some of the novel rows
    assert (abs(fraction - 8 / 14) < 0.02).any()  # all of them
    assert (fraction > 0.6).sum() >= 4  # and of the others


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: 100 * p, "found sums from 100 to 100"),
        (lambda p: p - 0.5, r"at least 0 \(found -0\.4"),
        (np.log, "not scores or log-probabilities"),
    ],
)
def test_messages_speak_of_the_probabilities_that_were_given(scene, change, message) -> None:
    with pytest.raises(InputError, match=message):
        JointRejector(CONTEXT).reject(change(scene.probability), fraction=0.2)


def test_points_are_a_dataset(scene) -> None:
    with pytest.raises(InputError, match=r"points must be a Dataset .*\(got ndarray\)"):
        JointRejector(CONTEXT).reject(scene.probability, fraction=0.2, points=np.zeros(3))


def test_an_exponent_is_a_number() -> None:
    with pytest.raises(InputError, match=r"novelty_exponent must be a number.*got None"):
        JointRejector(CONTEXT, novelty_exponent=None)


@pytest.mark.parametrize("wrong", [3, Margin, None])
@pytest.mark.parametrize("kind", [SequentialRejector, PixelwiseRejector])
def test_a_confidence_is_a_name_or_an_object(kind, wrong) -> None:
    with pytest.raises(InputError, match=r"must be a name, such as 'margin', or an object"):
        kind(confidence=wrong)


def test_options_of_the_wrong_type_are_refused() -> None:
    for options, message in (
        ({"tolerance": "x"}, "tolerance must be a number between 0 and 1"),
        ({"tolerance": None}, "tolerance must be a number between 0 and 1"),
        ({"store": 3}, "store must be the path of a folder"),
    ):
        with pytest.raises(InputError, match=message):
            JointRejector(CONTEXT, **options)


@pytest.mark.parametrize("goal", [{"fraction": 0.3}, {"failure_probability": 0.3}])
@pytest.mark.parametrize(
    ("prior", "message"),
    [((0.5, 0.5), r"one number a class, 3 \(got shape \(2,\)\)"), ((0.5, 0, 0.5), "above 0")],
)
def test_class_priors_are_those_of_the_classes(scene, goal, prior, message) -> None:
    with pytest.raises(InputError, match=message):
        JointRejector(replace(CONTEXT, class_prior=prior)).reject(scene.probability, **goal)


def test_a_class_that_is_believed_to_be_rare_beyond_all_numbers(scene) -> None:
    context = replace(CONTEXT, class_prior=(1e-16, 1, 1))
    maps = JointRejector(context).reject(scene.probability, fraction=0.5)
    assert 0 <= maps.attrs["failure_probability"] < 1


def test_what_stands_where_there_is_no_data_does_not_matter(scene) -> None:
    """The corner of the scene has no data."""
    rejector = JointRejector(CONTEXT, rejection_classes=4)
    q = top_rows(scene, 0.2, 0.4).astype(float)
    expected = rejector.reject(scene.probability, failure_probability=q)
    for value in (np.inf, -1 / 3, np.nan):
        odd = q.copy(deep=True)
        odd[:3, :2] = value
        found = rejector.reject(scene.probability, failure_probability=odd)
        xr.testing.assert_equal(found, expected)
    p_value = xr.full_like(q, 0.5)
    p_value[:3, :2] = -9999
    for one in (rejector, SequentialRejector(CONTEXT)):
        maps = scene.probability.to_dataset().assign(novelty_p_value=p_value)
        clean = maps.assign(novelty_p_value=p_value.where(p_value > 0))
        xr.testing.assert_equal(one.reject(maps, fraction=0.2), one.reject(clean, fraction=0.2))


def test_masks_and_maps_that_say_nothing_are_refused(scene) -> None:
    rejector = JointRejector(CONTEXT, n_points=3)
    shape = scene.reference.shape
    masked = np.ma.masked_less(np.linspace(0.1, 0.4, shape[0] * shape[1]).reshape(shape), 0.2)
    with pytest.raises(InputError, match="failure_probability is a masked array"):
        rejector.reject(scene.probability, failure_probability=masked)
    for within in (np.full(shape, np.nan), np.full(shape, "no")):
        with pytest.raises(InputError, match="within must be boolean"):
            rejector.sweep(scene.probability, within=within)
    with pytest.raises(InputError, match=r"must be a number \(got a map of <U3\)"):
        rejector.reject(scene.probability, failure_probability=np.full(shape, "0.2"))
    with pytest.raises(InputError, match=r"fraction must be a number \(got an array of shape"):
        rejector.reject(scene.probability, fraction=np.full(shape, 0.2))


def test_a_hidden_field_must_have_values_where_there_is_data(scene) -> None:
    rejector = JointRejector(CONTEXT, n_points=3)
    hidden_field = CONTEXT.solve(scene.probability).hidden_field
    holes = hidden_field.copy(deep=True)
    holes[:, 8:10, 8:10] = np.nan
    with pytest.raises(InputError, match=r"but no hidden_field \(4 of them\)"):
        rejector.sweep(xr.Dataset({"probability": scene.probability, "hidden_field": holes}))
    more = hidden_field.fillna(1 / 3)
    maps = xr.Dataset({"probability": scene.probability, "hidden_field": more})
    found = rejector.reject(maps, fraction=0.0)
    assert np.isnan(found.confidence.values[:3, :2]).all()
    assert (found.label.values[:3, :2] == 255).all()


def test_more_classes_than_a_thousand_have_labels() -> None:
    probability = np.full((1300, 3, 3), 1 / 1300)
    context = SegSALSA(VectorTV(weight=1e-3))
    maps = JointRejector(context).reject(probability, failure_probability=0.0)
    np.testing.assert_array_equal(maps.label.values, context.solve(probability).label)
    assert maps.attrs["n_pixels"] == 9
