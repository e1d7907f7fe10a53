"""Sequential designs: exact boundaries, promises over redraws, any order and any stop."""

import itertools
import math
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

import hsreject as hr
from hsreject.certification import exact_tests
from hsreject.certification.exact_tests import Requirement, boundaries, chance_to_pass
from hsreject.certification.frame import Frame
from hsreject.certification.planning import simulated_outcomes
from hsreject.certification.sequential_design import OPEN, RIGHT, WRONG, sequential_designs
from hsreject.errors import InputError
from tests.certification.scenes import kept_error, labelled_to_the_end, placed, ranked_map


def passing_share(n_pixels: int, n_wrong: int, steps: tuple[tuple[int, int], ...]) -> float:
    """Return the share of all orders of a region that ever pass, by going through them."""
    passed = 0
    for places in itertools.combinations(range(n_pixels), n_wrong):
        counts = np.cumsum(np.isin(np.arange(n_pixels), places))
        passed += any(counts[look - 1] <= most for look, most in steps)
    return passed / math.comb(n_pixels, n_wrong)


@pytest.mark.parametrize("n_pixels", [5, 8, 12])
@pytest.mark.parametrize(("max_error", "delta"), [(0.1, 0.3), (0.3, 0.1), (0.3, 0.4), (0.6, 0.7)])
@pytest.mark.parametrize("looks", [(3, 5, 7, 9), (2, 4, 20), (4,)])
def test_boundaries_are_exact_and_cannot_be_larger(n_pixels, max_error, delta, looks) -> None:
    """With just too many wrong pixels, at most delta of all orders pass, and one more is too many.

    At every look, what has passed by then is within delta times its part, unless the region is
    looked at whole there.
    """
    steps = boundaries(n_pixels, looks, max_error, delta)
    n_wrong = math.floor(max_error * n_pixels + 1e-9) + 1
    seen = sorted({min(look, n_pixels) for look in looks})
    for look in seen:
        whole = n_pixels <= looks[-1] and look == seen[-1]
        part = delta if whole else delta * look / looks[-1]
        so_far = tuple(step for step in steps if step[0] <= look)
        assert passing_share(n_pixels, n_wrong, so_far) <= part + 1e-9
        most = dict(steps).get(look, -1)
        bolder = (*(step for step in so_far if step[0] < look), (look, most + 1))
        assert passing_share(n_pixels, n_wrong, bolder) > part - 1e-9
    for more in range(n_wrong, n_pixels + 1):  # worse maps pass even more rarely
        assert passing_share(n_pixels, more, steps) <= delta + 1e-9


def test_looks_are_geometric_from_what_could_pass_to_nearly_all_labels() -> None:
    looks = Requirement(400, 0.05, 0.1).looks
    assert (looks[0], looks[-1], len(looks)) == (45, 368, 16)
    assert Requirement(2000, 0.05, 0.1).looks[0] == 200
    assert Requirement(48, 0.05, 0.1).looks == ()


def test_chances_of_large_regions_agree_with_scipy() -> None:
    """One look of a region of a million pixels: the tail of one hypergeometric."""
    ((_, most),) = boundaries(1_000_000, (600,), 0.05, 0.1)
    tail = hypergeom.cdf([most, most + 1], 1_000_000, 50_001, 600)
    assert tail[0] <= 0.1 < tail[1]


