"""What configurations make, and what they are told when they name something that is not there."""

from pathlib import Path

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import ConfigError
from hsreject.pipeline.config import read_document
from hsreject.pipeline.plan import make_plan

SMALL = {
    "scene": {"name": "synthetic", "rows": 40, "columns": 36, "n_classes": 3, "n_bands": 12},
    "features": [{"name": "pca", "n_components": 4}],
    "context": {"prior": "vector_tv", "weight": 1.0},
    "rejectors": ["pixelwise", "sequential", {"name": "joint", "n_points": 4}],
    "baselines": ["coordinates"],
}


def test_the_configurations_that_come_with_hsreject_name_only_what_exists() -> None:
    paths = list((Path(__file__).parents[2] / "configs").glob("*.toml"))
    assert len(paths) >= 5
    for path in paths:
        assert make_plan(read_document(path)).rejectors


def test_a_change_remakes_the_context_and_what_holds_it_and_nothing_else() -> None:
    plan = make_plan(SMALL)
    changed = plan.with_weight(3.0)
    for part in (changed, changed.rejectors["sequential"], changed.rejectors["joint"]):
        assert part.context.priors[0].weight == 3.0
    assert changed.document["context"]["weight"] == 3.0
    assert plan.context.priors[0].weight == 1.0
    assert changed.scene is plan.scene
    assert changed.baselines is plan.baselines


def test_one_rule_says_which_map_is_delivered() -> None:
    for names, delivered in (
        (["pixelwise", "sequential", "joint"], "sequential"),
        (["sequential", "pixelwise"], "sequential"),
        (["joint", "pixelwise"], "pixelwise"),
        (["joint"], "joint"),
    ):
        assert make_plan(SMALL | {"rejectors": names}).delivered == delivered


def test_goals_by_their_old_names_and_as_objects() -> None:
    for change, kind in (
        ({}, "fraction"),
        ({"fraction": 0.2}, "fraction"),
        ({"goal": hr.Goal(accuracy=0.9)}, "accuracy"),
        ({"goal": {"max_error": 0.1}}, "max_error"),
    ):
        assert make_plan(SMALL | change).goal.kind == kind


def test_every_run_has_the_coordinates_as_a_judge() -> None:
    names = [list(make_plan(SMALL | {"baselines": given}).baselines) for given in ([], ["svm"])]
    assert names == [["coordinates"], ["svm", "coordinates"]]


def test_an_automatic_context_leaves_its_weight_to_the_training_pixels() -> None:
    for context in ("auto", {"prior": "auto"}):
        plan = make_plan(SMALL | {"context": context})
        assert plan.weights == (0.0, 0.5, 1.0, 2.0)
        assert plan.context.priors[0].edges == "image"
    for prior in ("auto", "vector_tv"):
        given = make_plan(SMALL | {"context": {"prior": prior, "weight": [3.0, 1]}})
        assert given.weights == (3.0, 1)
    fixed = make_plan(SMALL | {"context": {"prior": "auto", "weight": 4.0}})
    assert fixed.weights == ()
    assert fixed.context.priors[0].weight == 4.0
    named = make_plan(SMALL | {"context": {"prior": {"name": "vector_tv", "weight": 4.0}}})
    assert named.context.priors[0].weight == 4.0


def test_who_names_neither_features_nor_classifier_gets_auto() -> None:
    alone = {key: value for key, value in SMALL.items() if key != "features"}
    assert isinstance(make_plan(alone).model, hr.AutoClassifier)
    assert isinstance(make_plan(SMALL).model, hr.SceneClassifier)
    with pytest.raises(ConfigError, match=r"\[features\].*AutoClassifier"):
        make_plan(SMALL | {"classifier": "auto"})


def test_what_maps_scenes_by_itself_is_a_scene_model() -> None:
    class Mapper(hr.SceneModel):
        def _learn(self, cube, labels, progress):
            raise NotImplementedError

        def _probability(self, cube, progress):
            raise NotImplementedError

    mapper = Mapper()
    alone = {key: value for key, value in SMALL.items() if key != "features"}
    assert make_plan(alone | {"classifier": mapper}).model is mapper
    with pytest.raises(ConfigError, match=r"\[features\].*Mapper"):
        make_plan(SMALL | {"classifier": mapper})


