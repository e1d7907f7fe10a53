"""Certificates: exact against enumeration, valid over redraws, refused where they cannot be."""

import hashlib
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.certification.exact_tests import fewest_points
from hsreject.errors import FileError, HsrejectWarning, InputError
from tests.certification.scenes import kept_error, labelled_to_the_end, placed, ranked_map


def tail(k: int, n_pixels: int, n_wrong: int, n: int) -> float:
    """Return the chance of at most k wrong pixels in a sample of n, by counting samples."""
    good = n_pixels - n_wrong
    ways = sum(math.comb(n_wrong, i) * math.comb(good, n - i) for i in range(min(k, n) + 1))
    return ways / math.comb(n_pixels, n)


def sampled(shape: tuple[int, int], pixels, truth: np.ndarray) -> np.ndarray:
    reference = np.zeros(shape, dtype=int)
    reference.flat[list(pixels)] = truth.flat[list(pixels)]
    return reference


def test_boundaries_and_bounds_are_those_of_counting_all_samples() -> None:
    label, confidence, truth = ranked_map(12, 15)
    sample = hr.draw_sample(label, 60).with_reference(truth)
    made = hr.certify(label, confidence, sample, max_error=0.3, confidence_level=0.8)
    assert len(made.tests) > 5
    for test in made.tests:
        region = confidence >= test.threshold
        kept = region[sample.row, sample.column]
        wrong = (label != truth)[sample.row, sample.column] & kept
        size, n, k = int(region.sum()), int(kept.sum()), int(wrong.sum())
        assert (test.n_kept, test.n_errors) == (n, k)
        assert test.coverage == pytest.approx(size / label.size)
        too_many = math.floor(0.3 * size) + 1
        passing = [b for b in range(n + 1) if tail(b, size, too_many, n) <= 0.2]
        assert test.boundary == max(passing, default=-1)
        assert test.passed == (tail(k, size, too_many, n) <= 0.2)
        possible = [m for m in range(k, size - n + k + 1) if tail(k, size, m, n) > 0.2 + 1e-12]
        assert test.upper_bound(0.2) == pytest.approx(max(possible) / size)


@pytest.mark.parametrize("wrong", [(0, 3), (2, 3, 6, 7), (0, 1, 2, 3)])
def test_the_promise_holds_over_all_samples_that_there_are(wrong) -> None:
    """Eight pixels, four of them sampled: of the 70 samples at most 40 % may break the promise."""
    confidence = np.linspace(1, 0.1, 8).reshape(2, 4)
    truth = np.ones((2, 4), dtype=int)
    label = truth.copy()
    label.flat[list(wrong)] = 2
    broken = 0
    for pixels in itertools.combinations(range(8), 4):
        reference = sampled((2, 4), pixels, truth)
        made = hr.certify(label, confidence, reference, max_error=0.3, confidence_level=0.6)
        broken += kept_error(made, label, confidence, truth) > 0.3
    assert broken / math.comb(8, 4) <= 0.4


@pytest.mark.parametrize(("n", "max_error"), [(300, 0.05), (500, 0.2)])
def test_the_promise_holds_over_redraws(n, max_error) -> None:
    label, confidence, truth = ranked_map(steepness=2.5)
    errors, coverage = [], []
    for seed in range(60):
        sample = hr.draw_sample(label, n, seed=seed).with_reference(truth)
        made = hr.certify(label, confidence, sample, max_error=max_error)
        errors.append(kept_error(made, label, confidence, truth))
        coverage.append(made.coverage)
    broken = np.mean(np.array(errors) > max_error)
    assert broken <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 60)
    assert np.mean(coverage) > 0.1  # and it is not empty