def scene(kind: str, rows: int = 60, columns: int = 60, seed: int = 5):
    """Return label, confidence and truth of maps that are hard in different ways."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(size=(rows, columns))
    if kind == "ties":
        confidence = np.ceil(confidence * 8) / 8
    u = 1 - confidence
    error = {
        "steep": np.where(u < 0.5, 0.02, 0.5),
        "flat": np.full(u.shape, 0.04),
        "just above": np.full(u.shape, 0.053),
        "hump": np.where(u < 0.15, 0.12, np.where(u < 0.7, 0.01, 0.4)),
        "ties": 0.3 * u**1.5,
        "small": 0.3 * u**1.5,
    }[kind]
    truth = rng.integers(1, 4, size=confidence.shape)
    wrong = rng.uniform(size=confidence.shape) < error
    return np.where(wrong, truth % 3 + 1, truth), confidence, truth


@pytest.mark.parametrize("kind", ["steep", "just above", "hump", "ties", "small"])
def test_the_promise_holds_over_redraws(kind) -> None:
    label, confidence, truth = scene(kind, *((20, 20) if kind == "small" else (60, 60)))
    broken, n_draws = 0, 25
    for seed in range(n_draws):
        sample = labelled_to_the_end(label, confidence, truth, 150, seed=seed, batch=400)
        made = hr.certify(label, confidence, sample)
        broken += kept_error(made, label, confidence, truth) > 0.05
    assert broken <= n_draws * (0.1 + 3 * math.sqrt(0.1 * 0.9 / n_draws))


def test_it_certifies_more_than_a_random_sample_of_the_same_size() -> None:
    label, confidence, truth = ranked_map(120, 120, seed=3, steepness=1.5)
    coverage = np.array(
        [
            (
                hr.certify(
                    label, confidence, labelled_to_the_end(label, confidence, truth, 300, seed=s)
                ).coverage,
                hr.certify(
                    label, confidence, hr.draw_sample(label, 300, seed=s).with_reference(truth)
                ).coverage,
            )
            for s in range(4)
        ]
    )
    assert coverage[:, 0].mean() > 2 * coverage[:, 1].mean()


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 90), min_size=1, max_size=30))
def test_any_batches_and_any_order_lead_to_the_same_certificate(seed, batches) -> None:
    """The same labels, whoever asked for them when: the state follows from the labels alone."""
    label, confidence, truth = ranked_map(40, 50, seed=2, steepness=2)
    sample = hr.draw_sample(label, 120, design="sequential", confidence=confidence, max_error=0.1)
    for batch in batches:  # stopping after any of them is allowed
        sample = hr.more_points(label, confidence, sample.with_reference(truth), batch)
    sample = sample.with_reference(truth)
    made = hr.certify(label, confidence, sample)
    shuffled = sample.select(np.random.default_rng(seed).permutation(len(sample)))
    assert repr(hr.certify(label, confidence, shuffled)) == repr(made)
    assert len(sample) <= 120
    more = labelled_to_the_end(label, confidence, truth, 120, max_error=0.1)
    # a design that went on has not lost what was certified before
    both = sample.joined(more.select(~np.isin(flat(more), flat(sample))))
    assert hr.certify(label, confidence, both).coverage >= made.coverage


def flat(sample: hr.Sample) -> np.ndarray:
    return sample.row * sample.grid.width + sample.column


def test_the_first_batch_is_a_look_and_the_next_ones_come_as_they_are_asked_for() -> None:
    label, confidence, truth = ranked_map(steepness=2.5)
    plan = {"design": "sequential", "confidence": confidence, "max_error": 0.05, "seed": 1}
    sample = hr.draw_sample(label, 400, **plan)
    assert not sample.labelled.any()
    made = hr.certify(label, confidence, sample)
    assert (made.threshold, made.finished, made.n_points) == (None, False, 0)
    assert "Label the points" in made.statement  # nothing is known of errors yet
    assert "likely" not in made.statement
    more = hr.more_points(label, confidence, sample.with_reference(truth), 50)
    assert len(sample) < len(more) <= len(sample) + 50
    np.testing.assert_array_equal(more.id, np.arange(1, len(more) + 1))
    np.testing.assert_array_equal(more.reference[: len(sample)], truth[sample.row, sample.column])
    assert np.unique(flat(more)).size == len(more)
    # where nobody has labelled the last batch, nothing of later looks is handed out
    assert len(hr.more_points(label, confidence, more, 50)) == len(more)
    ended = labelled_to_the_end(label, confidence, truth, 400, seed=1)
    assert hr.certify(label, confidence, ended).finished
    assert hr.more_points(label, confidence, ended, 50).id.size == len(ended) <= 400


def test_points_without_an_answer_are_named_and_hold_up_the_next_step() -> None:
    """And the labels that are left are kept for it, instead of being spent on later looks."""
    label, confidence, truth = ranked_map(steepness=2.5)
    sample = hr.draw_sample(label, 400, design="sequential", confidence=confidence)
    sample = hr.more_points(label, confidence, sample.with_reference(truth), 50)
    skipped = sample.id[[len(sample) - 40, len(sample) - 20]]
    part = replace(sample.with_reference(truth), reference=truth[sample.row, sample.column])
    gaps = replace(part, reference=np.where(np.isin(part.id, skipped), 0, part.reference))
    made = hr.certify(label, confidence, gaps)
    assert set(made.waiting) <= set(skipped.tolist())
    assert made.waiting
    assert not made.finished
    words = f"waits for {len(made.waiting)} point"
    assert words in made.statement
    assert str(made.waiting[0]) in made.statement
    assert hr.Certificate.from_json(made.to_json()) == made
    assert len(hr.more_points(label, confidence, gaps, 50)) == len(gaps)
    answered = hr.certify(label, confidence, part)
    assert answered.waiting == ()
    assert answered.coverage >= made.coverage
    assert len(hr.more_points(label, confidence, part, 50)) > len(part)


@pytest.mark.parametrize("n_wrong", [0, 1, 3, 6])
@pytest.mark.parametrize("looks", [(3, 5, 7, 9), (2, 4, 20)])
def test_chances_to_pass_are_those_of_going_through_all_orders(n_wrong, looks) -> None:
    steps = boundaries(12, looks, 0.3, 0.4)
    assert chance_to_pass(12, n_wrong, steps) == pytest.approx(passing_share(12, n_wrong, steps))


def test_bounds_of_a_sequential_design_count_all_of_its_looks() -> None:
    """Over all orders of twelve pixels, the bound is below the truth in at most delta of them."""
    requirement = Requirement(12, 0.5, 0.25)
    steps = requirement.boundaries(12)
    assert len(steps) > 2
    too_low = {}
    for n_wrong in range(13):
        below = 0
        for places in itertools.combinations(range(12), n_wrong):
            counts = np.cumsum(np.isin(np.arange(12), places))
            at = next((at for at, (n, b) in enumerate(steps) if counts[n - 1] <= b), -1)
            n_looked = steps[at][0]
            test = exact_tests.Test(0.0, 12, 1.0, n_looked, int(counts[n_looked - 1]), steps[at][1])
            bound = test.upper_bound(requirement.delta, steps[:at] if at else ())
            below += bound < n_wrong / 12
        too_low[n_wrong] = below / math.comb(12, n_wrong)
    assert max(too_low.values()) <= requirement.delta


def test_it_says_how_many_more_labels_or_that_none_are_likely_to_do() -> None:
    label, confidence, truth = scene("steep")
    sample = hr.draw_sample(label, 300, design="sequential", confidence=confidence).with_reference(
        truth
    )
    made = hr.certify(label, confidence, sample)
    assert made.n_more is not None
    assert f"About {made.n_more} more labels" in made.statement
    hopeless = hr.certify(label, confidence, sample.with_reference(truth % 3 + 1))
    assert hopeless.n_more is None
    assert "likely to pass" in hopeless.statement


def test_points_that_the_design_did_not_draw_are_refused() -> None:
    label, confidence, truth = ranked_map()
    sample = labelled_to_the_end(label, confidence, truth, 100)
    moved = replace(sample, row=(sample.row + 1) % label.shape[0])
    for what in (hr.certify, hr.more_points):
        with pytest.raises(InputError, match="not those that this design drew"):
            what(label, confidence, moved)


def test_a_changed_map_or_plan_is_refused() -> None:
    label, confidence, truth = ranked_map()
    sample = labelled_to_the_end(label, confidence, truth, 100)
    other, moved = label.copy(), confidence.copy()
    other[0, 0] = label[0, 0] % 3 + 1
    moved[0, 0] = 1 - moved[0, 0]
    for changed in ((other, confidence), (label, moved)):
        with pytest.raises(InputError, match="another map"):
            hr.certify(*changed, sample)
        with pytest.raises(InputError, match="another map"):
            hr.more_points(*changed, sample)
    with pytest.raises(InputError, match="max_error"):
        hr.certify(label, confidence, sample, max_error=0.1)
    with pytest.raises(InputError, match="confidence_level"):
        hr.certify(label, confidence, sample, confidence_level=0.8)
    assert hr.certify(label, confidence, sample, max_error=0.05, confidence_level=0.9)
    train = np.zeros_like(label)
    train[:5] = 1
    drawn = drawn_without(train, label, confidence, truth)
    with pytest.raises(InputError, match="exclude"):
        hr.certify(label, confidence, drawn)
    assert hr.certify(label, confidence, drawn, exclude=train).n_pixels == label.size - 500
    with pytest.raises(InputError, match="sequential"):
        hr.more_points(label, confidence, hr.draw_sample(label, 50), 10)


def drawn_without(train, label, confidence, truth) -> hr.Sample:
    sample = hr.draw_sample(label, 100, design="sequential", confidence=confidence, exclude=train)
    return hr.more_points(label, confidence, sample.with_reference(truth), exclude=train)


def test_a_plan_that_was_edited_in_the_file_is_refused(tmp_path) -> None:
    values, confidence, truth = ranked_map()
    label = placed(values)
    sample = labelled_to_the_end(label, confidence, truth, 100)
    sample.write(tmp_path / "points.gpkg")
    frame = gpd.read_file(tmp_path / "points.gpkg")
    frame["design"] = frame["design"].str.replace("error=0.05", "error=0.2")
    frame.to_file(tmp_path / "edited.gpkg")
    with pytest.raises(InputError, match="changed after the draw"):
        hr.open_sample(tmp_path / "edited.gpkg", label)


@pytest.mark.parametrize("ending", ["gpkg", "geojson", "csv"])
def test_it_goes_on_from_its_file(ending, tmp_path) -> None:
    values, confidence, truth = ranked_map(steepness=2.5)
    label = placed(values)
    sample = hr.draw_sample(label, 200, design="sequential", confidence=confidence)
    for _ in range(3):
        sample.with_reference(truth).write(tmp_path / f"points.{ending}", overwrite=True)
        back = hr.open_sample(tmp_path / f"points.{ending}", label)
        np.testing.assert_array_equal(back.reference, truth[back.row, back.column])
        sample = hr.more_points(label, confidence, back)
    made = hr.certify(label, confidence, tmp_path / f"points.{ending}")
    assert repr(made) == repr(hr.certify(label, confidence, back))


def test_deleted_rows_are_asked_for_again() -> None:
    """Whoever deletes the wrong ones gets them back."""
    label, confidence, truth = ranked_map(steepness=2)
    sample = labelled_to_the_end(label, confidence, truth, 200)
    right = sample.label == sample.reference
    without = sample.select(right)
    made, cut = (hr.certify(label, confidence, s) for s in (sample, without))
    assert cut.coverage <= made.coverage
    more = hr.more_points(label, confidence, without, 50)
    assert np.isin(flat(sample)[~right], flat(more)).any()


def test_a_point_that_nobody_can_tell_counts_as_wrong_and_says_what_it_costs() -> None:
    label, confidence, truth = ranked_map(steepness=2.5)
    sample = labelled_to_the_end(label, confidence, truth, 300, max_error=0.1)
    made = hr.certify(label, confidence, sample)
    untold = sample.reference.copy()
    untold[::15] = -1
    worse = hr.certify(label, confidence, replace(sample, reference=untold))
    assert worse.n_cannot_tell == np.count_nonzero(untold == -1)
    assert worse.coverage < made.coverage <= worse.coverage_if_right
    assert f"{worse.n_cannot_tell} points that nobody could label" in worse.statement


def three_classes(seed: int = 0):
    """Return a map of a good, a fair and a hopeless class."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(size=(90, 90))
    label = np.repeat([1, 2, 3], 30)[:, None] * np.ones((1, 90), dtype=int)
    error = np.array([0, 0.02, 0.25, 0.6])[label] * (1 - confidence)
    error[label == 3] = 0.5
    return label, confidence, np.where(rng.uniform(size=error.shape) < error, 9, label)


