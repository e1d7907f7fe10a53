"""What `run`, `map` and `certify` deliver on two small scenes, pinned array by array.

Labels and masks by hash; what is computed in floating point by three means that rounding hardly
moves: of the values, of their squares, and of the values weighed by their place.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from tests.mapping.scenes import CONFIG, larger_scene

SCENES: dict[str, dict[str, Any]] = {
    "plain": {
        "scene": {"name": "synthetic", "rows": 48, "columns": 48, "n_bands": 12, "noise": 0.5},
        "features": [{"name": "pca", "n_components": 4}],
        "classifier": "lda",
        "context": {"prior": "vector_tv", "weight": 1.0},
        "rejectors": ["pixelwise", "sequential", {"name": "joint", "n_points": 4}],
        "goal": {"max_error": 0.2},
    },
    "groups": {
        "scene": {"name": "synthetic", "rows": 40, "columns": 40, "n_bands": 12, "noise": 0.6},
        "features": [{"name": "pca", "n_components": 4}],
        "classifier": "lda",
        "groups": {"pair": ["cover 1", "cover 2"]},
        "goal": {"accuracy": 0.8},
    },
}


def digests(maps: Mapping[Any, xr.DataArray]) -> dict[str, Any]:
    """Return a hash, or three means, of every array by name."""
    return {str(name): digest(np.asarray(one.values)) for name, one in sorted(maps.items())}


def digest(values: np.ndarray) -> Any:
    if values.dtype.kind in "iub":
        plain = np.ascontiguousarray(values, "<i8")
        return hashlib.sha256(repr(values.shape).encode() + plain.tobytes()).hexdigest()[:12]
    has_data = np.isfinite(values)
    numbers = values[has_data].astype(np.float64)
    place = np.arange(1, values.size + 1).reshape(values.shape)[has_data] / values.size
    means = (numbers, numbers**2, numbers * place)
    return [float(round(one.mean(), 5)) if one.size else 0.0 for one in means]


def same(found: dict[str, Any], pinned: dict[str, Any]) -> None:
    assert found.keys() == pinned.keys()
    for name, value in pinned.items():
        wanted = value if isinstance(value, str) else pytest.approx(value, abs=2e-5)
        assert found[name] == wanted, name


def run_arrays(name: str) -> dict[str, Any]:
    result = hr.run(
        {"seed": 1, "sampling": {"name": "per_class", "n_per_class": 8}, **SCENES[name]}
    )
    arrays = {n: one for n, one in result.to_dataset().items() if one.dtype.kind in "iubf"}
    of_delivered = result["delivered"].to_dataset(inherit=False)
    arrays |= {f"delivered {n}": one for n, one in of_delivered.items()}
    points = result["points"].to_dataset(inherit=False)
    arrays |= {f"points {n}": points[n] for n in ("threshold", "rejected_fraction")}
    return digests(arrays)


def map_arrays(goal: dict[str, Any], **changes: Any) -> dict[str, Any]:
    scene = larger_scene(70, 66, noise=0.2)
    scene[:, 20:30, 10:30] = scene[::-1, 20:30, 10:30].values  # like nothing that is known
    model = hr.train({**CONFIG, **changes})
    return digests(
        hr.map_scene(
            scene,
            model,
            goal,
            reading=hr.Reading(foreign="allow"),
            resources=hr.Resources(block_size=40),
        ).maps.load()
    )


PINNED: dict[str, dict[str, Any]] = {
    "run plain": {
        "calibration": "731d8416d1e6",
        "confidence": [0.95085, 0.91766, 0.4781],
        "delivered confidence_class": "322ebaa8c550",
        "delivered errors_caught": [0.0, 0.0, 0.0],
        "delivered label_with_rejection": "6c7dbff5d661",
        "delivered nonrejected_accuracy": [0.98178, 0.96389, 0.98178],
        "delivered nonrejected_accuracy_lower": [0.96558, 0.93235, 0.96558],
        "delivered nonrejected_accuracy_upper": [0.99043, 0.98095, 0.99043],
        "delivered overall_accuracy": [0.9818, 0.96393, 0.9818],
        "delivered overall_accuracy_lower": [0.96561, 0.9324, 0.96561],
        "delivered overall_accuracy_upper": [0.99044, 0.98098, 0.99044],
        "delivered rejected_fraction": [0.00107, 0.0, 0.00107],
        "delivered rejected_share_of_scene": [0.00267, 1e-05, 0.00267],
        "delivered threshold": [0.36733, 0.13493, 0.36733],
        "false_color": [0.30114, 0.09537, 0.15279],
        "has_threshold": "be898cc86528",
        "hidden_field": [0.2, 0.18687, 0.10188],
        "label": "67151b34c82e",
        "label_with_rejection": "665f7b95b2cb",
        "p_value": [0.52097, 0.33463, 0.2528],
        "points rejected_fraction": [0.41436, 0.24322, 0.24704],
        "points threshold": [0.81883, 0.7129, 0.38969],
        "probability": [0.2, 0.18461, 0.10113],
        "reference": "11cc7e0e26c6",
        "rejected": "bb29c1f761db",
        "test": "6ac1fc423214",
        "train": "fdb1c00fb763",
        "unknown": "b32c202b8b9f",
    },
    "run groups": {
        "calibration": "eece5415815f",
        "confidence": [0.88652, 0.81004, 0.44743],
        "delivered confidence_class": "5a08c3766366",
        "delivered errors_caught": [0.0, 0.0, 0.0],
        "delivered label_with_rejection": "773c3bba8498",
        "delivered nonrejected_accuracy": [0.8465, 0.71657, 0.8465],
        "delivered nonrejected_accuracy_lower": [0.81271, 0.6605, 0.81271],
        "delivered nonrejected_accuracy_upper": [0.87514, 0.76587, 0.87514],
        "delivered overall_accuracy": [0.8465, 0.71657, 0.8465],
        "delivered overall_accuracy_lower": [0.81271, 0.6605, 0.81271],
        "delivered overall_accuracy_upper": [0.87514, 0.76587, 0.87514],
        "delivered rejected_fraction": [0.0, 0.0, 0.0],
        "delivered rejected_share_of_scene": [0.00064, 0.0, 0.00064],
        "delivered threshold": [0.0, 0.0, 0.0],
        "false_color": [0.30572, 0.09808, 0.14915],
        "has_threshold": "448bc2fd328f",
        "label": "b872d39f06fb",
        "label_with_rejection": "8003c927a50d",
        "p_value": [0.56909, 0.39983, 0.28758],
        "points rejected_fraction": [0.4918, 0.3246, 0.27411],
        "points threshold": [0.80921, 0.69655, 0.39233],
        "probability": [0.2, 0.16515, 0.10591],
        "reference": "306274b8a5df",
        "rejected": "3dec1f53139a",
        "test": "eb7838ba5415",
        "train": "adc974a80e9a",
        "unknown": "3dec1f53139a",
    },
    "map plain": {
        "confidence": [0.6089, 0.39243, 0.30826],
        "flag": "1f8a36fd0262",
        "label": "6b9fecef79da",
        "label_with_rejection": "ddcbe436cf0f",
        "rejected": "7f04e07e64db",
        "second": "72394900b5cd",
        "unknown": "2674e4d66fef",
    },
    "map groups": {
        "confidence": [0.63663, 0.42832, 0.32185],
        "flag": "3b31c51f11bc",
        "label": "c5da35b68f3d",
        "label_with_rejection": "0aefa9576574",
        "level_confidence": [0.62241, 0.4101, 0.31659],
        "rejected": "c368e79e356b",
        "second": "542ad7bcbade",
        "unknown": "2674e4d66fef",
    },
    "certified": {
        "applied confidence": [0.95688, 0.92858, 0.48528],
        "applied flag": "5c31dcd265e4",
        "applied label": "f0b725e9cb10",
        "applied label_with_rejection": "518cb6eebcfa",
        "applied rejected": "7abd22929685",
        "mapped confidence": [0.95688, 0.92858, 0.48528],
        "mapped flag": "5c31dcd265e4",
        "mapped label": "f0b725e9cb10",
        "mapped label_with_rejection": "518cb6eebcfa",
        "mapped rejected": "7abd22929685",
        "mapped second": "c2217258147a",
    },
}


@pytest.mark.parametrize("name", SCENES)
def test_a_run_delivers_the_same_arrays(name) -> None:
    same(run_arrays(name), PINNED[f"run {name}"])


def test_a_map_has_the_same_arrays() -> None:
    same(map_arrays({"fraction": 0.2}), PINNED["map plain"])


def test_a_map_with_groups_has_the_same_arrays() -> None:
    groups = {"pair": ["cover 1", "cover 2"]}
    same(map_arrays({"fraction": 0.2}, groups=groups), PINNED["map groups"])


def test_a_certified_map_has_the_same_arrays() -> None:
    same(certified_arrays(), PINNED["certified"])


def certified_arrays() -> dict[str, Any]:
    """Return the arrays of a map that was certified and mapped again with the certificate."""
    scene, truth = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    model = hr.train({**CONFIG, "rejectors": [{"name": "sequential", "novelty": False}]})
    maps = hr.map_scene(scene, model, hr.Goal(fraction=0.0)).maps.load()
    exclude = truth == 0
    sample = hr.draw_sample(maps["label"], 200, exclude=exclude, seed=3).with_reference(truth)
    how = {"exclude": exclude, "max_error": 0.3}
    made = hr.certify(maps["label"], maps["confidence"], sample, **how)
    mapped = hr.map_scene(scene, model, made).maps.load()
    applied = made.apply(maps["label"], maps["confidence"])
    arrays = {f"mapped {name}": one for name, one in mapped.items()}
    return digests(arrays | {f"applied {name}": one for name, one in applied.items()})