def test_the_promise_holds_over_redraws_of_half_of_the_pixels() -> None:
    label, confidence, truth = ranked_map(40, 50, steepness=2.0)
    broken = 0
    for seed in range(100):
        sample = hr.draw_sample(label, 1000, seed=seed).with_reference(truth)
        made = hr.certify(label, confidence, sample, max_error=0.1)
        assert made.threshold is not None
        broken += (label != truth)[confidence >= made.threshold].mean() > 0.1
    assert broken <= 100 * (0.1 + 3 * math.sqrt(0.1 * 0.9 / 100))


def test_the_sequence_starts_where_enough_points_are_expected_and_stops_at_the_first_failure() -> (
    None
):
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    made = hr.certify(label, confidence, sample, max_error=0.1)
    enough = 1.5 * math.log(0.1) / math.log(0.9)
    assert 400 * (made.tests[0].coverage - 0.02) < enough <= 400 * made.tests[0].coverage
    *passed, last = made.tests
    assert all(test.passed for test in passed)
    assert not last.passed
    assert (made.threshold, made.coverage) == (passed[-1].threshold, passed[-1].coverage)
    assert made.upper_bound <= 0.1
    assert made.upper_bound == passed[-1].upper_bound(0.1)
    for word in ("90 %", "10 %", "8,000 pixels", "400 sampled", "simple random", "seed 0"):
        assert word in made.statement


def test_a_perfect_map_is_certified_as_a_whole() -> None:
    _, confidence, truth = ranked_map()
    made = hr.certify(truth, confidence, hr.draw_sample(truth, 70).with_reference(truth))
    assert made.coverage == 1
    assert made.threshold == confidence.min()


@pytest.mark.parametrize(
    ("n", "wrong", "words"),
    [(40, 0.0, "fewer than 45"), (300, 0.03, "at 7 % with 300 labels"),
     (300, 0.3, "% with 300 labels"), (300, 0.5, "too many for a promise")],
)  # fmt: skip
def test_nothing_can_be_certified_is_an_answer(n, wrong, words) -> None:
    _, confidence, truth = ranked_map()
    label = np.where(np.random.default_rng(1).uniform(size=truth.shape) < wrong, 9, truth)
    sample = hr.draw_sample(label, n, seed=1).with_reference(truth)
    made = hr.certify(label, confidence, sample, max_error=0.05 if wrong != 0.03 else 0.035)
    assert made.threshold is None
    assert made.coverage == made.n_kept == made.n_errors == 0
    assert math.isnan(made.upper_bound)
    assert words in made.statement
    with pytest.raises(InputError, match="Nothing can be certified"):
        made.apply(label, confidence)


@pytest.mark.parametrize("max_error", [0.02, 0.05, 0.3])
def test_the_fewest_points_that_prove_something_are_counted_exactly(max_error) -> None:
    """One right point fewer proves nothing, and so many do."""
    truth = np.ones((20, 30), dtype=int)
    confidence = np.arange(600.0).reshape(20, 30) + 1
    least = fewest_points(600, max_error, 0.1)
    for n, coverage in ((least - 1, 0), (least, 1)):
        sample = hr.draw_sample(truth, n).with_reference(truth)
        made = hr.certify(truth, confidence, sample, max_error=max_error)
        assert made.coverage == coverage
        assert (f"fewer than {least} do not prove" in made.statement) == (coverage == 0)


def test_too_few_points_are_not_called_too_many_errors() -> None:
    _, confidence, truth = ranked_map()
    unlucky = np.where(confidence < np.quantile(confidence, 0.05), truth, 0)
    statement = hr.certify(truth, confidence, unlucky).statement
    assert "0 of 0 are wrong, but so few points are not enough" in statement


def test_a_number_of_labels_is_named_where_so_many_certify_something() -> None:
    """And not on a map whose errors do not depend on the confidence."""
    label, confidence, truth = ranked_map(120, 120)
    n_named = 0
    for seed in range(6):
        sample = hr.draw_sample(label, 150, seed=seed).with_reference(truth)
        made = hr.certify(label, confidence, sample)
        if made.n_needed is not None:
            n_named += 1
            assert f"about n = {made.n_needed}" in made.statement
            again = labelled_to_the_end(label, confidence, truth, made.n_needed, seed=seed)
            assert hr.certify(label, confidence, again).coverage > 0
    assert n_named
    flat = np.where(np.random.default_rng(2).uniform(size=truth.shape) < 0.045, 9, truth)
    sample = hr.draw_sample(flat, 150, seed=0).with_reference(truth)
    made = hr.certify(flat, confidence, sample)
    assert made.threshold is made.n_needed is None


