"""Joint rejection against its definition, the points of a sweep, and what users give to it."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from tests.rejection.scene import Scene, make_scene

CONTEXT = hr.SegSALSA(hr.VectorTV(weight=0.3))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene(shape=(30, 33))


@pytest.fixture(scope="module")
def points(scene) -> xr.Dataset:
    return hr.JointRejector(CONTEXT, n_workers=1).operating_points(scene.probability, scene.test)


def test_without_failure_it_is_the_context_itself(scene) -> None:
    result = CONTEXT.solve(scene.probability)
    maps = hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=0.0)
    xr.testing.assert_equal(maps.label, result.label)
    np.testing.assert_array_equal(maps.confidence, result.hidden_field.max("category"))
    assert not maps.rejected.any()
    known = xr.Dataset({"probability": scene.probability, "hidden_field": result.hidden_field})
    again = hr.JointRejector(CONTEXT).reject(known, failure_probability=0.0)
    xr.testing.assert_equal(again, maps)
    assert (maps.attrs["n_solves"], again.attrs["n_solves"]) == (1, 0)


@pytest.mark.parametrize(("class_prior", "q"), [(None, 0.33), ((0.5, 0.3, 0.2), 0.6)])
def test_rejection_is_one_more_class(scene, class_prior, q) -> None:
    """The definition, built by hand: classes (1 - q) p / prior and q, in any common scale."""
    context = replace(CONTEXT, class_prior=class_prior)
    scale = np.ones(3) if class_prior is None else np.array(class_prior)
    plain = scene.probability.values / scale[:, None, None]
    extended = np.concatenate([(1 - q) * plain, np.full((1, *plain.shape[1:]), q)])
    extended[:, np.isnan(plain[0])] = np.nan
    extended /= extended.sum(axis=0)
    field = replace(CONTEXT, tol=1e-4).solve(extended.astype(np.float32)).hidden_field
    maps = hr.JointRejector(context).reject(scene.probability, failure_probability=q)
    has_data = ~np.isnan(plain[0])
    expected = (field.argmax(axis=0) == 3) & has_data
    assert 0.02 < expected.mean() < 0.98
    # Both solves end within a relative gap of 1e-4, from differently rounded likelihoods.
    assert (maps.rejected.values != expected).sum() <= 2
    decided = (field[:3].max(axis=0) > 0.01) & has_data
    agree = maps.label.values == np.array([2, 5, 9])[field[:3].argmax(axis=0)]
    assert agree[decided].mean() > 0.995


def test_rejection_may_be_several_classes(scene) -> None:
    """The definition, built by hand: the rejected share of a pixel is spread over equal classes."""
    q, n = 0.33, 4
    plain = scene.probability.values
    has_data = ~np.isnan(plain[0])
    extended = np.concatenate([(1 - q) * plain, np.full((n, *plain.shape[1:]), q)])
    extended[:, ~has_data] = np.nan
    extended /= extended.sum(axis=0)
    field = replace(CONTEXT, tol=1e-4).solve(extended.astype(np.float32)).hidden_field
    spread = np.ptp(field[3:, has_data], axis=0)
    assert spread.max() < 1e-4  # equal classes stay equal, but for rounding
    expected = field[:3].max(axis=0) - field[3:].sum(axis=0)
    rejector = hr.JointRejector(CONTEXT, rejection_classes=n)
    maps = rejector.reject(scene.probability, failure_probability=q)
    # Both solves end within a relative gap of 1e-4, from differently rounded likelihoods.
    np.testing.assert_allclose(maps.confidence, expected, atol=0.02)
    assert 0.02 < maps.attrs["rejected_fraction"] < 0.98
    one = hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=q)
    assert (one.rejected != maps.rejected).any()


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


def test_a_map_of_failure_probabilities(scene) -> None:
    rejector = hr.JointRejector(CONTEXT)
    number = rejector.reject(scene.probability, failure_probability=0.33)
    constant = np.full(scene.reference.shape, 0.33)
    xr.testing.assert_equal(
        rejector.reject(scene.probability, failure_probability=constant), number
    )
    constant[10:20, 10:20] = 0.9
    found = rejector.reject(scene.probability, failure_probability=constant)
    assert found.rejected.values[10:20, 10:20].all()
    assert "failure_probability" not in found.attrs


def test_beyond_doubt_the_context_gives_the_label(scene) -> None:
    maps = hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=0.49)
    assert maps.attrs["rejected_fraction"] == 1
    without = CONTEXT.solve(scene.probability).label
    assert (maps.label == without).mean() > 0.95


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


def test_a_sweep_is_the_same_for_any_number_of_workers(points, scene) -> None:
    for n_workers in (2, 5):
        other = hr.JointRejector(CONTEXT, n_workers=n_workers)
        xr.testing.assert_equal(other.operating_points(scene.probability, scene.test), points)


def test_a_sweep_looks_at_the_reference_pixels(scene) -> None:
    border = np.zeros(scene.reference.shape, dtype=int)
    border[:, 10:12] = 5  # rejected first
    rejector = hr.JointRejector(CONTEXT, n_points=14)
    of_border = rejector.operating_points(scene.probability, border)
    of_scene = rejector.operating_points(scene.probability, scene.reference)
    assert set(of_border.failure_probability.values) != set(of_scene.failure_probability.values)
    for index in (2, 4, 6):
        q = of_border.failure_probability[index].item()
        rejected = rejector.reject(scene.probability, failure_probability=q).rejected
        assert of_border.rejected_fraction[index] == rejected.values[border > 0].mean()


@pytest.mark.parametrize("wanted", [0.01, 0.2, 0.5, 0.95])
def test_search_comes_within_the_tolerance(scene, wanted) -> None:
    maps = hr.JointRejector(CONTEXT).reject(scene.probability, fraction=wanted)
    assert maps.attrs["n_solves"] <= 12
    below, above = maps.attrs["reachable_fractions"]
    assert below <= wanted <= above
    found = maps.attrs["rejected_fraction"]
    assert abs(found - wanted) <= 0.005 or found in (below, above)
    again = hr.JointRejector(CONTEXT).reject(
        scene.probability, failure_probability=maps.attrs["failure_probability"]
    )
    xr.testing.assert_equal(again, maps)


@pytest.mark.parametrize("wanted", [0.0, 0.1, 0.5, 1.0])
def test_points_and_maps_share_their_solves(scene, points, wanted) -> None:
    found, maps = hr.JointRejector(CONTEXT).points_and_maps(
        scene.probability, scene.test, fraction=wanted
    )
    xr.testing.assert_equal(found, points)
    assert maps.attrs["n_solves"] <= 20 + 4
    below, above = maps.attrs["reachable_fractions"]
    assert below <= wanted <= above
    reached = maps.attrs["rejected_fraction"]
    assert abs(reached - wanted) <= 0.005 or reached in (below, above)
    # and are what a solve by itself gives
    q = maps.attrs["failure_probability"]
    alone = hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=q)
    if wanted < 1:
        xr.testing.assert_equal(alone, maps)


def test_it_says_what_it_needs() -> None:
    rejector = hr.JointRejector()
    assert rejector.needs_context
    assert not rejector.has_threshold
    for option in rejector.indifferent_options:
        assert option not in repr(rejector)
        assert hasattr(rejector, option)
    assert not hr.PixelwiseRejector().needs_context
    assert hr.PixelwiseRejector().has_threshold


def test_a_jump_is_reported() -> None:
    probability = np.full((4, 8, 8), 0.02, dtype=np.float32)
    probability[0] = 0.94
    probability[:, :, 4:] = 0.25  # a half that falls as a whole
    rejector = hr.JointRejector(hr.SegSALSA(hr.VectorTV(weight=0.5)))
    few, many = (rejector.reject(probability, fraction=r) for r in (0.2, 0.3))
    assert few.attrs["rejected_fraction"] == 0
    assert many.attrs["rejected_fraction"] == 0.5
    for maps in (few, many):
        assert maps.attrs["reachable_fractions"] == [0.0, 0.5]
        assert maps.attrs["n_solves"] <= 12


def test_operating_points_keep_the_accuracy_of_their_own_labels(scene) -> None:
    rejector = hr.JointRejector(CONTEXT, n_points=8)
    points = rejector.operating_points(scene.probability, scene.test)
    assert points.sizes["operating_point"] == 9  # and the end
    used = ((scene.test > 0) & scene.probability.notnull().all("category")).values
    for index in (2, 4, 6):
        maps = rejector.reject(
            scene.probability, failure_probability=points.failure_probability[index].item()
        )
        correct = (maps.label == scene.test).values[used]
        rejected = maps.rejected.values[used]
        assert points.overall_accuracy[index].item() == correct.mean()
        assert points.accurate_kept[index].item() == (correct & ~rejected).sum()
        assert points.misclassified_rejected[index].item() == (~correct & rejected).sum()
    assert len(np.unique(points.overall_accuracy)) > 1


def test_novelty_multiplies_the_odds_of_failure(scene) -> None:
    p_value = xr.full_like(scene.probability.isel(category=0, drop=True), 1.0)
    p_value[5:9, 12:16] = 0.2**2
    rejector = hr.JointRejector(CONTEXT, novelty_exponent=0.5)  # there: odds times five
    evidence = xr.Dataset({"probability": scene.probability, "novelty_p_value": p_value})
    found = rejector.reject(evidence, failure_probability=0.2)
    odds = np.where(p_value < 1, 5.0, 1.0) * 0.2 / 0.8
    expected = hr.JointRejector(CONTEXT).reject(
        scene.probability, failure_probability=odds / (1 + odds)
    )
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=2e-3)  # float32 q
    assert found.rejected.values[6:8, 13:15].all()
    assert not rejector.reject(evidence, fraction=0.0).rejected.any()


@pytest.mark.parametrize("wrong", [-0.01, 1.0, float("nan")])
def test_impossible_failure_probabilities_are_refused(scene, wrong) -> None:
    with pytest.raises(InputError, match="failure_probability"):
        hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=wrong)
    somewhere = np.zeros(scene.reference.shape)
    somewhere[20, 20] = wrong
    with pytest.raises(InputError, match="failure_probability"):
        hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=somewhere)


def test_impossible_settings_are_refused(scene) -> None:
    with pytest.raises(InputError, match="30 rows x 33"):
        hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=np.zeros((3, 3)))
    with pytest.raises(InputError, match="fraction and failure_probability"):
        hr.JointRejector(CONTEXT).reject(scene.probability, failure_probability=0.1, fraction=0.1)
    for option, value in (
        ("n_points", 1),
        ("n_points", 2.5),
        ("fraction_tol", 0),
        ("fraction_tol", "x"),
        ("fraction_tol", None),
        ("n_workers", 0),
        ("store", 3),
        ("rejection_classes", 0),
        ("novelty_exponent", -1),
        ("novelty_exponent", None),
    ):
        with pytest.raises(InputError, match=option):
            hr.JointRejector(CONTEXT, **{option: value})


@pytest.mark.parametrize("n_workers", [1, 2])
def test_progress_goes_forward_and_ends(scene, n_workers) -> None:
    heard: list[tuple[str, float, float | None]] = []
    hr.JointRejector(CONTEXT, n_points=6, n_workers=n_workers).operating_points(
        scene.probability, scene.test, progress=lambda *news: heard.append(news)
    )
    assert {stage for stage, _, _ in heard} == {"joint sweep"}
    done = [news[1] for news in heard]
    assert done == sorted(done)
    assert heard[-1] == ("joint sweep", 6, 6)
    assert len(heard) > 30


@pytest.fixture(scope="module")
def small() -> Scene:
    return make_scene()


def top_rows(small, value, elsewhere) -> xr.DataArray:
    """Return a map that differs in its first rows, on the grid of the small."""
    like = small.probability.isel(category=0, drop=True)
    values = np.where(np.arange(like.sizes["y"])[:, None] < 8, value, elsewhere)
    return like.copy(data=np.broadcast_to(values, like.shape))


def test_maps_follow_the_names_of_their_dimensions(small) -> None:
    rejector = hr.JointRejector(CONTEXT, n_points=4)
    q = top_rows(small, 0.9, 0.1)
    found = rejector.reject(small.probability, failure_probability=q)
    xr.testing.assert_equal(rejector.reject(small.probability, failure_probability=q.T), found)


def test_maps_of_another_place_are_refused(small) -> None:
    rejector = hr.JointRejector(CONTEXT, n_points=4)
    q = top_rows(small, 0.9, 0.1)
    for wrong, message in (
        (q.assign_coords(y=q.y + 1000), "different grids"),
        (q.rename(y="row"), "dims"),
        (q[:3], "3 rows"),
        (q.values[:3], "14 rows x 15"),
        ("0.2", "'0.2'"),
        (q.where(q > 0.5), "NaN"),
    ):
        with pytest.raises(InputError, match=message):
            rejector.reject(small.probability, failure_probability=wrong)


def test_a_map_of_nothing_is_the_context_where_there_is_data(small) -> None:
    nothing = small.probability.isel(category=0, drop=True) * 0  # NaN where there is no data
    assert nothing.isnull().any()
    rejector = hr.JointRejector(CONTEXT)
    found = rejector.reject(small.probability, failure_probability=nothing)
    expected = rejector.reject(small.probability, failure_probability=0.0)
    xr.testing.assert_equal(found, expected)


@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_certain_classes_may_be_whole_numbers(dtype) -> None:
    certain = np.zeros((3, 6, 6), dtype)
    certain[0, :3] = certain[1, 3:] = 1
    found = hr.JointRejector(CONTEXT).reject(certain, failure_probability=0.2)
    expected = hr.JointRejector(CONTEXT).reject(certain.astype(float), failure_probability=0.2)
    np.testing.assert_array_equal(found.label, expected.label)
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=1e-3)


def test_a_scene_without_pixels_is_told() -> None:
    with pytest.raises(InputError, match=r"must be a non-empty array .*got shape \(3, 0, 5\)"):
        hr.JointRejector(CONTEXT).reject(np.ones((3, 0, 5)), fraction=0.1)


@pytest.mark.parametrize("kind", [hr.SequentialRejector, hr.JointRejector])
def test_a_prior_is_no_context(kind) -> None:
    with pytest.raises(InputError, match=r"must be a SegSALSA \(got VectorTV\)"):
        kind(hr.VectorTV(1.0))


@pytest.mark.parametrize("rejector", [hr.PixelwiseRejector(), hr.JointRejector(CONTEXT)], ids=repr)
def test_wishes_that_are_no_numbers_are_refused(rejector, small) -> None:
    for wrong in ("0.2", [0.1, 0.2], np.array([0.2])):
        with pytest.raises(InputError, match="fraction must be a number"):
            rejector.reject(small.probability, fraction=wrong)
    found = rejector.reject(small.probability, fraction=np.array(0.2, dtype=np.float32))
    assert abs(found.attrs["rejected_fraction"] - 0.2) < 0.01
    with pytest.raises(InputError, match="Divide the cost of a rejection by that of an error"):
        rejector.reject(small.probability, rejection_cost=2)


def test_a_threshold_is_a_number(small) -> None:
    with pytest.raises(InputError, match=r"threshold must be a number \(got nan"):
        hr.PixelwiseRejector().reject(small.probability, threshold=float("nan"))


def novel(small, p_value) -> xr.Dataset:
    like = small.probability.isel(category=0, drop=True)
    return xr.Dataset({"probability": small.probability, "novelty_p_value": 0 * like + p_value})


@pytest.mark.parametrize("wanted", [0.1, 0.9])
def test_novelty_of_the_whole_scene_only_shifts_the_search(small, wanted) -> None:
    rejector = hr.JointRejector(CONTEXT, novelty_exponent=1.0)
    plain = hr.JointRejector(CONTEXT).reject(small.probability, fraction=wanted).attrs
    found = rejector.reject(novel(small, 0.001), fraction=wanted).attrs
    assert found["n_solves"] <= 12
    off = abs(found["rejected_fraction"] - wanted)
    assert off <= max(0.005, abs(plain["rejected_fraction"] - wanted) + 0.002)


def test_a_sweep_reaches_down_to_novel_pixels(small) -> None:
    rejector = hr.JointRejector(CONTEXT, novelty_exponent=1.0)
    points = rejector.operating_points(novel(small, 0.001), small.reference)
    fraction = points.rejected_fraction.values
    assert ((fraction > 0) & (fraction < 1)).sum() >= 8
    mixed = novel(small, top_rows(small, 0.006, 1.0))
    fraction = rejector.operating_points(mixed, small.reference).rejected_fraction.values
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
def test_messages_speak_of_the_probabilities_that_were_given(small, change, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.JointRejector(CONTEXT).reject(change(small.probability), fraction=0.2)


@pytest.mark.parametrize(
    ("prior", "message"),
    [((0.5, 0.5), r"one number per class, 3 \(got shape \(2,\)\)"), ((0.5, 0, 0.5), "above 0")],
)
def test_class_priors_are_those_of_the_classes(small, prior, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.JointRejector(replace(CONTEXT, class_prior=prior)).reject(
            small.probability, fraction=0.3
        )


def test_a_class_that_is_believed_to_be_rare_beyond_all_numbers(small) -> None:
    context = replace(CONTEXT, class_prior=(1e-16, 1, 1))
    maps = hr.JointRejector(context).reject(small.probability, fraction=0.5)
    assert 0 <= maps.attrs["failure_probability"] < 1


def test_what_stands_where_there_is_no_data_does_not_matter(small) -> None:
    """The corner of the scene has no data."""
    rejector = hr.JointRejector(CONTEXT, rejection_classes=4)
    q = top_rows(small, 0.2, 0.4).astype(float)
    expected = rejector.reject(small.probability, failure_probability=q)
    for value in (np.inf, -1 / 3, np.nan):
        odd = q.copy(deep=True)
        odd[:3, :2] = value
        found = rejector.reject(small.probability, failure_probability=odd)
        xr.testing.assert_equal(found, expected)
    p_value = xr.full_like(q, 0.5)
    p_value[:3, :2] = -9999
    for one in (rejector, hr.SequentialRejector(CONTEXT)):
        maps = small.probability.to_dataset().assign(novelty_p_value=p_value)
        clean = maps.assign(novelty_p_value=p_value.where(p_value > 0))
        xr.testing.assert_equal(one.reject(maps, fraction=0.2), one.reject(clean, fraction=0.2))


def test_masks_and_maps_that_say_nothing_are_refused(small) -> None:
    rejector = hr.JointRejector(CONTEXT, n_points=3)
    shape = small.reference.shape
    masked = np.ma.masked_less(np.linspace(0.1, 0.4, shape[0] * shape[1]).reshape(shape), 0.2)
    with pytest.raises(InputError, match="failure_probability is a masked array"):
        rejector.reject(small.probability, failure_probability=masked)
    with pytest.raises(InputError, match=r"must be a number \(got a map of <U3\)"):
        rejector.reject(small.probability, failure_probability=np.full(shape, "0.2"))
    with pytest.raises(InputError, match=r"fraction must be a number \(got an array of shape"):
        rejector.reject(small.probability, fraction=np.full(shape, 0.2))


def test_a_hidden_field_must_have_values_where_there_is_data(small) -> None:
    rejector = hr.JointRejector(CONTEXT, n_points=3)
    hidden_field = CONTEXT.solve(small.probability).hidden_field
    holes = hidden_field.copy(deep=True)
    holes[:, 8:10, 8:10] = np.nan
    maps = xr.Dataset({"probability": small.probability, "hidden_field": holes})
    with pytest.raises(InputError, match=r"no hidden_field \(4"):
        rejector.reject(maps, fraction=0.5)
    more = hidden_field.fillna(1 / 3)
    maps = xr.Dataset({"probability": small.probability, "hidden_field": more})
    found = rejector.reject(maps, fraction=0.0)
    assert np.isnan(found.confidence.values[:3, :2]).all()
    assert (found.label.values[:3, :2] == 255).all()


def test_more_classes_than_a_thousand_have_labels() -> None:
    probability = np.full((1300, 3, 3), 1 / 1300)
    context = hr.SegSALSA(hr.VectorTV(weight=1e-3))
    maps = hr.JointRejector(context).reject(probability, failure_probability=0.0)
    np.testing.assert_array_equal(maps.label.values, context.solve(probability).label)
    assert maps.attrs["n_pixels"] == 9