@pytest.mark.parametrize("which", ["together", "each"])
def test_one_sequence_per_class(which) -> None:
    values, confidence, truth = three_classes()
    label = placed(values)
    plan = {"max_error": 0.1, "per_class": which}
    sample = labelled_to_the_end(label, confidence, truth, 500, **plan)
    made = hr.certify(label, confidence, sample)
    corn, soil, water = made.by_class
    assert corn.coverage > soil.coverage > 0 == water.coverage
    assert ("all together" in made.statement) == (which == "together")
    assert "Cannot be promised: water" in made.statement
    assert [row[0] for row in made.rows()] == ["corn", "bare soil", "water"]
    assert made.rows()[2][1] == "cannot be promised"
    assert sum(one.n_points for one in made.by_class) == made.n_points <= 500
    kept = made.apply(label, confidence)
    expected = np.zeros_like(values)
    for one in (corn, soil):
        expected[(values == one.class_value) & (confidence >= one.threshold)] = one.class_value
    np.testing.assert_array_equal(kept.label_with_rejection, expected)
    assert kept.label_with_rejection.attrs["zero_meaning"] == "rejected"
    assert made.coverage == pytest.approx((expected > 0).mean())
    assert repr(hr.Certificate.from_json(made.to_json())) == repr(made)
    with pytest.raises(InputError, match="each class"):
        _ = made.applicable_threshold