def test_equal_confidences_are_kept_together() -> None:
    label, confidence, truth = ranked_map(steepness=3)
    coarse = np.ceil(confidence * 4) / 4
    sample = hr.draw_sample(label, 500).with_reference(truth)
    made = hr.certify(label, coarse, sample, max_error=0.2)
    assert [test.threshold for test in made.tests] == [1.0, 0.75, 0.5, 0.25][: len(made.tests)]
    assert made.coverage == pytest.approx((coarse >= made.threshold).mean())


def test_the_order_of_confidences_is_all_that_counts() -> None:
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    first = hr.certify(label, confidence, sample, max_error=0.1)
    second = hr.certify(label, np.floor(1e6 * confidence).astype(int), sample, max_error=0.1)
    assert first.coverage == second.coverage
    assert first.n_errors == second.n_errors


def test_arrays_files_and_samples_say_the_same(tmp_path) -> None:
    values, confidence, truth = ranked_map()
    label = placed(values)
    sample = hr.draw_sample(label, 400).with_reference(truth)
    sample.write(tmp_path / "sample.gpkg")
    array = np.zeros_like(truth)
    array[sample.row, sample.column] = sample.reference
    found = [
        hr.certify(label, confidence, given, max_error=0.1)
        for given in (sample, tmp_path / "sample.gpkg", array, placed(array))
    ]
    assert {made.threshold for made in found} == {found[0].threshold}
    assert {made.tests for made in found} == {found[0].tests}
    assert "as stated by the user" in found[2].statement


def test_pixels_without_data_and_rejected_ones_are_never_kept() -> None:
    label, confidence, truth = ranked_map(steepness=3)
    label[:10] = np.iinfo(label.dtype).max
    label[10:20] = 0
    unknown = np.where(label > 3, np.nan, confidence)
    unknown[10:20] = np.nan
    sample = hr.draw_sample(label, 400).with_reference(truth)
    made = hr.certify(label, unknown, sample, max_error=0.3)
    assert made.n_pixels == 7000
    assert made.coverage <= 6 / 7
    kept = made.apply(label, unknown)["label_with_rejection"].values
    assert (kept[10:20] == 0).all()
    assert made.coverage == pytest.approx(((kept > 0) & (kept <= 3)).sum() / 7000)


def test_pixels_that_could_not_be_drawn_must_be_excluded_again() -> None:
    label, confidence, truth = ranked_map(20, 20)
    train = np.zeros_like(label)
    train[::4, ::4] = 1
    sample = hr.draw_sample(label, 150, exclude=train).with_reference(truth)
    options = {"max_error": 0.3, "confidence_level": 0.8}
    assert hr.certify(label, confidence, sample, exclude=train, **options).n_pixels == 375
    with pytest.raises(InputError, match=r"25 pixels could not be drawn.*--exclude"):
        hr.certify(label, confidence, sample, **options)


def test_maps_of_a_joint_rejector_are_a_sequence_too() -> None:
    label, confidence, truth = ranked_map(steepness=3)
    fractions = (0.1, 0.3, 0.5, 0.7, 0.9)
    thresholds = np.quantile(confidence, fractions)
    stack = np.array([np.where(confidence >= t, label, 0) for t in thresholds])
    sample = hr.draw_sample(stack[0], 500).with_reference(truth)
    made = hr.certify(stack, None, sample, max_error=0.15)
    assert made.stacked
    position = int(made.threshold)
    assert made.coverage == pytest.approx((stack[position] > 0).mean())
    assert [test.threshold for test in made.tests] == sorted(
        (test.threshold for test in made.tests), reverse=True
    )
    ranked = hr.certify(
        stack[0],
        np.searchsorted(thresholds, confidence, side="right"),
        replace(sample, design=None),
        max_error=0.15,
        assume_random=True,
    )
    assert ranked.coverage == made.coverage
    assert ranked.n_errors == made.n_errors
    with pytest.raises(InputError, match="sequence"):
        made.apply(label, confidence)
    with pytest.raises(InputError, match="confidence"):
        hr.certify(label, None, sample)


