"""Map models on disk: the same model again, and nothing else comes out of the file."""

from pathlib import Path

import numpy as np
import pytest
import skops.io
import xarray as xr

import hsreject as hr
from hsreject.confidence import Posterior
from hsreject.context.preconditioned_admm import PreconditionedADMM
from hsreject.errors import ConfigError, FileError, InputError
from hsreject.rejection.rejector import Goal
from tests.mapping.scenes import CONFIG, larger_scene


@pytest.fixture(scope="module")
def model() -> hr.MapModel:
    return hr.train(CONFIG)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"context": None, "rejectors": [{"name": "pixelwise", "confidence": "margin"}]},
        {"context": {"priors": [{"name": "vector_tv", "edges": "image"}, "graph_tv"]}},
        {"features": [{"name": "smooth", "sigma": 0.5}, {"name": "mnf", "n_components": 3}]},
        {
            "context": hr.SegSALSA(hr.VectorTV(0.5, edges=[1, 3]), solver=PreconditionedADMM()),
            "classifier": {"name": "random_forest", "n_trees": 5},
        },
    ],
    ids=["sequential", "pixelwise", "two priors", "spatial features", "objects"],
)
def test_a_model_maps_the_same_after_a_journey_through_a_file(changes, tmp_path: Path) -> None:
    model = hr.train({**CONFIG, **changes})
    again = hr.load_map_model(hr.save_map_model(model, tmp_path / "model.skops"))
    scene = larger_scene(40, 30)
    for options in ({"fraction": 0.2}, {"rejection_cost": 0.3}):
        here = hr.map_scene(scene, model, **options)
        there = hr.map_scene(scene, again, **options)
        assert there.maps.equals(here.maps)
        assert there.summary.rejection == here.summary.rejection
    assert (again.title, again.configuration) == (model.title, model.configuration)
    assert again.reach == model.reach


def test_confidence_objects_and_their_options_survive(model, tmp_path: Path) -> None:
    rejector = hr.SequentialRejector(model.rejector.context, confidence=Posterior())
    other = hr.MapModel(model.classifier, rejector)
    again = hr.load_map_model(hr.save_map_model(other, tmp_path / "model.skops"))
    assert again.rejector.confidence == Posterior()


def test_thresholds_for_cost_and_accuracy_are_those_of_the_test_pixels(model) -> None:
    points = model.operating_points
    fraction, accuracy = points["rejected_fraction"].values, points["nonrejected_accuracy"].values
    kept = np.nan_to_num(accuracy) * (1 - fraction)
    cost = (1 - fraction) - kept + 0.3 * fraction  # of every point, by the definition
    cheapest = points["threshold"].values[cost.argmin()]
    assert model.threshold_for(Goal("rejection_cost", 0.3)) == cheapest
    wanted = (accuracy[0] + np.nanmax(accuracy)) / 2
    first = np.flatnonzero(np.nan_to_num(accuracy) >= wanted)[0]
    assert model.threshold_for(Goal("accuracy", wanted)) == points["threshold"].values[first]
    _, labels = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    _, test = hr.sample_per_class(labels, 15, seed=0)
    cube, _ = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    assert model.n_calibration_pixels == ((test > 0) & cube.notnull().all("band")).sum()


def test_a_tuned_configuration_is_tuned_before_it_is_trained() -> None:
    model = hr.train({**CONFIG, "tuning": {"n_folds": 2, "grid": {"context.weight": [0.0, 1.5]}}})
    assert model.rejector.context.priors[0].weight == 1.5
    assert "weight = 1.5" in model.configuration


def test_a_model_without_test_pixels_maps_but_has_no_thresholds() -> None:
    def all_for_training(labels, *, seed):
        return labels, xr.zeros_like(labels)

    cube, _ = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    model = hr.train({**CONFIG, "sampling": all_for_training})
    assert not model.calibration
    assert hr.map_scene(cube, model, fraction=0.1).summary.n_rejected > 0
    with pytest.raises(InputError, match="trained without test pixels"):
        hr.map_scene(cube, model, rejection_cost=0.3)


def test_the_two_kinds_of_model_file_are_told_apart(model, tmp_path: Path) -> None:
    whole = hr.save_map_model(model, tmp_path / "map.skops")
    classifier = hr.save_model(model.classifier, tmp_path / "classifier.skops")
    with pytest.raises(
        FileError, match=r"another kind of file .* Make one with hsreject.save_model"
    ):
        hr.load_model(whole)
    with pytest.raises(FileError, match=r"not a map model of hsreject. Make one with .hsreject tr"):
        hr.load_map_model(classifier)


class Foreign(hr.Prior):
    def bind(self, grid):
        raise AssertionError("never called")


def test_a_file_that_asks_for_foreign_types_is_refused(model, tmp_path: Path) -> None:
    rejector = hr.SequentialRejector(hr.SegSALSA(Foreign()))
    path = hr.save_map_model(hr.MapModel(model.classifier, rejector), tmp_path / "model.skops")
    with pytest.raises(FileError, match=r"not trusted: tests.mapping.test_model_file.Foreign"):
        hr.load_map_model(path)
    own = hr.load_map_model(path, trusted=["tests.mapping.test_model_file.Foreign"])
    assert isinstance(own.rejector.context.priors[0], Foreign)


@pytest.mark.parametrize(
    "damage",
    [
        {"rejector": None},
        {"calibration": {"threshold": np.zeros(3), "rejected_fraction": np.zeros(2)}},
        {"calibration": [1.0]},
        {"title": 3},
        {"classifier": "lda"},
    ],
)
def test_a_damaged_file_is_named(model, damage, tmp_path: Path) -> None:
    content = {
        "format": "hsreject map model",
        "format_version": 1,
        "classifier": model.classifier,
        "rejector": model.rejector,
        "calibration": dict(model.calibration),
        "title": "",
        "configuration": "",
    }
    path = tmp_path / "model.skops"
    skops.io.dump({**content, **damage}, path)
    with pytest.raises(FileError, match=r"model.skops (is damaged|holds no fitted model)"):
        hr.load_map_model(path)


def test_a_model_is_not_replaced_by_accident(model, tmp_path: Path) -> None:
    path = hr.save_map_model(model, tmp_path / "model.skops")
    with pytest.raises(FileError, match="already there"):
        hr.save_map_model(model, path)
    assert hr.save_map_model(model, path, overwrite=True) == path
    with pytest.raises(InputError, match="Only a MapModel"):
        hr.save_map_model(model.classifier, tmp_path / "other.skops")


def test_the_rejector_of_a_model_can_be_chosen_and_must_have_a_threshold() -> None:
    config = {
        **CONFIG,
        "rejectors": [
            {"name": "pixelwise", "title": "by margin", "confidence": "margin"},
            {"name": "joint"},
        ],
    }
    chosen = hr.train(config, rejector="by margin").rejector
    assert chosen == hr.PixelwiseRejector(confidence="margin")
    with pytest.raises(ConfigError, match="no threshold that could be carried"):
        hr.train(config, rejector="joint")
    with pytest.raises(ConfigError, match="There are: by margin, joint"):
        hr.train(config, rejector="nobody")