def test_promises_of_all_classes_hold_together_over_redraws() -> None:
    label, confidence, truth = three_classes(3)
    broken, n_draws = 0, 12
    for seed in range(n_draws):
        sample = labelled_to_the_end(
            label, confidence, truth, 400, max_error=0.1, per_class="together", seed=seed, batch=400
        )
        kept = hr.certify(label, confidence, sample).apply(label, confidence).label_with_rejection
        wrong = [
            (truth != label)[kept.values == v].mean()
            for v in np.unique(kept.values[kept.values > 0])
        ]
        broken += max(wrong, default=0) > 0.1
    assert broken <= n_draws * (0.1 + 3 * math.sqrt(0.1 * 0.9 / n_draws))


def test_the_start_follows_the_prediction_and_only_power_depends_on_it() -> None:
    """Where the most confident pixels are not the best, a low start fails."""
    label, confidence, truth = scene("hump")
    u = 1 - confidence
    error = np.where(u < 0.15, 0.12, np.where(u < 0.7, 0.01, 0.4))
    plans = [{}, {"predicted": error}]
    coverage = [
        np.mean(
            [
                hr.certify(
                    label,
                    confidence,
                    labelled_to_the_end(label, confidence, truth, 400, seed=s, **plan),
                ).coverage
                for s in range(4)
            ]
        )
        for plan in plans
    ]
    assert coverage[0] < 0.1 < coverage[1]
    with pytest.raises(InputError, match="predicted"):
        hr.draw_sample(label, 400, design="sequential", confidence=confidence, predicted=2 * u)
    with pytest.raises(InputError, match="30 rows"):
        hr.draw_sample(label, 400, design="sequential", confidence=confidence, predicted=error[:30])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"confidence": None}, "confidence"),
        ({"n": 40}, "at least 49"),
        ({"max_error": 5}, "max_error"),
        ({"per_class": "both"}, "together, each"),
    ],
)
def test_plans_that_cannot_be(options, word) -> None:
    label, confidence, _ = ranked_map()
    given = {"n": 100, "confidence": confidence} | options
    with pytest.raises(InputError, match=word):
        hr.draw_sample(label, design="sequential", **given)