def test_a_scene_and_a_split_are_read_from_files(tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    cube.rio.to_raster(tmp_path / "scene.tif")
    train, test = hr.sample_per_class(labels, 5, seed=0)
    paths = {}
    for name, values in {"labels": labels, "train": train, "test": test}.items():
        paths[name] = str(tmp_path / f"{name}.tif")
        hr.write_map(values, paths[name])
    scene = {"name": "files", "path": str(tmp_path / "scene.tif"), "labels": paths.pop("labels")}
    plan = make_plan(SMALL | {"scene": scene, "sampling": {"name": "given", **paths}})
    read = (*plan.load(), *plan.sampling(labels, seed=0))
    for found, wanted in zip(read, (cube, labels, train, test), strict=True):
        np.testing.assert_array_equal(found.values, wanted.values)


@pytest.mark.parametrize(
    "table",
    [
        "per_class",
        {"name": "fraction", "fraction": 0.2},
        {"name": "blocks", "block_size": 8, "buffer": 1},
    ],
)
def test_samplings_by_name_divide_the_labels_by_the_seed(table) -> None:
    _, labels = hr.synthetic_scene(n_classes=3)
    sampling = make_plan(SMALL | {"sampling": table}).sampling
    train, test = sampling(labels, seed=1)
    assert set(np.unique(train)) == set(np.unique(test)) == {0, 1, 2, 3}
    assert not ((train > 0) & (test > 0)).any()
    assert train.equals(sampling(labels, seed=1)[0])
    assert not train.equals(sampling(labels, seed=2)[0])


MISTAKES = [
    ({"contxt": {}}, "Did you mean 'context'"),
    ({"n_seeds": 3}, "Unknown key 'n_seeds'"),
    ({"scene": {"name": "mars"}}, r"\[scene\] Unknown scene 'mars'"),
    ({"scene": 3}, r"\[scene\] must be a name"),
    ({"sampling": {"name": "per_class", "n": 3}}, r"\[sampling\].*'n'.*n_per_class"),
    ({"sampling": {"name": "per_class", "n_per_class": "ten"}}, "a whole number"),
    ({"sampling": {"name": "per_class", "seed": 3}}, "Unknown option 'seed'"),
    ({"context": {"prior": "vector_tv", "wieght": 2}}, "Did you mean 'weight'"),
    ({"context": {"prior": "vectr_tv"}}, "Did you mean 'vector_tv'"),
    ({"context": {"weight": 2}}, r"\[context\] needs either prior"),
    ({"context": "vectr_tv"}, "Did you mean 'vector_tv'"),
    ({"context": {"prior": "auto", "edges": "image"}}, "Unknown key 'edges'"),
    ({"context": {"priors": 3}}, "context.priors must be a list"),
    ({"context": {"prior": "vector_tv", "tol": "x"}}, "must be a number"),
    ({"context": None}, r"'sequential' needs a \[context\]"),
    ({"rejectors": "joint"}, r"\[\[rejectors\]\]"),
    ({"rejectors": ["joint", "joint"]}, "'joint' is there twice"),
    ({"rejectors": [{"name": "pixelwise", "novelty": "yes"}]}, "novelty.*true or false"),
    ({"rejectors": [{"name": "joint", "context": 1}]}, "leave it out here"),
    ({"rejectors": [{"name": "joint", "store": 3}]}, "path of a folder"),
    ({"rejectors": [{"name": "pixelwise", "label": "mine"}]}, "Unknown key 'label'.*title"),
    ({"rejectors": [{"name": "pixelwse"}]}, "Did you mean 'pixelwise'"),
    ({"rejectors": []}, "at least one"),
    ({"rejectors": [{"name": "pixelwise", "title": "a/b"}]}, "'a/b'"),
    ({"rejectors": [{"name": "pixelwise", "title": "coordinates"}]}, "another row"),
    ({"features": "mnf"}, r"\[\[features\]\]"),
    ({"baselines": ["guess"]}, "Unknown baseline 'guess'"),
    ({"baselines": [3]}, "Unknown baseline '3'"),
    ({"baselines": "coordinates"}, "must be a list"),
    ({"seed": True}, "seed must be a whole number"),
    ({"context": {"prior": "auto", "weight": [1, "much"]}}, r"\[context\] weight must be a number"),
    ({"context": {"prior": "auto", "weight": []}}, "weight"),
    ({"fraction": 20}, r"fraction .*\[0, 1\] \(got 20\)"),
    ({"goal": {"accuracy": 95}}, "Write 95 % as 0.95"),
    ({"goal": {"accuracy": 0.95, "fraction": 0.1}}, "exactly one.*accuracy and fraction"),
    ({"goal": {"accuracy": 0.95}, "fraction": 0.1}, "one goal"),
    ({"goal": {"acuracy": 0.95}}, "Did you mean 'accuracy'"),
    ({"goal": 0.95}, r"\[goal\].*accuracy = 0.95"),
    ({"title": 3}, "title must be text"),
]


def test_mistakes_in_a_configuration_are_one_clear_sentence() -> None:
    for change, word in MISTAKES:
        with pytest.raises(ConfigError, match=word) as caught:
            make_plan(SMALL | change)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"needs a \[scene\]"):
        make_plan({"seed": 1})
