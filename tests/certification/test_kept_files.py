"""Certificates and samples of version 0.3, as people keep them: they open, and apply to their map.

`data` holds them as that version wrote them; the maps are made again by arithmetic.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import InputError
from tests.certification.scenes import field_scene, grouped_scene, labelled_to_the_end, plain_scene

DATA = Path(__file__).with_name("data")


def digest(values: np.ndarray, kind: str = "<u2") -> str:
    return hashlib.sha256(np.ascontiguousarray(values, dtype=kind).tobytes()).hexdigest()[:16]


def places(sample: hr.Sample) -> str:
    return digest(sample.row * 60 + sample.column, "<i8")


SCENES = {"plain": plain_scene, "field": field_scene, "grouped": grouped_scene}

CERTIFICATES = [  # threshold, coverage, sampled and wrong pixels of those kept, the map
    ("random", "plain", 0.40020833333333333, 0.6, 94, 5, "803910f28f2c09eb"),
    ("cannot_tell", "plain", 0.36020833333333335, 0.64, 99, 14, "ed9a5b7ecac3089c"),
    ("nothing", "plain", None, 0.0, 0, 0, ""),
    ("climb", "field", 0.675000011920929, 0.3066734589913398, 89, 4, "cbd71c3b484ac521"),
    ("climb_open", "field", 0.8999999761581421, 0.10188487009679063, 31, 0, "786db3e8b1f16881"),
    ("per_class", "grouped", None, 0.6008333333333333, 168, 11, "22e6438f4e365ef5"),
    ("groups", "grouped", 0.652080005316321, 0.5, 123, 6, "07579e852535bc1a"),
    ("stratified", "plain", 0.16020833333333334, 0.84, 106, 18, "b8da079ac8432793"),
    ("hidden", "field", 0.23749999701976776, 0.7106481481481481, 103, 9, "752cade89ca63b08"),
    ("stack", "plain", 1.0, 0.6, 94, 5, ""),
    ("random_early", "plain", 0.40020833333333333, 0.6, 94, 5, "803910f28f2c09eb"),
    ("climb_early", "field", 0.675000011920929, 0.3066734589913398, 89, 4, "cbd71c3b484ac521"),
]


@pytest.mark.parametrize("pinned", CERTIFICATES, ids=lambda pinned: pinned[0])
def test_certificates_open_and_apply(pinned, tmp_path) -> None:
    name, of_scene, *figures, applied = pinned
    read = hr.Certificate.read(DATA / f"{name}.json")
    assert [read.threshold, read.coverage, read.n_kept, read.n_errors] == figures
    if applied:
        label, confidence = SCENES[of_scene]()[:2]
        assert digest(read.apply(label, confidence).label_with_rejection.values) == applied
    read.write(tmp_path / "again.json")
    assert repr(hr.Certificate.read(tmp_path / "again.json")) == repr(read)


@pytest.mark.parametrize("name", ["random", "climb", "per_class", "stratified", "hidden"])
def test_edited_ones_are_refused(name) -> None:
    stored = json.loads((DATA / f"{name}.json").read_text())
    for edit in ({"map_id": "0" * 16}, {"n_points": 149}, {"confidence_level": 0.95}):
        with pytest.raises(InputError, match="contradicts"):
            hr.Certificate.from_json(json.dumps(stored | edit))
    for promise in (stored, *stored["by_class"]):
        for test in promise["tests"]:
            test["boundary"] += 1
    del stored["digest"], stored["format"]
    version = stored.pop("hsreject")
    text = json.dumps(stored, sort_keys=True, separators=(",", ":"))
    new = {"digest": hashlib.sha256(text.encode()).hexdigest()[:16], "hsreject": version}
    with pytest.raises(InputError, match="contradicts"):  # by its tests, with a new digest
        hr.Certificate.from_json(json.dumps(stored | new | {"format": "hsreject certificate"}))


def test_those_that_no_design_has_now_cannot_be_made_again() -> None:
    label, confidence, _ = plain_scene()
    with pytest.raises(InputError, match="assess"):
        hr.certify(label, confidence, hr.open_sample(DATA / "stratified.csv", label))
    with pytest.raises(TypeError, match="looks"):
        hr.draw_sample(label, 100, looks=(50, 100))


def test_samples_open_and_certify() -> None:
    label, confidence, truth = plain_scene()
    field, ties, field_truth, excluded = field_scene()
    grouped, levels, _ = grouped_scene()
    random = hr.open_sample(DATA / "random.csv", label)
    assert places(random) == "c5e7037b7b64f47a"
    assert hr.certify(label, confidence, random, max_error=0.1).coverage == 0.6
    one_class = hr.open_sample(DATA / "per_class.csv", grouped)
    assert places(one_class) == "c29e8520ecbc474f"
    assert hr.certify(grouped, levels, one_class).coverage == 0.6008333333333333
    started = hr.open_sample(DATA / "climb.geojson", field)
    made = hr.certify(field, ties, started, exclude=excluded)
    assert (made.coverage, made.finished) == (0.10188487009679063, False)
    more = hr.more_points(field, ties, started.with_reference(field_truth), 10, exclude=excluded)
    assert places(more) == "ca199ab50083fbd1"
    stratified = hr.open_sample(DATA / "stratified.csv", label)
    assert places(stratified) == "c39516e192271026"
    assert hr.assess(label, stratified).kept_accuracy.value == pytest.approx(0.7749791666666666)
    looks = hr.open_sample(DATA / "looks.csv", label)
    assert hr.certify(label, confidence, looks, max_error=0.1).coverage == 0.58
    np.testing.assert_array_equal(looks.reference, truth[looks.row, looks.column])


def test_the_same_pixels_are_drawn_and_the_same_maps_delivered() -> None:
    """Whatever moves inside, two small scenes end in the very same maps."""
    label, confidence, truth = plain_scene()
    sample = hr.draw_sample(label, 150, seed=1).with_reference(truth)
    assert places(sample) == "c5e7037b7b64f47a"
    made = hr.certify(label, confidence, sample, max_error=0.1)
    assert digest(made.apply(label, confidence).label_with_rejection) == "803910f28f2c09eb"
    label, confidence, truth, excluded = field_scene()
    maps = {"exclude": excluded, "max_error": 0.1, "seed": 3}
    sample = labelled_to_the_end(label, confidence, truth, 120, batch=40, **maps)
    assert places(sample) == "1c784f3413947b43"
    made = hr.certify(label, confidence, sample, exclude=excluded)
    assert digest(made.apply(label, confidence).label_with_rejection) == "cbd71c3b484ac521"
    sample = hr.draw_sample(label, 150, exclude=excluded, seed=6)
    assert places(sample) == "a6f56cf895d1d183"