def test_rejected_pixels_and_those_without_data_are_never_looked_at() -> None:
    label, confidence, truth = ranked_map(steepness=3)
    label[:10] = np.iinfo(label.dtype).max
    label[10:20] = 0
    sample = labelled_to_the_end(label, confidence, truth, 200, max_error=0.2)
    assert (sample.row >= 20).all()
    made = hr.certify(label, confidence, sample)
    assert made.n_pixels == 7000
    assert 0 < made.coverage <= 6 / 7


# Samples that were drawn at once.


def test_a_random_sample_begins_where_the_prediction_says() -> None:
    label, confidence, truth = scene("hump")
    u = 1 - confidence
    error = np.where(u < 0.15, 0.12, np.where(u < 0.7, 0.01, 0.4))
    sample = hr.draw_sample(label, 900).with_reference(truth)
    low = hr.certify(label, confidence, sample)
    high = hr.certify(label, confidence, sample, predicted=error)
    assert low.coverage == 0
    assert high.tests[0].coverage > 0.2
    assert high.coverage > 0.2


# Plans.


def test_the_planner_expects_about_what_comes_of_it() -> None:
    label, confidence, truth = ranked_map(80, 80, seed=7, steepness=1.5)
    error = 0.6 * (1 - confidence) ** 1.5
    plan = hr.expected_coverage(label, confidence, error, n=(60, 300), max_error=(0.01, 0.1))
    assert plan.sel(max_error=0.01, n=60) == 0  # so few prove nothing
    real = [
        hr.certify(
            label,
            confidence,
            labelled_to_the_end(
                label, confidence, truth, 300, max_error=0.1, seed=s, predicted=error
            ),
        ).coverage
        for s in range(8)
    ]
    assert plan.sel(max_error=0.1, n=300).item() == pytest.approx(np.mean(real), abs=0.08)
    with pytest.raises(InputError, match="prediction"):
        hr.expected_coverage(label, confidence)