def test_points_without_a_reference_count_as_errors() -> None:
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    gaps = sample.reference.copy()
    gaps[100:110] = 0
    with pytest.warns(HsrejectWarning, match="10 of 400"):
        made = hr.certify(label, confidence, replace(sample, reference=gaps), max_error=0.1)
    wrong = sample.reference.copy()
    wrong[100:110] = 9
    same = hr.certify(label, confidence, replace(sample, reference=wrong), max_error=0.1)
    assert made.tests == same.tests
    assert made.n_points == 400


def test_labelling_may_end_early_in_the_order_of_the_draw() -> None:
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    early = replace(sample, reference=np.where(sample.id <= 250, sample.reference, 0))
    shuffled = early.select(np.random.default_rng(0).permutation(400))
    with pytest.warns(HsrejectWarning, match="first 250"):
        made = hr.certify(label, confidence, shuffled, max_error=0.1)
    smaller = hr.draw_sample(label, 250).with_reference(truth)
    assert made.tests == hr.certify(label, confidence, smaller, max_error=0.1).tests


def test_samples_that_are_not_one_random_draw_are_refused() -> None:
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    unknown = replace(sample, design=None)
    with pytest.raises(InputError, match="assume_random=True"):
        hr.certify(label, confidence, unknown)
    made = hr.certify(label, confidence, unknown, max_error=0.1, assume_random=True)
    assert "as stated by the user" in made.statement
    stratified = hr.draw_sample(label, 400, design="stratified").with_reference(truth)
    for options in ({}, {"assume_random": True}):
        with pytest.raises(InputError, match=r"stratified .*assess.*sequential"):
            hr.certify(label, confidence, stratified, **options)
    with pytest.raises(InputError, match="20 of the 400 points"):
        hr.certify(label, confidence, sample.select(sample.id > 20))
    other = label.copy()
    other[0, 0] = 3 if label[0, 0] == 1 else 1
    with pytest.raises(InputError, match="another map"):
        hr.certify(other, confidence, sample)
    assert hr.certify(other, confidence, sample, max_error=0.1, assume_random=True).tests
    train = np.zeros_like(label)
    train[sample.row[:3], sample.column[:3]] = 1
    with pytest.raises(InputError, match=r"3 of the 400 .* training"):
        hr.certify(label, confidence, sample, exclude=train)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"max_error": 0}, "max_error"),
        ({"max_error": 1.0}, "max_error"),
        ({"max_error": float("nan")}, "max_error"),
        ({"confidence_level": 1}, "confidence_level"),
    ],
)
def test_levels_outside_their_range(options, word) -> None:
    label, confidence, truth = ranked_map()
    with pytest.raises(InputError, match=word):
        hr.certify(label, confidence, truth, **options)


def test_bad_maps_and_samples() -> None:
    label, confidence, truth = ranked_map()
    holes = confidence.copy()
    holes[:2, :5] = np.nan
    with pytest.raises(InputError, match="10 pixels"):
        hr.certify(label, holes, truth)
    with pytest.raises(InputError, match="79 rows"):
        hr.certify(label, confidence[1:], truth)
    with pytest.raises(InputError, match="79 rows"):
        hr.certify(label, confidence, truth[1:])
    with pytest.raises(InputError, match="No sampled pixel"):
        hr.certify(label, confidence, np.zeros_like(truth))
    with pytest.raises(InputError, match="No sampled pixel"):
        hr.certify(label, confidence, hr.draw_sample(label, 10))
    with pytest.raises(InputError, match="keeps no pixel"):
        hr.certify(np.zeros_like(label), confidence, truth)
    moved = placed(label).assign_coords(x=placed(label).x + 30)
    with pytest.raises(InputError, match="grid"):
        hr.certify(moved, confidence, hr.draw_sample(placed(label), 100).with_reference(truth))


