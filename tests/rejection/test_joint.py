"""Joint rejection against its definition, the points of a sweep, and what users give to it."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from tests.rejection.scene import CONTEXT, LARGE, SMALL, with_p_value

JOINT = hr.JointRejector(CONTEXT)


@pytest.fixture(scope="module")
def points() -> xr.Dataset:
    return replace(JOINT, n_workers=1).operating_points(LARGE.probability, LARGE.test)


def on_grid(value, below=None) -> xr.DataArray:
    """Return a map on the grid of the small scene; the rows from 8 on may have another value."""
    like = SMALL.probability.isel(category=0, drop=True)
    below = value if below is None else below
    values = np.where(np.arange(like.sizes["y"])[:, None] < 8, value, below)
    return like.copy(data=np.broadcast_to(values, like.shape))


def test_without_failure_it_is_the_context_itself() -> None:
    result = CONTEXT.solve(LARGE.probability)
    maps = JOINT.reject(LARGE.probability, failure_probability=0.0)
    xr.testing.assert_equal(maps.label, result.label)
    np.testing.assert_array_equal(maps.confidence, result.hidden_field.max("category"))
    assert not maps.rejected.any()
    known = xr.Dataset({"probability": LARGE.probability, "hidden_field": result.hidden_field})
    again = JOINT.reject(known, failure_probability=0.0)
    xr.testing.assert_equal(again, maps)
    assert (maps.attrs["n_solves"], again.attrs["n_solves"]) == (1, 0)


@pytest.mark.parametrize(
    ("q", "n", "class_prior"), [(0.33, 1, None), (0.6, 1, (0.5, 0.3, 0.2)), (0.33, 4, None)]
)
def test_rejection_is_more_classes(q, n, class_prior) -> None:
    """The definition, built by hand: classes (1 - q) p / prior and n times q, in a common scale."""
    scale = np.ones(3) if class_prior is None else np.array(class_prior)
    plain = LARGE.probability.values / scale[:, None, None]
    has_data = ~np.isnan(plain[0])
    extended = np.concatenate([(1 - q) * plain, np.full((n, *plain.shape[1:]), q)])
    extended[:, ~has_data] = np.nan
    extended /= extended.sum(axis=0)
    field = replace(CONTEXT, tol=1e-4).solve(extended.astype(np.float32)).hidden_field
    assert np.ptp(field[3:, has_data], axis=0).max() < 1e-4  # equal classes stay equal
    expected = field[:3].max(axis=0) - field[3:].sum(axis=0)
    rejector = hr.JointRejector(replace(CONTEXT, class_prior=class_prior), rejection_classes=n)
    maps = rejector.reject(LARGE.probability, failure_probability=q)
    assert 0.02 < maps.attrs["rejected_fraction"] < 0.98
    # Both solves end within a relative gap of 1e-4, from differently rounded likelihoods.
    np.testing.assert_allclose(maps.confidence, expected, atol=0.02)
    assert (maps.rejected.values != (expected < 0)).sum() <= 2
    decided = (field[:3].max(axis=0) > 0.01) & has_data
    agree = maps.label.values == np.array([2, 5, 9])[field[:3].argmax(axis=0)]
    assert agree[decided].mean() > 0.995


def test_divided_rejection_lets_smaller_regions_fall() -> None:
    probability = np.full((2, 9, 9), 0.1, dtype=np.float32)
    probability[0] = 0.9
    probability[:, 3:6, 3:6] = 0.5  # nine pixels of which nothing is known
    context = hr.SegSALSA(hr.VectorTV(weight=0.2))

    def smallest_that_rejects(n: int) -> float:
        rejector = hr.JointRejector(context, rejection_classes=n)
        for q in np.arange(0.3, 0.5, 0.01):
            if rejector.reject(probability, failure_probability=q).rejected.any():
                return q
        return np.inf

    # The border of twelve edges costs 0.2 * sqrt(1 + 1/n) each (less at corners, in the isotropic
    # norm), and nine pixels of log(2 q / (1 - q)) must outweigh it: at q = 0.40 and 0.42 or before.
    assert smallest_that_rejects(16) < smallest_that_rejects(1) < 0.425


def test_beyond_doubt_the_context_gives_the_label() -> None:
    maps = JOINT.reject(LARGE.probability, failure_probability=0.49)
    assert maps.attrs["rejected_fraction"] == 1
    assert (maps.label == CONTEXT.solve(LARGE.probability).label).mean() > 0.95


def test_a_sweep_finds_where_the_fraction_changes(points) -> None:
    fraction = points.rejected_fraction.values
    assert points.sizes["operating_point"] == 21  # the end, too
    assert (fraction[0], fraction[-1]) == (0, 1)
    n_pixels = int(points.accurate_kept[0] + points.misclassified_kept[0])
    order = np.argsort(points.failure_probability.values)
    # A gap of 1e-4 leaves open which way a pixel at the edge of a region falls.
    assert np.diff(fraction[order]).min() >= -2 / n_pixels
    inside = (fraction > 0) & (fraction < 1)
    assert inside.sum() >= 13  # though four fifths of all failure probabilities reject 0 or 1
    assert np.ptp(points.failure_probability.values[inside]) < 0.1
    assert np.diff(fraction).max() < 0.15


def test_a_sweep_is_the_same_for_any_number_of_workers(points) -> None:
    for n_workers in (2, 5):
        other = replace(JOINT, n_workers=n_workers)
        xr.testing.assert_equal(other.operating_points(LARGE.probability, LARGE.test), points)


def test_a_sweep_looks_at_the_reference_pixels() -> None:
    border = np.zeros(LARGE.reference.shape, dtype=int)
    border[:, 10:12] = 5  # rejected first
    rejector = replace(JOINT, n_points=14)
    of_border = rejector.operating_points(LARGE.probability, border)
    of_scene = rejector.operating_points(LARGE.probability, LARGE.reference)
    assert set(of_border.failure_probability.values) != set(of_scene.failure_probability.values)
    for index in (2, 4, 6):
        q = of_border.failure_probability[index].item()
        rejected = rejector.reject(LARGE.probability, failure_probability=q).rejected
        assert of_border.rejected_fraction[index] == rejected.values[border > 0].mean()


@pytest.mark.parametrize("wanted", [0.0, 0.01, 0.1, 0.2, 0.5, 0.95, 1.0])
def test_a_wanted_fraction_is_found_alone_and_in_a_sweep(points, wanted) -> None:
    alone = JOINT.reject(LARGE.probability, fraction=wanted)
    assert alone.attrs["n_solves"] <= 12
    below, above = alone.attrs["reachable_fractions"]
    reached, q = alone.attrs["rejected_fraction"], alone.attrs["failure_probability"]
    assert below <= wanted <= above
    assert abs(reached - wanted) <= 0.005 or reached in (below, above)
    if wanted < 1:  # and the maps are those of a solve by itself
        again = JOINT.reject(LARGE.probability, failure_probability=q)
        xr.testing.assert_equal(again, alone)
    swept = JOINT.sweep(LARGE.probability, LARGE.test, fraction=wanted)
    assert set(points["failure_probability"].values) <= set(swept["failure_probability"].values)
    assert swept.sizes["operating_point"] <= points.sizes["operating_point"] + 1
    shares = swept["rejected"].sum(("y", "x")) / np.isfinite(LARGE.probability.values[0]).sum()
    assert np.abs(shares - wanted).min() <= abs(reached - wanted) + 0.005


def test_a_jump_is_reported() -> None:
    probability = np.full((4, 8, 8), 0.02, dtype=np.float32)
    probability[0] = 0.94
    probability[:, :, 4:] = 0.25  # a half that falls as a whole
    rejector = hr.JointRejector(hr.SegSALSA(hr.VectorTV(weight=0.5)))
    for wanted, reached in ((0.2, 0.0), (0.3, 0.5)):
        attrs = rejector.reject(probability, fraction=wanted).attrs
        assert attrs["rejected_fraction"] == reached
        assert attrs["reachable_fractions"] == [0.0, 0.5]
        assert attrs["n_solves"] <= 12


def test_operating_points_keep_the_accuracy_of_their_own_labels() -> None:
    rejector = replace(JOINT, n_points=8)
    points = rejector.operating_points(LARGE.probability, LARGE.test)
    assert points.sizes["operating_point"] == 9  # and the end
    used = ((LARGE.test > 0) & LARGE.probability.notnull().all("category")).values
    for index in (2, 4, 6):
        q = points.failure_probability[index].item()
        maps = rejector.reject(LARGE.probability, failure_probability=q)
        correct = (maps.label == LARGE.test).values[used]
        rejected = maps.rejected.values[used]
        assert points.overall_accuracy[index].item() == correct.mean()
        assert points.accurate_kept[index].item() == (correct & ~rejected).sum()
        assert points.misclassified_rejected[index].item() == (~correct & rejected).sum()
    assert len(np.unique(points.overall_accuracy)) > 1


def test_novelty_multiplies_the_odds_of_failure() -> None:
    p_value = np.ones(LARGE.reference.shape)
    p_value[5:9, 12:16] = 0.06  # there: odds times 1.25
    maps = with_p_value(LARGE, p_value)
    found = JOINT.reject(maps, failure_probability=0.3)
    odds = np.where(p_value < 1, 1.25, 1) * 0.3 / 0.7
    q = np.where(LARGE.probability.isnull().any("category"), np.nan, odds / (1 + odds))
    extended = np.concatenate([(1 - q) * LARGE.probability.values, q[None]])
    field = replace(CONTEXT, tol=1e-4).solve(extended).hidden_field
    expected = field[:-1].max(axis=0) - field[-1]
    np.testing.assert_allclose(found.confidence, expected, atol=2e-3)  # float32 q
    assert not JOINT.reject(maps, fraction=0.0).rejected.any()
    p_value[5:9, 12:16] = 0.001
    np.testing.assert_array_equal(
        JOINT.reject(with_p_value(LARGE, p_value), fraction=0.0).rejected.values,
        (p_value < 1) & LARGE.probability.notnull().all("category").values,
    )


@pytest.mark.parametrize("wanted", [0.1, 0.9])
def test_novelty_of_the_whole_scene_only_shifts_the_search(wanted) -> None:
    plain = JOINT.reject(SMALL.probability, fraction=wanted).attrs
    found = JOINT.reject(with_p_value(SMALL, 0.051), fraction=wanted).attrs
    assert found["n_solves"] <= 12
    off = abs(found["rejected_fraction"] - wanted)
    assert off <= max(0.005, abs(plain["rejected_fraction"] - wanted) + 0.002)


def test_a_sweep_reaches_down_to_novel_pixels() -> None:
    novel = with_p_value(SMALL, 7e-5)
    fraction = JOINT.operating_points(novel, SMALL.reference).rejected_fraction.values
    assert ((fraction > 0) & (fraction < 1)).sum() >= 8
    mixed = with_p_value(SMALL, on_grid(0.0005, below=1.0).values)
    fraction = JOINT.operating_points(mixed, SMALL.reference).rejected_fraction.values
    assert ((fraction > 0) & (fraction < 0.5)).any()  # some of the novel rows
    assert (abs(fraction - 8 / 14) < 0.02).any()  # all of them
    assert (fraction > 0.6).sum() >= 4  # and of the others


@pytest.mark.parametrize("n_workers", [1, 2])
def test_progress_goes_forward_and_ends(n_workers) -> None:
    heard: list[tuple[str, float, float | None]] = []
    replace(JOINT, n_points=6, n_workers=n_workers).operating_points(
        LARGE.probability, LARGE.test, progress=lambda *news: heard.append(news)
    )
    assert {stage for stage, _, _ in heard} == {"joint sweep"}
    done = [news[1] for news in heard]
    assert done == sorted(done)
    assert heard[-1] == ("joint sweep", 6, 6)
    assert len(heard) > 30


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (-0.01, "got -0.01"),
        (1.0, "got 1.0"),
        (float("nan"), "got nan"),
        ("0.2", "'0.2'"),
        (np.full((14, 15), 0.2), "must be a number"),
    ],
)
def test_impossible_failure_probabilities_are_refused(wrong, message) -> None:
    with pytest.raises(InputError, match=message):
        JOINT.reject(SMALL.probability, failure_probability=wrong)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("context", hr.VectorTV(1.0)),
        ("n_points", 1),
        ("n_points", 2.5),
        ("fraction_tol", 0),
        ("fraction_tol", 1.0),
        ("fraction_tol", "x"),
        ("n_workers", 0),
        ("store", 3),
        ("rejection_classes", 0),
        ("novelty", "yes"),
        ("novelty", 1),
    ],
)
def test_impossible_settings_are_refused(option, value) -> None:
    with pytest.raises(InputError, match=option):
        replace(JOINT, **{option: value})


@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_certain_classes_may_be_whole_numbers(dtype) -> None:
    certain = np.zeros((3, 6, 6), dtype)
    certain[0, :3] = certain[1, 3:] = 1
    found = JOINT.reject(certain, failure_probability=0.2)
    expected = JOINT.reject(certain.astype(float), failure_probability=0.2)
    np.testing.assert_array_equal(found.label, expected.label)
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=1e-3)


def test_a_scene_without_pixels_is_told() -> None:
    with pytest.raises(InputError, match=r"\(3, 0, 5\)"):
        JOINT.reject(np.ones((3, 0, 5)), fraction=0.1)


@pytest.mark.parametrize(
    ("prior", "message"), [((0.5, 0.5), r"3, .*\[0.5, 0.5\]"), ((0.5, 0, 0.5), "above 0")]
)
def test_class_priors_are_those_of_the_classes(prior, message) -> None:
    rejector = hr.JointRejector(replace(CONTEXT, class_prior=prior))
    with pytest.raises(InputError, match=message):
        rejector.reject(SMALL.probability, fraction=0.3)


def test_a_class_that_is_believed_to_be_rare_beyond_all_numbers() -> None:
    rejector = hr.JointRejector(replace(CONTEXT, class_prior=(1e-16, 1, 1)))
    maps = rejector.reject(SMALL.probability, fraction=0.5)
    assert 0 <= maps.attrs["failure_probability"] < 1


def test_what_stands_where_there_is_no_data_does_not_matter() -> None:
    """The corner of the scene has no data."""
    rejector = replace(JOINT, rejection_classes=4)
    p_value = np.full(SMALL.reference.shape, 0.5)
    p_value[:3, :2] = np.nan
    clean = with_p_value(SMALL, p_value)
    odd = with_p_value(SMALL, np.nan_to_num(p_value, nan=-9999))
    for one in (rejector, hr.SequentialRejector(CONTEXT)):
        xr.testing.assert_equal(one.reject(odd, fraction=0.2), one.reject(clean, fraction=0.2))


def test_a_hidden_field_must_have_values_where_there_is_data() -> None:
    hidden_field = CONTEXT.solve(SMALL.probability).hidden_field
    holes = hidden_field.copy(deep=True)
    holes[:, 8:10, 8:10] = np.nan
    maps = xr.Dataset({"probability": SMALL.probability, "hidden_field": holes})
    with pytest.raises(InputError, match=r"no hidden_field \(4"):
        JOINT.reject(maps, fraction=0.5)
    found = JOINT.reject(maps.assign(hidden_field=hidden_field.fillna(1 / 3)), fraction=0.0)
    assert np.isnan(found.confidence.values[:3, :2]).all()
    assert (found.label.values[:3, :2] == 255).all()


def test_more_classes_than_a_thousand_have_labels() -> None:
    probability = np.full((1300, 3, 3), 1 / 1300)
    context = hr.SegSALSA(hr.VectorTV(weight=1e-3))
    maps = hr.JointRejector(context).reject(probability, failure_probability=0.0)
    np.testing.assert_array_equal(maps.label.values, context.solve(probability).label)
    assert maps.attrs["n_pixels"] == 9