def test_errors_are_predicted_from_held_out_pixels() -> None:
    _, confidence, _ = ranked_map()
    rng = np.random.default_rng(0)
    held_out = rng.uniform(size=3000)
    wrong = rng.uniform(size=3000) < 0.5 * (1 - held_out)
    predicted = hr.predicted_error(confidence, held_out, wrong)
    assert np.abs(predicted.values - 0.5 * (1 - confidence)).mean() < 0.03
    with pytest.raises(InputError, match="held-out"):
        hr.predicted_error(confidence, held_out, wrong[1:])


@pytest.mark.parametrize("per_class", [None, "together"])
def test_designs_on_plain_arrays_are_those_on_samples(per_class) -> None:
    """What the planner and the benchmark simulate is what people do, label by label."""
    label, confidence, truth = ranked_map(40, 50, steepness=2)
    plan = {"max_error": 0.1, "per_class": per_class, "seed": 3}
    sample = labelled_to_the_end(label, confidence, truth, 250, **plan)
    frame = Frame.of(label, confidence)
    designs = sequential_designs(sample.design, frame, frame.parts(per_class or ""))
    known = np.where(label == truth, RIGHT, WRONG).astype(np.int8)
    truths = [known.flat[one.pixels] for one in designs]
    outcomes = simulated_outcomes(designs, truths, n=250)
    places = [one.pixels[known != OPEN] for one, known in zip(designs, outcomes, strict=True)]
    np.testing.assert_array_equal(np.unique(np.concatenate(places)), np.sort(flat(sample)))