def test_a_certificate_is_kept_in_json_and_applies_to_its_own_map_only(tmp_path) -> None:
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    for max_error in (0.1, 0.001):
        made = hr.certify(label, confidence, sample, max_error=max_error)
        made.write(tmp_path / "certificate.json", overwrite=True)
        back = hr.Certificate.read(tmp_path / "certificate.json")
        assert repr(back) == repr(made)
    stored = json.loads((tmp_path / "certificate.json").read_text())
    assert stored["statement"] == made.statement
    made = hr.certify(label, confidence, sample, max_error=0.1)
    lazy = xr.DataArray(label.astype(np.uint8), dims=("y", "x")).chunk(30)
    applied = made.apply(lazy, confidence)
    assert applied.attrs["rejected_fraction"] == pytest.approx(1 - made.coverage)
    for other in ((label[:, ::-1], confidence), (label, confidence[::-1]), (label.T, confidence.T)):
        with pytest.raises(InputError, match="another map"):
            made.apply(*other)


def redigested(stored: dict) -> str:
    """Return a stored certificate with a digest of the facts that it has now."""
    others = {"format", "format_number", "hsreject", "digest", "statement", "applies_to", "drawn"}
    others |= {"threshold", "coverage", "n_kept", "n_errors", "upper_bound", "max_error"}
    facts = {name: stored[name] for name in stored if name not in others}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return json.dumps(stored | {"digest": hashlib.sha256(text.encode()).hexdigest()[:16]})


def test_a_certificate_that_was_edited_is_refused(tmp_path) -> None:
    """Whichever fact or figure is edited, with and without a new digest."""
    label, confidence, truth = ranked_map(steepness=3)
    samples = {0.1: hr.draw_sample(label, 400).with_reference(truth)}
    samples[0.2] = labelled_to_the_end(label, confidence, truth, 200, max_error=0.2)
    for max_error, sample in samples.items():
        made = hr.certify(label, confidence, sample, max_error=max_error)
        assert made.threshold is not None
        stored = json.loads(made.to_json())
        assert hr.Certificate.from_json(redigested(stored)) == made
        follows = {
            "max_error": 0.01, "confidence_level": 0.99, "threshold": 0.5, "coverage": 0.123,
            "n_kept": 1, "n_errors": 99, "upper_bound": 0.001, "n_planned": 9, "n_pixels": 5,
            "n_kept_pixels": 7999, "per_class": "each",
        }  # fmt: skip
        facts = {"map_id": "0" * 16, "shape": [1, 2], "seed": 7, "n_points": 9, "n_cannot_tell": 3}
        for name, value in (follows | facts).items():
            with pytest.raises(InputError, match="contradicts"):
                hr.Certificate.from_json(json.dumps(stored | {name: value}))
            if name in follows:  # a new digest does not help
                with pytest.raises(InputError, match="contradicts"):
                    hr.Certificate.from_json(redigested(stored | {name: value}))
        last = max(at for at, test in enumerate(made.tests) if test.passed)
        edits = {"n_wrong": 0, "n_units": 8000, "coverage": 1.0, "critical_number": 99}
        edits |= {"n_looked": 399, "threshold": 0.0}
        for name, value in edits.items():
            (guarantee,) = json.loads(made.to_json())["guarantees"]
            guarantee["tests"][last][name] = value
            with pytest.raises(InputError, match="contradicts"):
                hr.Certificate.from_json(redigested(stored | {"guarantees": [guarantee]}))
    (tmp_path / "c.json").write_text(json.dumps(stored | {"coverage": 0.123}))
    with pytest.raises(FileError, match=r"c\.json: .*contradicts"):
        hr.Certificate.read(tmp_path / "c.json")


