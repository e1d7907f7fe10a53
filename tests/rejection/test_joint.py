"""Joint rejection against its definition, and the search and sweep over failure probabilities."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.rejection import JointRejector
from tests.rejection.scene import Scene, make_scene

CONTEXT = SegSALSA(VectorTV(weight=0.3))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return make_scene(shape=(30, 33))


@pytest.fixture(scope="module")
def sweep(scene) -> xr.Dataset:
    return JointRejector(CONTEXT, n_workers=1).sweep(scene.probability)


def test_without_failure_it_is_the_context_itself(scene) -> None:
    result = CONTEXT.solve(scene.probability)
    maps = JointRejector(CONTEXT).reject(scene.probability, failure_probability=0.0)
    xr.testing.assert_equal(maps.label, result.label)
    np.testing.assert_array_equal(maps.confidence, result.hidden_field.max("category"))
    assert not maps.rejected.any()
    known = xr.Dataset({"probability": scene.probability, "hidden_field": result.hidden_field})
    again = JointRejector(CONTEXT).reject(known, failure_probability=0.0)
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
    maps = JointRejector(context).reject(scene.probability, failure_probability=q)
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
    rejector = JointRejector(CONTEXT, rejection_classes=n)
    maps = rejector.reject(scene.probability, failure_probability=q)
    # Both solves end within a relative gap of 1e-4, from differently rounded likelihoods.
    np.testing.assert_allclose(maps.confidence, expected, atol=0.02)
    assert 0.02 < maps.attrs["rejected_fraction"] < 0.98
    one = JointRejector(CONTEXT).reject(scene.probability, failure_probability=q)
    assert (one.rejected != maps.rejected).any()


def test_divided_rejection_lets_smaller_regions_fall() -> None:
    probability = np.full((2, 9, 9), 0.1, dtype=np.float32)
    probability[0] = 0.9
    probability[:, 3:6, 3:6] = 0.5  # nine pixels of which nothing is known
    context = SegSALSA(VectorTV(weight=0.2))

    def smallest_that_rejects(n: int) -> float:
        rejector = JointRejector(context, rejection_classes=n)
        for q in np.arange(0.3, 0.5, 0.01):
            if rejector.reject(probability, failure_probability=q).rejected.any():
                return q
        return np.inf

    # The border of twelve edges costs 0.2 * sqrt(1 + 1/n) each (less at corners, in the isotropic
    # norm), and nine pixels of log(2 q / (1 - q)) must outweigh it: at q = 0.40 and 0.42 or before.
    assert smallest_that_rejects(16) < smallest_that_rejects(1) < 0.425


def test_a_map_of_failure_probabilities(scene) -> None:
    rejector = JointRejector(CONTEXT)
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
    maps = JointRejector(CONTEXT).reject(scene.probability, failure_probability=0.49)
    assert maps.attrs["rejected_fraction"] == 1
    without = CONTEXT.solve(scene.probability).label
    assert (maps.label == without).mean() > 0.95


def test_fraction_grows_with_the_failure_probability(sweep, scene) -> None:
    assert (np.diff(sweep.failure_probability) > 0).all()
    n_pixels = int(scene.probability.notnull().all("category").sum())
    # A gap of 1e-4 leaves open which way a pixel at the edge of a region falls.
    assert np.diff(sweep.rejected_fraction).min() >= -2 / n_pixels


def test_sweep_finds_where_the_fraction_changes(sweep) -> None:
    fraction = sweep.rejected_fraction.values
    assert sweep.sizes["operating_point"] == 20
    assert fraction[0] == 0
    assert (sweep.gap[1:] <= 1e-4).all()
    inside = (fraction > 0) & (fraction < 1)
    assert inside.sum() >= 13  # though four fifths of all failure probabilities reject 0 or 1
    width = np.ptp(sweep.failure_probability.values[inside])
    assert width < 0.1
    assert np.diff([*fraction, 1.0]).max() < 0.15


def test_sweep_is_the_same_for_any_number_of_workers(sweep, scene) -> None:
    for workers in (2, 5):
        other = JointRejector(CONTEXT, n_workers=workers).sweep(scene.probability)
        xr.testing.assert_equal(other, sweep)
    # and every point of it is what a solve by itself gives
    q = sweep.failure_probability.values[6].item()
    alone = JointRejector(CONTEXT).reject(scene.probability, failure_probability=q)
    np.testing.assert_array_equal(alone.confidence, sweep.confidence[6])
    np.testing.assert_array_equal(alone.label, sweep.label[6])


def test_sweep_within_some_pixels(scene) -> None:
    within = np.zeros(scene.reference.shape, dtype=bool)
    within[:, 10:14] = True  # a border, rejected first
    points = JointRejector(CONTEXT, n_points=8).sweep(scene.probability, within=within)
    rejected = points.rejected.values[:, within].mean(axis=1)
    np.testing.assert_array_equal(points.rejected_fraction, rejected)
    with pytest.raises(InputError, match="no pixel with data within"):
        JointRejector(CONTEXT).sweep(scene.probability, within=within & False)


@pytest.mark.parametrize("wanted", [0.01, 0.1, 0.2, 0.5, 0.8, 0.95])
def test_search_comes_within_the_tolerance(scene, wanted) -> None:
    maps = JointRejector(CONTEXT).reject(scene.probability, fraction=wanted)
    assert maps.attrs["n_solves"] <= 12
    below, above = maps.attrs["reachable_fractions"]
    assert below <= wanted <= above
    found = maps.attrs["rejected_fraction"]
    assert abs(found - wanted) <= 0.005 or found in (below, above)
    again = JointRejector(CONTEXT).reject(
        scene.probability, failure_probability=maps.attrs["failure_probability"]
    )
    xr.testing.assert_equal(again, maps)


@pytest.mark.parametrize("wanted", [0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
def test_search_starts_from_known_points(scene, wanted) -> None:
    rejector = JointRejector(CONTEXT)
    points = rejector.operating_points(scene.probability, scene.test)
    assert (points.scene_fraction[[0, -1]] == [0, 1]).all()
    maps = rejector.reject(scene.probability, fraction=wanted, points=points)
    assert maps.attrs["n_solves"] <= 5  # that without rejection included
    below, above = maps.attrs["reachable_fractions"]
    assert below <= wanted <= above
    found = maps.attrs["rejected_fraction"]
    assert abs(found - wanted) <= 0.005 or found in (below, above)


def test_points_of_something_else_are_refused(scene) -> None:
    rejector = JointRejector(CONTEXT, n_points=8)
    points = rejector.operating_points(scene.probability, scene.test)
    middle = int(np.argmin(abs(points.scene_fraction.values - 0.5)))
    q = points.failure_probability[middle].item()
    wrong = points.assign(scene_fraction=points.scene_fraction / 2)
    wanted = wrong.scene_fraction[middle].item()
    with pytest.raises(InputError, match=f"a failure probability of {q:g} rejects"):
        rejector.reject(scene.probability, fraction=wanted, points=wrong)
    with pytest.raises(InputError, match=r"'scene_fraction' \(it has: rejected_fraction"):
        rejector.reject(scene.probability, fraction=0.1, points=points[["rejected_fraction"]])


def test_a_jump_is_reported() -> None:
    probability = np.full((4, 8, 8), 0.02, dtype=np.float32)
    probability[0] = 0.94
    probability[:, :, 4:] = 0.25  # a half that falls as a whole
    rejector = JointRejector(SegSALSA(VectorTV(weight=0.5)))
    few, many = (rejector.reject(probability, fraction=r) for r in (0.2, 0.3))
    assert few.attrs["rejected_fraction"] == 0
    assert many.attrs["rejected_fraction"] == 0.5
    for maps in (few, many):
        assert maps.attrs["reachable_fractions"] == [0.0, 0.5]
        assert maps.attrs["n_solves"] <= 12


def test_operating_points_keep_the_accuracy_of_their_own_labels(scene) -> None:
    rejector = JointRejector(CONTEXT, n_points=8)
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
    rejector = JointRejector(CONTEXT, novelty_exponent=0.5)  # there: odds times five
    evidence = xr.Dataset({"probability": scene.probability, "novelty_p_value": p_value})
    found = rejector.reject(evidence, failure_probability=0.2)
    odds = np.where(p_value < 1, 5.0, 1.0) * 0.2 / 0.8
    expected = JointRejector(CONTEXT).reject(
        scene.probability, failure_probability=odds / (1 + odds)
    )
    np.testing.assert_allclose(found.confidence, expected.confidence, atol=2e-3)  # float32 q
    assert found.rejected.values[6:8, 13:15].all()
    assert not rejector.reject(evidence, fraction=0.0).rejected.any()


@pytest.mark.parametrize("wrong", [-0.01, 1.0, 1.5, float("nan")])
def test_impossible_failure_probabilities_are_refused(scene, wrong) -> None:
    with pytest.raises(InputError, match=r"failure_probability must lie in \[0, 1\)"):
        JointRejector(CONTEXT).reject(scene.probability, failure_probability=wrong)
    somewhere = np.zeros(scene.reference.shape)
    somewhere[20, 20] = wrong
    with pytest.raises(InputError, match=r"failure_probability must lie in \[0, 1\)"):
        JointRejector(CONTEXT).reject(scene.probability, failure_probability=somewhere)


def test_impossible_settings_are_refused(scene) -> None:
    with pytest.raises(InputError, match=r"map \(y, x\) of the shape \(30, 33\)"):
        JointRejector(CONTEXT).reject(scene.probability, failure_probability=np.zeros((3, 3)))
    with pytest.raises(InputError, match="fraction and failure_probability"):
        JointRejector(CONTEXT).reject(scene.probability, failure_probability=0.1, fraction=0.1)
    for option, value in (
        ("n_points", 1),
        ("tolerance", 0),
        ("n_workers", 0),
        ("rejection_classes", 0),
        ("novelty_exponent", -1),
    ):
        with pytest.raises(InputError, match=option):
            JointRejector(CONTEXT, **{option: value})


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_goes_forward_and_ends(scene, workers) -> None:
    heard: list[tuple[str, float, float | None]] = []
    JointRejector(CONTEXT, n_points=6, n_workers=workers).sweep(
        scene.probability, progress=lambda *news: heard.append(news)
    )
    assert {stage for stage, _, _ in heard} == {"joint sweep"}
    done = [news[1] for news in heard]
    assert done == sorted(done)
    assert heard[-1] == ("joint sweep", 6, 6)
    assert len(heard) > 30