def test_a_test_that_follows_a_failed_one_is_refused() -> None:
    label, confidence, truth = ranked_map(steepness=3)
    sample = hr.draw_sample(label, 400).with_reference(truth)
    made = hr.certify(label, confidence, sample, max_error=0.1)
    stored = json.loads(made.to_json())
    (guarantee,) = stored["guarantees"]
    *_, passed, failed = guarantee["tests"]
    guarantee["tests"] = [failed, passed]
    with pytest.raises(InputError, match="contradicts"):
        hr.Certificate.from_json(redigested(stored))


def test_sentences_are_a_copy_for_readers_and_never_compared() -> None:
    """So that a version may mend a sentence without making older certificates invalid."""
    label, confidence, truth = ranked_map(steepness=3)
    sample = hr.draw_sample(label, 400).with_reference(truth)
    made = hr.certify(label, confidence, sample, max_error=0.2)
    mended = dict.fromkeys(("statement", "applies_to", "drawn"), "As another version put it.")
    read = hr.Certificate.from_json(json.dumps(json.loads(made.to_json()) | mended))
    assert read == made
    assert read.statement == made.statement != mended["statement"]


def test_a_certificate_of_a_newer_version_is_refused() -> None:
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    stored = json.loads(hr.certify(label, confidence, sample, max_error=0.1).to_json())
    newer = {"format_number": 3, "hsreject": "7.1", "guarantees": {"of": "another kind"}}
    with pytest.raises(InputError, match=r"newer version, hsreject 7\.1 \(format 3.*Update"):
        hr.Certificate.from_json(json.dumps(stored | newer))


def test_counts_beyond_the_sample_are_refused_before_room_is_made_for_them() -> None:
    label, confidence, truth = ranked_map(steepness=3)
    at_once = hr.certify(label, confidence, hr.draw_sample(label, 400).with_reference(truth))
    sample = labelled_to_the_end(label, confidence, truth, 200, max_error=0.2)
    design = hr.certify(label, confidence, sample)
    huge = 10**10  # 80 GB of numbers, or hours
    requirement = {"n_labels": huge, "max_error": 0.2, "delta": 0.1}
    hidden = {"n_thinned": 0, "density": 0.0, "n_hidden": huge}
    for made, of_test, of_guarantee, edits in (
        (at_once, {"n_looked": huge}, {}, {}),
        (at_once, {"n_looked": huge}, {"n_points": huge}, {"n_points": huge}),
        (at_once, hidden, {}, {}),
        (design, {}, {"requirement": requirement}, {"n_planned": huge}),
    ):
        stored = json.loads(made.to_json()) | edits
        (guarantee,) = stored["guarantees"]
        guarantee |= of_guarantee
        guarantee["tests"] = [test | of_test for test in guarantee["tests"]]
        with pytest.raises(InputError, match="contradicts"):
            hr.Certificate.from_json(redigested(stored))


def test_the_overall_promise_names_classes_that_have_vanished() -> None:
    confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    label = placed(np.where(confidence < 0.2, 3, np.where(confidence < 0.6, 2, 1)))
    truth = np.where(label.values == 3, 9, label.values)
    truth[(confidence > 0.2) & (confidence < 0.58)] = 7
    sample = hr.draw_sample(label, 400).with_reference(truth)
    made = hr.certify(label, confidence, sample)
    assert made.lost_classes == ("bare soil", "water")
    assert "bare soil, water" in made.statement


@pytest.mark.parametrize(
    "text", ["{}", "[1]", "no json", '{"format": "hsreject certificate"}', "[" * 100_000], ids=len
)
def test_other_files_are_not_certificates(text, tmp_path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(FileError, match="not a certificate"):
        hr.Certificate.read(tmp_path / "c.json")
